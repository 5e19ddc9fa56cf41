// Signature version 4: authenticates a request by its headers or its query (a presigned URL).
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { StoreFault } from '#local-cluster/object-store/fault.ts';
import type { StoreRequest } from '#local-cluster/object-store/request.ts';

export interface StoreCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** For temporary credentials: every request must include it. */
  readonly sessionToken?: string | undefined;
}

export interface SignatureRules {
  readonly region: string;
  readonly credentials: readonly StoreCredentials[];
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** The verified credential of a signed request, and the key for signatures of its chunks. */
export interface Signed {
  readonly signature: string;
  readonly key: Buffer;
  readonly scope: string;
  readonly amzDate: string;
}

interface Claim {
  readonly accessKeyId: string;
  readonly date: string;
  readonly region: string;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  readonly amzDate: string;
  readonly token: string | undefined;
  /** Validity of a presigned URL in seconds. */
  readonly expires?: number;
}

const algorithm = 'AWS4-HMAC-SHA256';
/** Allowed clock skew. */
const skewMs = 15 * 60_000;

const hmac = (key: Buffer | string, text: string): Buffer => createHmac('sha256', key).update(text).digest();
export const sha256Hex = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

const malformed = (message: string, details: Record<string, string> = {}): StoreFault =>
  new StoreFault('AuthorizationHeaderMalformed', message, { details });

const parseHeader = ({ headers }: StoreRequest): Claim | undefined => {
  const text = headers['authorization'];
  if (text === undefined) return undefined;
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/,]+)\/(\d{8})\/([^/,]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      text,
    );
  const [, accessKeyId, date, region, signedHeaders, signature] = match ?? [];
  if (accessKeyId === undefined || date === undefined || region === undefined || signature === undefined) {
    throw malformed('the authorization header is not that of signature version 4 for s3');
  }
  const amzDate = headers['x-amz-date'] ?? '';
  const token = headers['x-amz-security-token'];
  return { accessKeyId, date, region, signature, signedHeaders: (signedHeaders ?? '').split(';'), amzDate, token };
};

const parsePresigned = ({ query }: StoreRequest): Claim | undefined => {
  if (query.get('X-Amz-Algorithm') === undefined) return undefined;
  const [accessKeyId = '', date = '', region = ''] = (query.get('X-Amz-Credential') ?? '').split('/');
  return {
    accessKeyId,
    date,
    region,
    signedHeaders: (query.get('X-Amz-SignedHeaders') ?? '').split(';'),
    signature: query.get('X-Amz-Signature') ?? '',
    amzDate: query.get('X-Amz-Date') ?? '',
    token: query.get('X-Amz-Security-Token'),
    expires: Number(query.get('X-Amz-Expires') ?? 'NaN'),
  };
};

const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );

const canonicalPath = (path: string): string =>
  path
    .split('/')
    .map((segment) => encode(decodeURIComponent(segment)))
    .join('/');

const canonicalQuery = (query: StoreRequest['query']): string =>
  [...query]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => [encode(name), encode(value)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');

const canonicalHash = (request: StoreRequest, { signedHeaders, expires }: Claim): string => {
  const { headers } = request;
  const lines = signedHeaders.map((name) => `${name}:${(headers[name] ?? '').trim().replaceAll(/\s+/g, ' ')}\n`);
  const payload = headers['x-amz-content-sha256'] ?? (expires === undefined ? sha256Hex('') : 'UNSIGNED-PAYLOAD');
  const parts = [
    request.method,
    canonicalPath(request.path),
    canonicalQuery(request.query),
    lines.join(''),
    signedHeaders.join(';'),
    payload,
  ];
  return sha256Hex(parts.join('\n'));
};

const parseAmzDate = (text: string): number =>
  Date.parse(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));

const checkTime = ({ amzDate, date, expires }: Claim, now: number): void => {
  const at = parseAmzDate(amzDate);
  if (Number.isNaN(at) || !amzDate.startsWith(date))
    throw malformed('the date is missing or not that of the credential');
  if (expires === undefined && Math.abs(now - at) > skewMs) {
    throw new StoreFault('RequestTimeTooSkewed', 'the clocks of client and store differ by more than 15 minutes');
  }
  if (expires !== undefined && !(now < at + expires * 1000))
    throw new StoreFault('AccessDenied', 'the URL has expired');
};

const checkRegion = (claim: Claim, region: string): void => {
  if (claim.region === region) return;
  const message = `the region '${claim.region}' is wrong; expecting '${region}'`;
  throw new StoreFault('AuthorizationHeaderMalformed', message, {
    details: { Region: region },
    headers: { 'x-amz-bucket-region': region },
  });
};

const findCredentials = (claim: Claim, credentials: readonly StoreCredentials[]): StoreCredentials => {
  const found = credentials.find(({ accessKeyId }) => accessKeyId === claim.accessKeyId);
  if (found === undefined) throw new StoreFault('InvalidAccessKeyId', 'the access key is not known here');
  if (found.sessionToken !== claim.token) throw new StoreFault('InvalidToken', 'the session token is missing or wrong');
  return found;
};

const isSame = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

/** `undefined` for a request without a signature. Throws StoreFault for an invalid signature. */
export const verifySignature = (request: StoreRequest, rules: SignatureRules): Signed | undefined => {
  const claim = parseHeader(request) ?? parsePresigned(request);
  if (claim === undefined) return undefined;
  checkRegion(claim, rules.region);
  checkTime(claim, rules.now());
  const { secretAccessKey } = findCredentials(claim, rules.credentials);
  const steps = [claim.date, claim.region, 's3', 'aws4_request'];
  const key = steps.reduce<Buffer | string>(hmac, `AWS4${secretAccessKey}`) as Buffer;
  const scope = steps.join('/');
  const toSign = [algorithm, claim.amzDate, scope, canonicalHash(request, claim)].join('\n');
  const signature = hmac(key, toSign).toString('hex');
  if (!claim.signedHeaders.includes('host') || !isSame(signature, claim.signature)) {
    throw new StoreFault('SignatureDoesNotMatch', 'the signature is not that of this request and the secret key');
  }
  return { signature, key, scope, amzDate: claim.amzDate };
};

/** The signature of one chunk of a body that is signed while it is sent; each covers the previous one. */
export const signChunk = (signed: Signed, before: string, data: Uint8Array): string =>
  hmac(
    signed.key,
    [`${algorithm}-PAYLOAD`, signed.amzDate, signed.scope, before, sha256Hex(''), sha256Hex(data)].join('\n'),
  ).toString('hex');
