// The pod that has mounted a target's volume: found by its labels, awaited until it answers, called with a token for that target only.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Pod, pods } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { childrenOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { KeyRing } from '#shared/exchange/access/keys.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { hindranceOf } from '#shared/populate/job/attempts.ts';
import { signToken } from '#shared/runtime/token.ts';

export interface WorkerDeps {
  readonly kube: KubeClient;
  readonly keys: KeyRing;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export interface WorkerWanted {
  readonly namespace: string;
  /** UID of the object it works for. */
  readonly uid: string;
  readonly role: 'import' | 'serve';
  readonly port: number;
  /** Milliseconds to wait for it. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
  /** Whether to stop waiting; throws a Problem with the reason. */
  readonly check?: () => Promise<void>;
}

export interface Worker {
  /** `http://10.0.0.1:8090` */
  readonly url: string;
  /** Valid for one hour: long enough for its requests to start. */
  readonly token: string;
}

const tokenSeconds = 3600;
const pollMs = 150;

const isRunning = (pod: Pod): boolean =>
  pod.status?.phase === 'Running' && pod.status.podIP !== undefined && pod.metadata.deletionTimestamp === undefined;

const addressOf = (ip: string): string => (ip.includes(':') ? `[${ip}]` : ip);

const listPods = async (kube: KubeClient, { namespace, uid, role }: WorkerWanted): Promise<readonly Pod[]> =>
  (await kube.list(pods, { namespace, labelSelector: `${childrenOf(uid)},${labels.role}=${role}` })).items;

const notYet = (found: readonly Pod[]): Problem => {
  const hindrance = found.map((pod) => hindranceOf(pod)).find((one) => one !== undefined);
  const why = hindrance === undefined ? 'its pod is still being started' : hindrance.message;
  return new Problem(503, 'NotReady', `not ready to receive the file yet: ${why}; try again`, {
    headers: { 'retry-after': '5' },
  });
};

/** Throws a Problem: 503 on timeout, or the error of `check`. */
export const findWorker = async ({ kube, keys, now }: WorkerDeps, wanted: WorkerWanted): Promise<Worker> => {
  const deadline = now() + wanted.waitMs;
  for (;;) {
    const found = await listPods(kube, wanted);
    const ip = found.find(isRunning)?.status?.podIP;
    if (ip !== undefined) {
      const iat = Math.floor(now() / 1000);
      const claims = { sub: 'transfer', verb: 'work', target: wanted.uid, iat, exp: iat + tokenSeconds } as const;
      return { url: `http://${addressOf(ip)}:${wanted.port}`, token: signToken(await keys.signing(), claims) };
    }
    await wanted.check?.();
    if (now() >= deadline) throw notYet(found);
    await sleep(pollMs, undefined, { signal: wanted.signal });
  }
};
