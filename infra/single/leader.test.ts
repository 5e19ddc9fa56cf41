// Who leads, by the Lease: a table of turns, and replicas that share a memory-kube and a clock.
import { describe, expect, it } from 'vitest';
import { type ObservedLease, leaseKey, leaseTimes, planTurn, startElection } from '#infra/single/leader.ts';
import { type Lease, leases } from '#shared/api/foreign/kubernetes.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const leaseOf = (spec: Lease['spec']): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: leaseKey,
  spec,
});
const { duration } = leaseTimes;

describe('a turn', () => {
  it.each([
    ['there is no Lease', undefined, 0, 'create'],
    ['it is ours, however old', { holderIdentity: 'a', leaseDurationSeconds: 15 }, 10 * duration, 'renew'],
    ['it was released', {}, 0, 'take'],
    ['it was released by an empty name', { holderIdentity: '' }, 0, 'take'],
    ['another holds it', { holderIdentity: 'b', leaseDurationSeconds: 15 }, duration - 1, 'wait'],
    [
      'another has not renewed it for its duration',
      { holderIdentity: 'b', leaseDurationSeconds: 15 },
      duration,
      'take',
    ],
    ['the duration of the holder counts', { holderIdentity: 'b', leaseDurationSeconds: 60 }, duration, 'wait'],
    ['without a duration ours counts', { holderIdentity: 'b' }, duration, 'take'],
    // Only our own clock counts: that of the holder may be wrong.
    ['its time is long past', { holderIdentity: 'b', renewTime: '1999-01-01T00:00:00.000000Z' }, 0, 'wait'],
  ] as const)('%s', (_, spec, age, turn) => {
    const observed: ObservedLease = { lease: spec === undefined ? undefined : leaseOf(spec), since: 1_000 };
    expect(planTurn(observed, 'a', 1_000 + age)).toBe(turn);
  });
});

/** Replicas at one API server; time passes turn by turn. */
const createWorld = () => {
  const kube = createMemoryKube();
  let time = 1_000_000;
  const wakes = new Set<() => void>();
  const settle = () => new Promise((resolve) => setTimeout(resolve, 5));
  return {
    kube,
    holder: async () => (await kube.get(leases, leaseKey))?.spec.holderIdentity,
    pass: async (ms: number) => {
      for (const end = time + ms; time < end;) {
        time += leaseTimes.turn;
        for (const wake of wakes) wake();
        await settle();
      }
    },
    replica: (identity: string, client: KubeClient = kube) => {
      const work = { starts: 0, stops: 0 };
      const election = startElection({
        kube: client,
        identity,
        log: silentLogger,
        now: () => time,
        lead: () => {
          work.starts += 1;
          return { stop: async () => void (work.stops += 1) };
        },
        sleep: (_, signal) =>
          new Promise<void>((resolve) => {
            const wake = () => {
              wakes.delete(wake);
              resolve();
            };
            wakes.add(wake);
            if (signal?.aborted === true) wake();
            signal?.addEventListener('abort', wake, { once: true });
          }),
      });
      return { ...election, work };
    },
    settle,
  };
};

/** A client whose calls fail while it is cut off. */
const cutOff = (kube: KubeClient) => {
  const line = { isCut: false };
  const refuse = () => {
    throw new Unavailable('no route to host');
  };
  const client: KubeClient = {
    ...kube,
    get: async (...given) => (line.isCut ? refuse() : kube.get(...given)),
    replace: async (...given) => (line.isCut ? refuse() : kube.replace(...given)),
  };
  return { client, line };
};

describe('replicas', () => {
  it('exactly one of many leads, and starts its work once', async () => {
    const { replica, pass, settle, holder } = createWorld();
    const all = ['a', 'b', 'c'].map((name) => replica(name));
    await settle();
    await pass(4 * duration);
    expect(all.filter((one) => one.isLeading()).map(({ work }) => work)).toEqual([{ starts: 1, stops: 0 }]);
    expect(all.reduce((sum, { work }) => sum + work.starts, 0)).toBe(1);
    expect(['a', 'b', 'c']).toContain(await holder());
    await Promise.all(all.map((one) => one.stop()));
  });

  it('a Lease that is released is taken at the next turn', async () => {
    const { replica, pass, settle, holder } = createWorld();
    const a = replica('a');
    await settle();
    const b = replica('b');
    await pass(leaseTimes.turn);
    expect([a.isLeading(), b.isLeading()]).toEqual([true, false]);
    await a.stop();
    expect(a.work).toEqual({ starts: 1, stops: 1 });
    expect(await holder()).toBeUndefined();
    await pass(leaseTimes.turn);
    expect(b.isLeading()).toBe(true);
    await b.stop();
  });

  it('a leader without a connection stops before another one takes over', async () => {
    const { kube, replica, pass, settle } = createWorld();
    const { client, line } = cutOff(kube);
    const a = replica('a', client);
    await settle();
    const b = replica('b');
    await pass(leaseTimes.turn);
    line.isCut = true;
    await pass(leaseTimes.giveUp);
    expect([a.isLeading(), a.work.stops, b.isLeading()]).toEqual([false, 1, false]);
    await pass(duration);
    expect(b.isLeading()).toBe(true);
    line.isCut = false;
    await pass(leaseTimes.turn);
    expect([a.isLeading(), b.isLeading()]).toEqual([false, true]);
    expect((await kube.get(leases, leaseKey))?.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
    await Promise.all([a.stop(), b.stop()]);
  });

  it('a replica that starts again under its name leads at once', async () => {
    const { kube, replica, settle } = createWorld();
    await kube.create(leases, leaseOf({ holderIdentity: 'a', leaseDurationSeconds: 15 }));
    const a = replica('a');
    await settle();
    expect(a.isLeading()).toBe(true);
    await a.stop();
  });
});
