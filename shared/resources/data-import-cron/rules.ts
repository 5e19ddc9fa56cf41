// What admission says of a DataImportCron, in the words its plan would use. Called by admission.ts.
import { isDeepStrictEqual } from 'node:util';
import type { DataImportCron } from '#shared/api/cdi/data-import-cron.ts';
import type { CronSubject } from '#shared/resources/data-import-cron/subject.ts';
import { cronTemplateRules } from '#shared/resources/data-import-cron/template-rules.ts';
import { type RequestRule, faultIf, faultsOf } from '#shared/resources/rule.ts';

type Rule = RequestRule<DataImportCron, CronSubject>;

/** The CRD compares the fields it knows; a template holds others as well. */
const isSame: Rule['check'] = ({ object, before }) =>
  faultIf(
    before !== undefined && !isDeepStrictEqual(object.spec, before.spec),
    'spec',
    'Cannot update DataImportCron Spec: delete it and create it anew',
  );

/** What a template without a source it can follow should be, nobody knows. */
const isGoodTemplate: Rule['check'] = ({ object, subject: { source } }) =>
  source === undefined ? [] : faultsOf(cronTemplateRules, object);

export const dataImportCronRules: readonly Rule[] = [
  { id: 'spec', on: 'CREATE', reason: 'Invalid', check: ({ subject }) => subject.faults },
  { id: 'template', on: 'CREATE', reason: 'Invalid', check: isGoodTemplate },
  { id: 'fixed-spec', on: 'UPDATE', reason: 'Invalid', check: isSame },
];
