// Query parameters of writes, validated as CreateOptions, UpdateOptions and PatchOptions.
import { invalid as invalidCause, notSupported, required, type Cause, forbidden } from '../schema/cause.ts';
import { invalid } from '../status/status.ts';
import type { Call } from './call.ts';

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

export interface WriteOptions {
  readonly dryRun: readonly string[];
  readonly fieldManager: string | undefined;
  readonly fieldValidation: FieldValidation;
  readonly force: boolean | undefined;
}

const levels: readonly FieldValidation[] = ['Ignore', 'Warn', 'Strict'];
const managerLimit = 128;

const managerCauses = (manager: string | undefined): Cause[] => {
  if (manager === undefined) return [];
  if (manager.length > managerLimit) {
    return [
      {
        reason: 'FieldValueTooLong',
        field: 'fieldManager',
        message: `Too long: may not be more than ${managerLimit} bytes`,
      },
    ];
  }
  return /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u.test(manager)
    ? []
    : [invalidCause('fieldManager', manager, 'should only contain printable characters')];
};

const dryRunCauses = (dryRun: readonly string[]): Cause[] =>
  dryRun.every((value) => value === 'All') ? [] : [notSupported('dryRun', dryRun as string[] as never, ['All'])];

const applyCauses = (options: WriteOptions, isApply: boolean): Cause[] => {
  if (isApply) {
    const message = 'is required for apply patch';
    return options.fieldManager === undefined || options.fieldManager === '' ? [required('fieldManager', message)] : [];
  }
  return options.force === undefined ? [] : [forbidden('force', 'may not be specified for non-apply patch')];
};

const kinds: Readonly<Record<string, string>> = {
  create: 'CreateOptions',
  update: 'UpdateOptions',
  patch: 'PatchOptions',
};

/** Throws a 422 that names every invalid parameter. `patchType` is set for patches. */
export const parseWriteOptions = (call: Pick<Call, 'info'>, patchType?: string): WriteOptions => {
  const { query, verb } = call.info;
  const validation = query.get('fieldValidation') ?? '';
  const options: WriteOptions = {
    dryRun: query.getAll('dryRun').filter((value) => value !== ''),
    fieldManager: query.get('fieldManager') ?? undefined,
    fieldValidation: levels.find((level) => level === validation) ?? 'Warn',
    force: query.has('force') ? query.get('force') !== 'false' : undefined,
  };
  const causes = [
    ...(patchType === undefined ? [] : applyCauses(options, patchType === 'application/apply-patch+yaml')),
    ...managerCauses(options.fieldManager),
    ...dryRunCauses(options.dryRun),
    ...(validation === '' || levels.includes(validation as FieldValidation)
      ? []
      : [notSupported('fieldValidation', validation, ['', ...levels.toSorted()])]),
  ];
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: kinds[verb] ?? 'PatchOptions' }, '', causes);
  return options;
};

/** The field manager of this write: from the query, or from the first part of the user agent. */
export const managerOf = (call: Pick<Call, 'request'>, options: WriteOptions): string => {
  if (options.fieldManager !== undefined && options.fieldManager !== '') return options.fieldManager;
  const [agent = ''] = (call.request.headers.get('user-agent') ?? '').split('/');
  return agent === '' ? 'unknown' : agent.slice(0, managerLimit);
};
