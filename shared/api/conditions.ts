// Lists of conditions: read one, set one. Times change only with other fields.
import { z } from 'zod';

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
const setCondition = (
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

// Conditions of cdi.kubevirt.io: the heartbeat changes with any field, the transition time with the status.

export const CdiCondition = z.object({
  type: z.string(),
  status: z.enum(['True', 'False', 'Unknown']),
  reason: z.string().optional().describe('CamelCase, stable: fit for scripts'),
  message: z.string().optional().describe('a message for people: what is wrong and what to do'),
  lastTransitionTime: z.string().optional(),
  lastHeartbeatTime: z.string().optional(),
});
export type CdiCondition = z.infer<typeof CdiCondition>;

/** A desired condition: the times are filled in. */
export type WantedCondition = Omit<CdiCondition, 'lastTransitionTime' | 'lastHeartbeatTime'>;

const isSameCondition = (before: CdiCondition, after: WantedCondition): boolean =>
  before.status === after.status && before.reason === after.reason && before.message === after.message;

const toCondition = (before: CdiCondition | undefined, wanted: WantedCondition, now: string): CdiCondition => {
  if (before === undefined) return { ...wanted, lastTransitionTime: now, lastHeartbeatTime: now };
  return {
    ...wanted,
    lastTransitionTime: before.status === wanted.status ? (before.lastTransitionTime ?? now) : now,
    lastHeartbeatTime: isSameCondition(before, wanted) ? (before.lastHeartbeatTime ?? now) : now,
  };
};

/** The list with `wanted` set, in the existing order; other conditions are unchanged. `now` is RFC 3339. */
export const setCdiConditions = (
  before: readonly CdiCondition[],
  wanted: readonly WantedCondition[],
  now: string,
): CdiCondition[] => {
  const find = (type: string) => wanted.find((condition) => condition.type === type);
  const kept = before.map((old) => {
    const next = find(old.type);
    return next === undefined ? old : toCondition(old, next, now);
  });
  const added = wanted.filter(({ type }) => !before.some((old) => old.type === type));
  return [...kept, ...added.map((condition) => toCondition(undefined, condition, now))];
};
