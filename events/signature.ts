// The sender of an event is authenticated by a signature over its content, since a Broker preserves nothing else about a sender. Transfers sign their
// reports, and each is verified before it is recorded in a status. Ed25519; the signature is the extension `signature`.
import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import type { CloudEvent } from '#events/event.ts';

/** The same text for the same data, however a Broker serialized it in between. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );

const signedText = ({ type, id, source, subject, data }: CloudEvent): Buffer =>
  Buffer.from(canonical([type, id, source, subject ?? '', data ?? null]));

/** `privateKey` is PEM. */
export const signEvent = <E extends CloudEvent>(event: E, privateKey: string): E => {
  const signature = sign(null, signedText(event), createPrivateKey(privateKey)).toString('base64');
  return { ...event, extensions: { ...event.extensions, signature } };
};

/** `publicKey` is base64 of DER (SPKI). Returns false as well when either is missing or invalid. */
export const isSignedBy = (event: CloudEvent, publicKey: string | undefined): boolean => {
  const { signature } = event.extensions;
  if (publicKey === undefined || typeof signature !== 'string') return false;
  try {
    const key = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' });
    if (key.asymmetricKeyType !== 'ed25519') return false;
    return verify(null, signedText(event), key, Buffer.from(signature, 'base64'));
  } catch {
    return false;
  }
};
