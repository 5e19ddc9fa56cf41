// The work of a leader begins when the API server reaches admission: before that, it refuses what the first tick writes. Called by single.ts.
import { setTimeout as wait } from 'node:timers/promises';
import { storageProfileKind } from '#shared/api/cdi/storage-profile.ts';
import { renewCertificate } from '#shared/certificate/renew.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isRetryable } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

interface Work {
  readonly stop: () => Promise<void>;
}

/** Starts the work once `before` is over, unless it is stopped meanwhile. */
export const startLater = (before: (signal: AbortSignal) => Promise<void>, start: () => Work): Work => {
  const over = new AbortController();
  const begun = before(over.signal).then(() => (over.signal.aborted ? undefined : start()));
  return {
    stop: async () => {
      over.abort();
      await (await begun)?.stop();
    },
  };
};

interface Waiting {
  readonly kube: KubeClient;
  /** Whether Bullion makes the certificate. */
  readonly ownCertificate: boolean;
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly times?: { readonly turnMs: number; readonly mostMs: number };
}

/** Cluster-wide, so that no namespace is excepted from admission. */
const asked = {
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: storageProfileKind.type.kind,
  metadata: { name: 'bullion-admission-check' },
  spec: {},
} as const;

/** Any answer but that something is down. */
const answers = async (kube: KubeClient): Promise<boolean> => {
  try {
    await kube.create(storageProfileKind.type, asked, { dryRun: true });
    return true;
  } catch (error) {
    return !isRetryable(error);
  }
};

/** At most a minute: then events are retried, as whenever admission is down. */
export const untilAdmission = async ({ kube, ownCertificate, signal, log, times }: Waiting): Promise<void> => {
  const { turnMs, mostMs } = times ?? { turnMs: 1_000, mostMs: 60_000 };
  const end = performance.now() + mostMs;
  const renew = (): Promise<unknown> =>
    renewCertificate(kube, Date.now()).catch((error: unknown) => log.warn('certificate not renewed', { error }));
  while (!signal.aborted && performance.now() < end) {
    // Sequential: each turn sees what the one before left.
    if (ownCertificate) await renew();
    if (await answers(kube)) return;
    await wait(turnMs, undefined, { signal }).catch(() => undefined);
  }
  if (!signal.aborted) log.warn('admission does not answer', { waitedMs: mostMs });
};
