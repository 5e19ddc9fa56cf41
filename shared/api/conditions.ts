// Lists of conditions: read one, set one. Times change only with other fields.

export interface StatusCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly observedGeneration?: number | undefined;
  /** RFC 3339: last change of status, reason or message. */
  readonly lastUpdateTime?: string | undefined;
  /** RFC 3339: last change of status. */
  readonly lastTransitionTime?: string | undefined;
}

/** A desired condition: the times are filled in. */
export type DesiredCondition = Omit<StatusCondition, 'lastUpdateTime' | 'lastTransitionTime'>;

export const findCondition = (
  conditions: readonly StatusCondition[] | undefined,
  type: string,
): StatusCondition | undefined => conditions?.find((condition) => condition.type === type);

export const isTrue = (conditions: readonly StatusCondition[] | undefined, type: string): boolean =>
  findCondition(conditions, type)?.status === 'True';

const isSame = (before: StatusCondition, after: DesiredCondition): boolean =>
  before.status === after.status && before.reason === after.reason && before.message === after.message;

/** The list with `desired` set, in the existing order; `now` (RFC 3339) becomes the time of changed fields. */
export const setCondition = (
  conditions: readonly StatusCondition[],
  desired: DesiredCondition,
  now: string,
): readonly StatusCondition[] => {
  const before = findCondition(conditions, desired.type);
  if (before === undefined) return [...conditions, { ...desired, lastUpdateTime: now, lastTransitionTime: now }];
  const after = {
    ...before,
    ...desired,
    lastUpdateTime: isSame(before, desired) ? before.lastUpdateTime : now,
    lastTransitionTime: before.status === desired.status ? before.lastTransitionTime : now,
  };
  return conditions.map((condition) => (condition === before ? after : condition));
};

export const setConditions = (
  conditions: readonly StatusCondition[],
  desired: readonly DesiredCondition[],
  now: string,
): readonly StatusCondition[] => desired.reduce((list, next) => setCondition(list, next, now), conditions);
