// Maintains the webhook certificate: two Secrets, and the CA bundle in the webhook configurations. Safe to call at any time; cron-tick does so
// each minute. No action if cert-manager manages the Secret.
import { X509Certificate } from 'node:crypto';
import { type Secret, secrets } from '#shared/api/foreign/core.ts';
import {
  mutatingWebhookConfigurations,
  validatingWebhookConfigurations,
  type WebhookConfiguration,
} from '#shared/api/foreign/kubernetes.ts';
import { admissionCertificate, systemNamespace } from '#shared/api/names.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { createAuthority, issueServer, type Pair, type Validity } from './issue.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

// Decides when the webhook certificate is renewed. Pure except for the new keys: the result depends on the existing certificates and the clock.

const day = 24 * 3600 * 1000;
/** Validity in milliseconds. A certificate is replaced when a third of it is left, so that an outage of a month is harmless. */
const lives = { authority: 3650 * day, server: 90 * day } as const;
/** Allowed clock skew within the cluster. */
const skewMs = 3600 * 1000;

const authorityName = 'bullion admission';

interface StoredPairs {
  readonly authority?:
    | (Pair & { /** Those that are trusted, as PEM, the newest first. */ readonly trusted: string })
    | undefined;
  readonly server?: Pair | undefined;
}

interface Tended {
  readonly authority: NonNullable<StoredPairs['authority']>;
  readonly server: Pair;
  readonly isNew: { readonly authority: boolean; readonly server: boolean };
}

const validFrom = (now: number, life: number): Validity => ({ from: new Date(now - skewMs), to: new Date(now + life) });

const read = (pem: string | undefined): X509Certificate | undefined => {
  try {
    return new X509Certificate(pem ?? '');
  } catch {
    return undefined;
  }
};

/** Whether enough validity is left; a certificate from the future was issued with a wrong clock. */
const isFresh = (certificate: X509Certificate | undefined, life: number, now: number): certificate is X509Certificate =>
  certificate !== undefined &&
  certificate.validToDate.getTime() - now > life / 3 &&
  certificate.validFromDate.getTime() <= now;

/** The single certificates of a bundle. */
const split = (bundle: string): readonly string[] =>
  bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)?.map((pem) => `${pem}\n`) ?? [];

const stillTrusted = (bundle: string, now: number): readonly string[] =>
  split(bundle).filter((pem) => (read(pem)?.validToDate.getTime() ?? 0) > now);

const renewAuthority = (kept: StoredPairs['authority'], now: number): Tended['authority'] => {
  const certificate = read(kept?.certificate);
  if (kept !== undefined && isFresh(certificate, lives.authority, now)) return kept;
  const made = createAuthority(authorityName, validFrom(now, lives.authority));
  // Servers that have not loaded their new certificate yet must still be trusted.
  return { ...made, trusted: [made.certificate, ...stillTrusted(kept?.trusted ?? '', now)].join('') };
};

const isFor = (certificate: X509Certificate, names: readonly string[]): boolean =>
  names.every((name) => certificate.checkHost(name) !== undefined);

const renewServer = (kept: Pair | undefined, authority: Pair, names: readonly string[], now: number): Pair => {
  const certificate = read(kept?.certificate);
  const issuer = read(authority.certificate);
  const isGood =
    kept !== undefined &&
    issuer !== undefined &&
    isFresh(certificate, lives.server, now) &&
    isFor(certificate, names) &&
    certificate.checkIssued(issuer) &&
    certificate.verify(issuer.publicKey);
  return isGood ? kept : issueServer(authority, names, validFrom(now, lives.server));
};

/** The desired certificates; the same objects if there is nothing to do. */
const renewPairs = (kept: StoredPairs, names: readonly string[], now: number): Tended => {
  const authority = renewAuthority(kept.authority, now);
  const server = renewServer(kept.server, authority, names, now);
  return { authority, server, isNew: { authority: authority !== kept.authority, server: server !== kept.server } };
};

const { configuration, authoritySecret, serverSecret, hosts } = admissionCertificate;

const toText = (data: string | undefined): string => Buffer.from(data ?? '', 'base64').toString();
const toData = (text: string): string => Buffer.from(text).toString('base64');

const pairOf = (secret: Secret | undefined) =>
  secret?.data === undefined
    ? undefined
    : { certificate: toText(secret.data['tls.crt']), key: toText(secret.data['tls.key']) };

const isLookedAfter = (secret: Secret | undefined): boolean =>
  Object.keys(secret?.metadata.annotations ?? {}).some((name) => name.startsWith('cert-manager.io/'));

const write = async (
  kube: KubeClient,
  before: Secret | undefined,
  name: string,
  texts: Readonly<Record<string, string>>,
): Promise<unknown> => {
  const data = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, toData(text)]));
  const labels = { 'app.kubernetes.io/part-of': 'bullion' };
  const type = 'kubernetes.io/tls';
  const made: Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: systemNamespace, name, labels },
    type,
    data,
  };
  return before === undefined
    ? kube.create(secrets, made)
    : kube.replace(secrets, { ...before, metadata: { ...before.metadata, labels }, data });
};

/** Returns whether the configuration is there. One that is up to date is not written. */
const trust = async (
  kube: KubeClient,
  type: ResourceType<WebhookConfiguration>,
  caBundle: string,
): Promise<boolean> => {
  const found = await kube.get(type, { name: configuration });
  const all = found?.webhooks ?? [];
  if (found === undefined) return false;
  if (all.every(({ clientConfig }) => clientConfig.caBundle === caBundle)) return true;
  const webhooks = all.map((webhook) => ({ ...webhook, clientConfig: { ...webhook.clientConfig, caBundle } }));
  // A merge patch replaces a list as a whole: only the version that was read may be replaced.
  const { resourceVersion } = found.metadata;
  await kube.mergePatch(type, { name: configuration }, { metadata: { resourceVersion }, webhooks });
  return true;
};

/**
 * `now` is milliseconds since the epoch. Returns whether both webhook configurations are there and trust it, or somebody else looks after it. Throws
 * AppErrors of the client; the next call continues.
 */
export const renewCertificate = async (kube: KubeClient, now: number): Promise<boolean> => {
  const find = (name: string) => kube.get(secrets, { namespace: systemNamespace, name });
  const serverBefore = await find(serverSecret);
  if (isLookedAfter(serverBefore)) return true;
  const authorityBefore = await find(authoritySecret);
  const authorityPair = pairOf(authorityBefore);
  const kept: StoredPairs = {
    authority: authorityPair && { ...authorityPair, trusted: toText(authorityBefore?.data?.['ca.crt']) },
    server: pairOf(serverBefore),
  };
  const { authority, server, isNew } = renewPairs(kept, hosts, now);
  const { trusted } = authority;
  // In this order a server never presents a certificate that is not trusted yet, even if the sequence is interrupted.
  if (isNew.authority) {
    const texts = { 'tls.crt': authority.certificate, 'tls.key': authority.key, 'ca.crt': trusted };
    await write(kube, authorityBefore, authoritySecret, texts);
  }
  const isValidating = await trust(kube, validatingWebhookConfigurations, toData(trusted));
  const isMutating = await trust(kube, mutatingWebhookConfigurations, toData(trusted));
  if (isNew.server) {
    const texts = { 'tls.crt': server.certificate, 'tls.key': server.key, 'ca.crt': trusted };
    await write(kube, serverBefore, serverSecret, texts);
  }
  return isValidating && isMutating;
};
