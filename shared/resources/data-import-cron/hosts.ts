// Hosts that asked to be left alone: how long, and how the crons that follow something of theirs wait and come back. A Lease for each such host keeps that,
// since functions remember nothing: nobody asks the host while it holds its Lease, and until that is deleted crons go one after the other.
import { createHash } from 'node:crypto';
import { type Lease, leases } from '#shared/api/foreign/kubernetes.ts';
import { annotations, systemNamespace } from '#shared/api/names.ts';
import { keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Observation } from '#shared/golden/poll/observation.ts';
import type { ObserveRequest, Observe } from '#shared/golden/poll/observe.ts';
import { hostOf } from '#shared/golden/source.ts';
import { backoffMs } from '#shared/resources/data-import-cron/due.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

export interface HostWait {
  readonly host: string;
  /** Milliseconds since the epoch: nobody asks before. */
  readonly until: number;
  /** Refusals one after the other. */
  readonly refusals: number;
}

const buildLease = ({ host, until, refusals }: HostWait): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: {
    namespace: systemNamespace,
    name: `bullion-host-${createHash('sha256').update(host).digest('hex').slice(0, 40)}`,
    annotations: { [annotations.heldUntil]: new Date(until).toISOString() },
  },
  spec: { holderIdentity: host, leaseTransitions: refusals },
});

/** `undefined`: the host may be asked by everybody. Once its time is past, crons still go one after the other. */
export const readHostWait = async (kube: KubeClient, host: string): Promise<HostWait | undefined> => {
  const lease = await kube.get(leases, keyOf(buildLease({ host, until: 0, refusals: 0 })));
  if (lease === undefined) return undefined;
  const until = Date.parse(lease.metadata.annotations?.[annotations.heldUntil] ?? '');
  return { host, until: Number.isNaN(until) ? 0 : until, refusals: lease.spec.leaseTransitions ?? 0 };
};

const keepHostWait = async (kube: KubeClient, wait: HostWait): Promise<void> => {
  const lease = buildLease(wait);
  try {
    await kube.create(leases, lease);
  } catch (error) {
    if (!isConflict(error)) throw error;
    const { metadata, spec } = lease;
    await kube.mergePatch(leases, keyOf(lease), { metadata: { annotations: metadata.annotations ?? {} }, spec });
  }
};

export const endHostWait = async (kube: KubeClient, { host }: HostWait): Promise<void> => {
  const key = keyOf(buildLease({ host, until: 0, refusals: 0 }));
  const lease = await kube.get(leases, key);
  if (lease !== undefined) await kube.delete(leases, key, { uid: lease.metadata.uid ?? '' });
};

/** What an answer makes of the wait for its host; `undefined`: it asks for none. Each refusal after the other makes it longer, also where the host asks for less. */
const waitAfter = (
  host: string,
  observation: Observation,
  before: HostWait | undefined,
  now: number,
): HostWait | undefined => {
  if (observation.is === 'waiting')
    return { host, until: Date.parse(observation.until), refusals: before?.refusals ?? 0 };
  if (observation.is !== 'failed' || observation.reason !== 'RateLimited') return undefined;
  const refusals = (before?.refusals ?? 0) + 1;
  return { host, until: now + Math.max((observation.retryAfterSeconds ?? 0) * 1000, backoffMs(refusals)), refusals };
};

/** A refusal, put off for as long as everybody waits. */
const refusedUntil = (observation: Observation, { until }: HostWait, now: number): Observation =>
  observation.is === 'failed' ? { ...observation, retryAfterSeconds: Math.ceil((until - now) / 1000) } : observation;

/**
 * What is recorded of a cron that is not asked for. Of those that wait one comes back in the first minute, two in the second, four in the third and so on:
 * 1,000 are through in ten minutes where the host takes them, and few are put off again where it does not.
 */
const waitingFor = ({ host, until }: HostWait, place: number): Observation => ({
  is: 'waiting',
  message: `${host} asked for a pause until ${new Date(until).toISOString()}, and was not polled`,
  until: new Date(until + Math.floor(Math.log2(place + 1)) * 60_000).toISOString(),
});

/** What one host is asked in one tick, or for one cron. */
export interface HostLine {
  /** `undefined`: nobody outside of the cluster. */
  readonly host: string | undefined;
  wait: HostWait | undefined;
  hasAnswered: boolean;
  /** How many were put off. */
  put: number;
}

export const openLine = (host: string | undefined, wait: HostWait | undefined): HostLine => ({
  host,
  wait,
  hasAnswered: false,
  put: 0,
});

type Asking = Pick<ReconcileDeps, 'kube' | 'now'> & { readonly observe: Observe };

/** Asks, unless the host is to be left alone. */
export const askInLine = async (deps: Asking, line: HostLine, request: ObserveRequest): Promise<Observation> => {
  const { wait: before } = line;
  if (before !== undefined && before.until > deps.now()) return putOff(line, before);
  const observation = await deps.observe(request);
  if (line.host === undefined) return observation;
  const wait = waitAfter(line.host, observation, line.hasAnswered ? undefined : before, deps.now());
  if (wait === undefined) {
    line.hasAnswered ||= observation.is !== 'failed';
    return observation;
  }
  // Of several that were under way when the first was refused, the longest wait counts.
  line.wait = line.wait !== before && line.wait !== undefined && line.wait.until > wait.until ? line.wait : wait;
  await keepHostWait(deps.kube, line.wait);
  return observation.is === 'waiting' ? putOff(line, line.wait) : refusedUntil(observation, line.wait, deps.now());
};

const putOff = (line: HostLine, wait: HostWait): Observation => {
  line.put += 1;
  return waitingFor(wait, line.put - 1);
};

/** For one cron outside of a tick. `undefined`: the host has just been left alone, and the tick takes its crons one after the other. */
export const askAlone = async (deps: Asking, request: ObserveRequest): Promise<Observation | undefined> => {
  const host = hostOf(request.source);
  const wait = host === undefined ? undefined : await readHostWait(deps.kube, host);
  return wait !== undefined && wait.until <= deps.now() ? undefined : askInLine(deps, openLine(host, wait), request);
};
