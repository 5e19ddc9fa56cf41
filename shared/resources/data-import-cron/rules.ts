// What admission says of a DataImportCron, in the words its plan would use. Called by admission.ts.
import { isDeepStrictEqual } from 'node:util';
import type { DataImportCron } from '#shared/api/cdi/data-import-cron.ts';
import type { CronSubject } from '#shared/resources/data-import-cron/subject.ts';
import { type RequestRule, faultIf } from '#shared/resources/rule.ts';

type Rule = RequestRule<DataImportCron, CronSubject>;

/** The CRD compares the fields it knows; a template holds others as well. */
const isSame: Rule['check'] = ({ object, before }) =>
  faultIf(
    before !== undefined && !isDeepStrictEqual(object.spec, before.spec),
    'spec',
    'Cannot update DataImportCron Spec: delete it and create it anew',
  );

export const dataImportCronRules: readonly Rule[] = [
  { id: 'spec', on: 'CREATE', reason: 'Invalid', check: ({ subject }) => subject.faults },
  { id: 'fixed', on: 'UPDATE', reason: 'Invalid', check: isSame },
];
