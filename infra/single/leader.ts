// Leader election by a Lease, as in client-go: of several replicas one sends events. Doing so twice for a moment is harmless, since an event is a
// hint. Called by single.ts.
import type { Sleep } from '#events/sender.ts';
import { type Lease, leases } from '#shared/api/foreign/kubernetes.ts';
import { systemNamespace } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isChangedMeanwhile } from '#shared/clients/kube/tolerant.ts';
import type { Logger } from '#shared/runtime/log.ts';

export const leaseKey = { namespace: systemNamespace, name: 'bullion' } as const;

/** Milliseconds. A leader that could not renew for `giveUp` stops, before others take over after `duration`. */
export const leaseTimes = { duration: 15_000, giveUp: 10_000, turn: 5_000 } as const;

/** The Lease as read, and since when it is unchanged by our own clock: clocks of other nodes are not compared. */
export interface ObservedLease {
  readonly lease: Lease | undefined;
  readonly since: number;
}

export type Turn = 'create' | 'renew' | 'take' | 'wait';

/** What a replica does with the Lease. `now` is milliseconds of the same clock as `since`. */
export const planTurn = ({ lease, since }: ObservedLease, identity: string, now: number): Turn => {
  if (lease === undefined) return 'create';
  const { holderIdentity = '', leaseDurationSeconds } = lease.spec;
  if (holderIdentity === identity) return 'renew';
  if (holderIdentity === '') return 'take';
  const durationMs = leaseDurationSeconds === undefined ? leaseTimes.duration : leaseDurationSeconds * 1000;
  return now - since >= durationMs ? 'take' : 'wait';
};

const microTime = (now: number): string => new Date(now).toISOString().replace('Z', '000Z');

/** The Lease after a turn. */
const held = (lease: Lease | undefined, identity: string, now: number): Lease => {
  const isOurs = lease?.spec.holderIdentity === identity;
  const time = microTime(now);
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: lease?.metadata ?? leaseKey,
    spec: {
      holderIdentity: identity,
      leaseDurationSeconds: leaseTimes.duration / 1000,
      leaseTransitions: (lease?.spec.leaseTransitions ?? 0) + (lease === undefined || isOurs ? 0 : 1),
      acquireTime: (isOurs ? lease.spec.acquireTime : undefined) ?? time,
      renewTime: time,
    },
  };
};

export interface ElectionOptions {
  readonly kube: KubeClient;
  /** Of this replica, unique among all. */
  readonly identity: string;
  /** Starts what the leader alone does. */
  readonly lead: () => { readonly stop: () => Promise<void> };
  readonly log: Logger;
  readonly now: () => number;
  readonly sleep: Sleep;
}

export interface Election {
  readonly isLeading: () => boolean;
  /** When its last turn ended, however it ended. */
  readonly lastTurn: () => number;
  /** Stops leading, and releases the Lease, so that another replica takes over at once. */
  readonly stop: () => Promise<void>;
}

export const startElection = (options: ElectionOptions): Election => {
  const { kube, identity, lead, log, now, sleep } = options;
  const stop = new AbortController();
  let observed: ObservedLease = { lease: undefined, since: now() };
  let leading: { readonly stop: () => Promise<void>; readonly renewed: number } | undefined;
  let lastTurn = now();

  const observe = (lease: Lease | undefined): void => {
    const isSame = lease?.metadata.resourceVersion === observed.lease?.metadata.resourceVersion;
    observed = { lease, since: isSame ? observed.since : now() };
  };
  const resign = async (why: string): Promise<void> => {
    const { stop: end } = leading ?? {};
    leading = undefined;
    if (end === undefined) return;
    log.info('no longer leading', { identity, why });
    await end();
  };
  /** Throws when the API server does. */
  const takeTurn = async (): Promise<void> => {
    observe(await kube.get(leases, leaseKey));
    const turn = planTurn(observed, identity, now());
    if (turn === 'wait') return resign(`${observed.lease?.spec.holderIdentity ?? ''} leads`);
    const wanted = held(observed.lease, identity, now());
    observe(turn === 'create' ? await kube.create(leases, wanted) : await kube.replace(leases, wanted));
    if (leading === undefined) log.info('leading', { identity });
    leading = { stop: leading?.stop ?? lead().stop, renewed: now() };
  };
  const run = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      try {
        await takeTurn();
      } catch (error) {
        // Another replica was first.
        if (!isChangedMeanwhile(error)) log.warn('the Lease cannot be read or written', { error });
        if (now() - (leading?.renewed ?? 0) >= leaseTimes.giveUp) await resign('the Lease could not be renewed');
      }
      lastTurn = now();
      await sleep(leaseTimes.turn, stop.signal);
    }
  };
  const running = run();
  return {
    isLeading: () => leading !== undefined,
    lastTurn: () => lastTurn,
    stop: async () => {
      stop.abort();
      await running;
      if (leading === undefined) return;
      await resign('this replica stops');
      const { holderIdentity: _, ...spec } = held(observed.lease, identity, now()).spec;
      const released = { ...held(observed.lease, identity, now()), spec };
      await kube.replace(leases, released).catch((error: unknown) => log.warn('the Lease was not released', { error }));
    },
  };
};
