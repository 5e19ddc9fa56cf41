// Bearer tokens: the administrator's, and signed ones for service accounts (TokenRequest), which become invalid with their account.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  randomUUID,
  sign,
  verify,
} from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Store } from '../store/store.ts';
import { keepFile } from './keep.ts';
import { type User, serviceAccountUser, superGroup } from './user.ts';

export interface TokenRequest {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
  /** The token becomes invalid when this object is deleted, too. */
  readonly bound?: { readonly kind: 'Pod' | 'Secret'; readonly name: string; readonly uid: string };
}

export interface Verified {
  readonly user: User;
  readonly audiences: readonly string[];
}

export interface Tokens {
  readonly admin: string;
  /** Audiences of the API server itself. */
  readonly audiences: readonly string[];
  readonly issue: (request: TokenRequest) => { readonly token: string; readonly expires: Date };
  /** Undefined when the token is unknown, has a wrong signature, has expired, or its account was deleted. */
  readonly verify: (token: string) => Verified | undefined;
}

export interface Secrets {
  readonly adminToken: string;
  readonly privateKeyPem: string;
}

export const issuer = 'https://kubernetes.default.svc';

const readOrMake = (file: string, make: () => string): string => {
  if (existsSync(file)) return readFileSync(file, 'utf8');
  const text = make();
  keepFile(file, text);
  return text;
};

const makeKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

/** Stored in the data directory; without one, in memory for the lifetime of the server. */
export const loadSecrets = (dataDir: string | undefined): Secrets => {
  const makeToken = () => randomBytes(24).toString('base64url');
  if (dataDir === undefined) return { adminToken: makeToken(), privateKeyPem: makeKey() };
  return {
    adminToken: readOrMake(join(dataDir, 'admin-token'), makeToken),
    privateKeyPem: readOrMake(join(dataDir, 'service-account.key'), makeKey),
  };
};

/** Maximum number of tokens whose claims are cached. */
const mostSigned = 1_000;

interface Named {
  readonly name: string;
  readonly uid: string;
}

interface Claims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: readonly string[];
  readonly exp: number;
  readonly jti: string;
  readonly 'kubernetes.io': {
    readonly namespace: string;
    readonly serviceaccount: Named;
    readonly pod?: Named;
    readonly secret?: Named;
  };
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

const decode = (part: string | undefined): unknown => {
  try {
    return JSON.parse(Buffer.from(part ?? '', 'base64url').toString());
  } catch {
    return undefined;
  }
};

/** A UID that is constant for the lifetime of the token. */
const uidOf = (token: string): string =>
  createHash('sha256')
    .update(token)
    .digest('hex')
    .slice(0, 32)
    .replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');

export const createTokens = (secrets: Secrets, store: Store, clock: () => Date): Tokens => {
  const privateKey = createPrivateKey(secrets.privateKeyPem);
  const publicKey = createPublicKey(privateKey);
  const keyId = createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url');
  const admin: Verified = {
    user: { username: 'admin', uid: uidOf(secrets.adminToken), groups: [superGroup, 'system:authenticated'] },
    audiences: [issuer],
  };

  const issue = (request: TokenRequest) => {
    const now = Math.floor(clock().getTime() / 1000);
    const { bound } = request;
    const exp = now + request.expirationSeconds;
    const claims = {
      aud: request.audiences,
      exp,
      iat: now,
      iss: issuer,
      jti: randomUUID(),
      'kubernetes.io': {
        namespace: request.namespace,
        ...(bound === undefined ? {} : { [bound.kind.toLowerCase()]: { name: bound.name, uid: bound.uid } }),
        serviceaccount: { name: request.name, uid: request.uid },
      },
      nbf: now,
      sub: `system:serviceaccount:${request.namespace}:${request.name}`,
    };
    const head = `${encode({ alg: 'ES256', kid: keyId })}.${encode(claims)}`;
    const signature = sign('sha256', Buffer.from(head), { key: privateKey, dsaEncoding: 'ieee-p1363' });
    return { token: `${head}.${signature.toString('base64url')}`, expires: new Date(exp * 1000) };
  };

  const isSigned = (head: string, signature: string): boolean =>
    verify(
      'sha256',
      Buffer.from(head),
      { key: publicKey, dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature, 'base64url'),
    );

  const signedClaimsOf = (token: string): Claims | undefined => {
    const [header = '', payload = '', signature, ...more] = token.split('.');
    if (signature === undefined || more.length > 0 || !isSigned(`${header}.${payload}`, signature)) return undefined;
    return decode(payload) as Claims | undefined;
  };

  /** Tokens with a verified signature, since each is sent with many requests; whether they are still valid is checked each time. */
  const signed = new Map<string, Claims>();
  const knownClaimsOf = (token: string): Claims | undefined => {
    const claims = signed.get(token) ?? signedClaimsOf(token);
    if (claims === undefined) return undefined;
    if (signed.size >= mostSigned) signed.clear();
    signed.set(token, claims);
    return claims;
  };

  /** The claims of a valid token that this server signed. */
  const claimsOf = (token: string): Claims | undefined => {
    const claims = knownClaimsOf(token);
    return claims?.iss === issuer && claims.exp * 1000 > clock().getTime() ? claims : undefined;
  };

  const verifyToken = (token: string): Verified | undefined => {
    if (token === secrets.adminToken) return admin;
    const claims = claimsOf(token);
    if (claims === undefined) return undefined;
    const { namespace, serviceaccount, pod, secret } = claims['kubernetes.io'];
    const isAlive = (collection: string, named: Named | undefined): boolean =>
      named === undefined ||
      store.get({ collection, namespace, name: named.name })?.object().metadata.uid === named.uid;
    if (!isAlive('serviceaccounts', serviceaccount) || !isAlive('pods', pod) || !isAlive('secrets', secret)) {
      return undefined;
    }
    const user = serviceAccountUser(namespace, serviceaccount.name, serviceaccount.uid);
    const extra = { 'authentication.kubernetes.io/credential-id': [`JTI=${claims.jti}`] };
    return { user: { ...user, extra }, audiences: claims.aud };
  };

  return { admin: secrets.adminToken, audiences: [issuer], issue, verify: verifyToken };
};
