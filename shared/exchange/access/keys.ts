// The keys that sign tokens: stored in a Secret, created on first use and rotated every day. The previous key stays valid for verification.
import { generateKeyPairSync } from 'node:crypto';
import { type Secret, secrets } from '#shared/api/foreign/core.ts';
import { systemNamespace } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { tolerate } from '#shared/clients/kube/tolerant.ts';
import { Unavailable, isConflict } from '#shared/runtime/errors.ts';
import { type SigningKey, type VerifyingKey, publicHalfOf, toSigningKey } from '#shared/runtime/token.ts';

export const keysSecretName = 'transfer-keys';
const key = { namespace: systemNamespace, name: keysSecretName } as const;
/** RFC 3339, in the Secret: creation time of the current key. */
const madeAt = 'bullion.dev/made-at';

/** A key signs for one day, and verifies for one day more; no token is valid longer than that. */
const renewMs = 24 * 3600 * 1000;
/** Milliseconds between reads of the Secret, which another instance may have updated. */
const pollMs = 60 * 1000;
/** Tokens with invented key names must not cause a read each. */
const leastLookMs = 2 * 1000;

export interface KeyRing {
  signing(): Promise<SigningKey>;
  /** `isFresh`: read the Secret again, unless it was just read; for a token of an unknown key. */
  verifying(options?: { readonly isFresh?: boolean }): Promise<readonly VerifyingKey[]>;
}

interface Held {
  readonly keys: readonly SigningKey[];
  readonly readAt: number;
}

const makePem = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

const encode = (pem: string): string => Buffer.from(pem).toString('base64');

const buildSecret = (before: Secret | undefined, now: number): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    ...key,
    ...(before?.metadata.resourceVersion === undefined ? {} : { resourceVersion: before.metadata.resourceVersion }),
    annotations: { [madeAt]: new Date(now).toISOString() },
  },
  data: {
    current: encode(makePem()),
    ...(before?.data?.['current'] === undefined ? {} : { previous: before.data['current'] }),
  },
});

const keysOf = ({ data = {} }: Secret): readonly SigningKey[] =>
  ['current', 'previous'].flatMap((name) => {
    const encoded = data[name];
    return encoded === undefined ? [] : [toSigningKey(Buffer.from(encoded, 'base64').toString())];
  });

const isFresh = ({ metadata }: Secret, now: number): boolean =>
  now - Date.parse(metadata.annotations?.[madeAt] ?? '') < renewMs;

/** Attempts at a concurrent update; more conflicts are not expected. */
const tries = 4;

export const createKeyRing = (kube: KubeClient, now: () => number): KeyRing => {
  let held: Held | undefined;
  let reading: Promise<Held> | undefined;

  const renew = async (before: Secret | undefined): Promise<void> => {
    const next = buildSecret(before, now());
    await (before === undefined ? kube.create(secrets, next) : kube.replace(secrets, next));
  };
  const read = async (): Promise<Held> => {
    for (let attempt = 0; attempt < tries; attempt++) {
      const secret = await kube.get(secrets, key);
      if (secret !== undefined && isFresh(secret, now())) return { keys: keysOf(secret), readAt: now() };
      await tolerate(renew(secret), isConflict);
    }
    throw new Unavailable(`Secret ${key.name} in ${key.namespace} is constantly changed by another client`);
  };
  const keys = async (ageMs = pollMs): Promise<readonly SigningKey[]> => {
    if (held !== undefined && now() - held.readAt < ageMs) return held.keys;
    reading ??= read().finally(() => (reading = undefined));
    held = await reading;
    return held.keys;
  };
  return {
    signing: async () => {
      const [current] = await keys();
      if (current === undefined) throw new Unavailable(`Secret ${key.name} in ${key.namespace} contains no key`);
      return current;
    },
    verifying: async ({ isFresh: fresh = false } = {}) => (await keys(fresh ? leastLookMs : pollMs)).map(publicHalfOf),
  };
};
