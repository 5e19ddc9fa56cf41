// Maintains the webhook certificate: two Secrets, and the CA bundle in the webhook configurations. Safe to call at any time; cron-tick does so
// each minute. No action if cert-manager manages the Secret.
import {
  type WebhookConfiguration,
  mutatingWebhookConfigurations,
  validatingWebhookConfigurations,
} from '#shared/api/foreign/admission.ts';
import { type Secret, secrets } from '#shared/api/foreign/core.ts';
import { admissionCertificate, systemNamespace } from '#shared/api/names.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { type StoredPairs, renewPairs } from '#shared/certificate/plan.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

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

/** A configuration that is up to date is not written. */
const trust = async (kube: KubeClient, type: ResourceType<WebhookConfiguration>, caBundle: string): Promise<void> => {
  const found = await kube.get(type, { name: configuration });
  const all = found?.webhooks ?? [];
  if (found === undefined || all.every(({ clientConfig }) => clientConfig.caBundle === caBundle)) return;
  const webhooks = all.map((webhook) => ({ ...webhook, clientConfig: { ...webhook.clientConfig, caBundle } }));
  // A merge patch replaces a list as a whole: only the version that was read may be replaced.
  const { resourceVersion } = found.metadata;
  await kube.mergePatch(type, { name: configuration }, { metadata: { resourceVersion }, webhooks });
};

/** `now` is milliseconds since the epoch. Throws AppErrors of the client; the next call continues. */
export const renewCertificate = async (kube: KubeClient, now: number): Promise<void> => {
  const find = (name: string) => kube.get(secrets, { namespace: systemNamespace, name });
  const serverBefore = await find(serverSecret);
  if (isLookedAfter(serverBefore)) return;
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
  await trust(kube, validatingWebhookConfigurations, toData(trusted));
  await trust(kube, mutatingWebhookConfigurations, toData(trusted));
  if (isNew.server) {
    const texts = { 'tls.crt': server.certificate, 'tls.key': server.key, 'ca.crt': trusted };
    await write(kube, serverBefore, serverSecret, texts);
  }
};
