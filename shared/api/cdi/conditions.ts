// Conditions of cdi.kubevirt.io: the heartbeat changes with any field, the transition time with the status.
import { z } from 'zod';

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

const isSame = (before: CdiCondition, after: WantedCondition): boolean =>
  before.status === after.status && before.reason === after.reason && before.message === after.message;

const toCondition = (before: CdiCondition | undefined, wanted: WantedCondition, now: string): CdiCondition => {
  if (before === undefined) return { ...wanted, lastTransitionTime: now, lastHeartbeatTime: now };
  return {
    ...wanted,
    lastTransitionTime: before.status === wanted.status ? (before.lastTransitionTime ?? now) : now,
    lastHeartbeatTime: isSame(before, wanted) ? (before.lastHeartbeatTime ?? now) : now,
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
