// What a set of calls needed of the rights there are: called and not granted, granted and not called.
import { type Right, describe } from '#infra/generate/rights.ts';
import type { AccountCall } from '#test/roles/calls.ts';
import { systemNamespace } from '#shared/api/names.ts';

/** Whether a call is let through by a right, whoever has it. */
export const covers = (right: Right, call: AccountCall): boolean =>
  right.verb === call.verb &&
  right.group === call.group &&
  right.resource === call.resource &&
  (right.namespace === undefined || right.namespace === call.namespace) &&
  (right.names.length === 0 || right.names.includes(call.name));

/** What was called without a right that lets it through. A server refuses that; owner references alone slip through where it does not look. */
export const missing = (rights: readonly Right[], calls: readonly AccountCall[]): readonly string[] =>
  calls
    .filter((call) => !rights.some((right) => right.account === call.account && covers(right, call)))
    .map((call) =>
      describe({ ...call, namespace: call.namespace === systemNamespace ? call.namespace : undefined, names: [] }),
    );

/**
 * What is granted and was never called. Accounts of one group run the same code on whichever of them an event reaches first: what several of
 * them are granted is needed when one of them calls it.
 */
export const unused = (
  rights: readonly Right[],
  calls: readonly AccountCall[],
  group: readonly string[],
): readonly string[] => {
  const keyOf = (right: Right) => describe({ ...right, account: '' });
  const holders = Map.groupBy(
    rights.filter(({ account }) => group.includes(account)),
    keyOf,
  );
  const callersOf = (right: Right): readonly string[] =>
    group.includes(right.account) ? (holders.get(keyOf(right)) ?? []).map(({ account }) => account) : [right.account];
  return rights
    .filter((right) => !calls.some((call) => callersOf(right).includes(call.account) && covers(right, call)))
    .map(describe);
};
