// Tokens issued by Bullion: JWTs signed with Ed25519 that grant one verb on one target until they expire. Issued by the transfer function,
// verified by it and by the pods it sends bytes to.
import { type KeyObject, createHash, createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '#shared/runtime/json.ts';

/** A token for one verb is not accepted for another. */
const tokenVerbs = ['upload', 'download', 'work'] as const;

export const TokenClaims = z.object({
  iss: z.literal('bullion'),
  /** The user who requested it. */
  sub: z.string(),
  verb: z.enum(tokenVerbs),
  /** `<plural>/<namespace>/<name>` of the target; for `work`, the UID of the object that a pod works for. */
  target: z.string(),
  /** Seconds since the epoch. */
  iat: z.number().int(),
  exp: z.number().int(),
});
export type TokenClaims = z.infer<typeof TokenClaims>;

export interface SigningKey {
  readonly id: string;
  readonly key: KeyObject;
}

export interface VerifyingKey {
  readonly id: string;
  readonly key: KeyObject;
}

/** Allowed clock skew between two machines, in seconds. */
const leewaySeconds = 10;

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

const decode = (part: string): unknown => parseJson(Buffer.from(part, 'base64url').toString());

const idOf = (key: KeyObject): string =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('base64url')
    .slice(0, 16);

/** Throws if the text is not a private key. */
export const toSigningKey = (pem: string): SigningKey => {
  const key = createPrivateKey(pem);
  return { id: idOf(createPublicKey(key)), key };
};

export const publicHalfOf = ({ id, key }: SigningKey): VerifyingKey => ({ id, key: createPublicKey(key) });

export const signToken = ({ id, key }: SigningKey, claims: Omit<TokenClaims, 'iss'>): string => {
  const head = `${encode({ alg: 'EdDSA', typ: 'JWT', kid: id })}.${encode({ iss: 'bullion', ...claims })}`;
  return `${head}.${sign(null, Buffer.from(head), key).toString('base64url')}`;
};

export type TokenVerdict =
  | { readonly is: 'good'; readonly claims: TokenClaims }
  /** Not a token of Bullion. */
  | { readonly is: 'malformed' }
  /** Signed with an unknown key, forged, or outside of its validity. */
  | { readonly is: 'unknown-key' | 'forged' | 'expired' };

const Header = z.object({ alg: z.literal('EdDSA'), kid: z.string() });

/** `now` is milliseconds since the epoch. */
export const verifyToken = (keys: readonly VerifyingKey[], token: string, now: number): TokenVerdict => {
  const [header = '', payload = '', signature = '', ...more] = token.split('.');
  const parsed = Header.safeParse(decode(header));
  const claims = TokenClaims.safeParse(decode(payload));
  if (more.length > 0 || !parsed.success || !claims.success) return { is: 'malformed' };
  const known = keys.find(({ id }) => id === parsed.data.kid);
  if (known === undefined) return { is: 'unknown-key' };
  const isSigned = verify(null, Buffer.from(`${header}.${payload}`), known.key, Buffer.from(signature, 'base64url'));
  if (!isSigned) return { is: 'forged' };
  const seconds = now / 1000;
  const isInTime = claims.data.exp + leewaySeconds > seconds && claims.data.iat - leewaySeconds <= seconds;
  return isInTime ? { is: 'good', claims: claims.data } : { is: 'expired' };
};

/** A key set (RFC 7517), as published. */
export const toKeySet = (keys: readonly VerifyingKey[]): { readonly keys: readonly object[] } => ({
  keys: keys.map(({ id, key }) => ({ ...key.export({ format: 'jwk' }), kid: id, use: 'sig', alg: 'EdDSA' })),
});

const KeySet = z.object({ keys: z.array(z.looseObject({ kid: z.string(), kty: z.literal('OKP'), x: z.string() })) });

/** Throws a ZodError if the value is not a key set. */
export const parseKeySet = (value: unknown): readonly VerifyingKey[] =>
  KeySet.parse(value).keys.map(({ kid, x }) => ({
    id: kid,
    key: createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }),
  }));
