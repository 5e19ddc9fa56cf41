// The certificate that admission serves, read from its Secret by name. It is not mounted: a kubelet that does not find a Secret when a pod starts looks for it
// less and less often. Called by the entry points of validate and mutate, and by infra/single.
import { secrets } from '#shared/api/foreign/core.ts';
import { admissionCertificate, systemNamespace } from '#shared/api/names.ts';
import { createAuthority } from '#shared/certificate/issue.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { TlsPair, TlsSource } from '#shared/runtime/certificate.ts';
import type { Logger } from '#shared/runtime/log.ts';

/** Milliseconds between two reads of the Secret: before there is a certificate, and afterwards. */
const pollMs = { first: 1_000, later: 60_000 } as const;

const { serverSecret: name } = admissionCertificate;

/** `undefined` while there is no certificate. */
const readPair = async (kube: Pick<KubeClient, 'get'>): Promise<TlsPair | undefined> => {
  const secret = await kube.get(secrets, { namespace: systemNamespace, name });
  const textOf = (file: string): string => Buffer.from(secret?.data?.[file] ?? '', 'base64').toString();
  const pair = { cert: textOf('tls.crt'), key: textOf('tls.key') };
  return pair.cert === '' || pair.key === '' ? undefined : pair;
};

/** For probes of the kubelet, which does not verify certificates; nothing else connects before the pod is ready. */
const placeholder = (): TlsPair => {
  const day = 86_400_000;
  const now = Date.now();
  const { certificate, key } = createAuthority(name, { from: new Date(now - day), to: new Date(now + 3650 * day) });
  return { cert: certificate, key };
};

export interface ServedCertificate extends TlsSource {
  /** Whether it is served: until then the server is not ready. */
  readonly isServed: () => boolean;
  readonly stop: () => void;
}

export const serveCertificate = (kube: Pick<KubeClient, 'get'>, log: Logger): ServedCertificate => {
  const first = placeholder();
  let pair: TlsPair | undefined;
  let isServed = false;
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  const read = async (): Promise<void> => {
    try {
      pair = (await readPair(kube)) ?? pair;
    } catch (error) {
      log.warn('the certificate of admission cannot be read', { secret: name, error });
    }
    if (isOver) return;
    timer = setTimeout(() => void read(), pair === undefined ? pollMs.first : pollMs.later);
    timer.unref();
  };
  void read();
  return {
    name,
    pair: () => {
      isServed = pair !== undefined;
      return pair ?? first;
    },
    checkMs: pollMs.first,
    isServed: () => isServed,
    stop: () => {
      isOver = true;
      clearTimeout(timer);
    },
  };
};
