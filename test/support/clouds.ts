// Google's and Azure's token services and stores, as far as their documents say what they demand: signatures, audiences, scopes, versions and expiry
// are verified, and what is refused is refused as they do it.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { type CryptoKey, SignJWT, exportPKCS8, generateKeyPair, jwtVerify } from 'jose';
import { CloudEndpoints } from '#shared/clients/cloud/endpoints.ts';
import { type CloudAnswer, type CloudRequest, json, listen, xmlError } from '#test/support/cloud-http.ts';

interface Issued {
  readonly scope: string;
  expires: number;
}

/** Tokens that a service has issued. */
const createTokens = (now: () => number) => {
  const issued = new Map<string, Issued>();
  return {
    issue: (scope: string, seconds: number): string => {
      const value = `token-${randomBytes(12).toString('hex')}`;
      issued.set(value, { scope, expires: now() + seconds * 1000 });
      return value;
    },
    scopeOf: (header: string | undefined): string | undefined => {
      const found = issued.get(/^Bearer (.+)$/.exec(header ?? '')?.[1] ?? '');
      return found === undefined || found.expires <= now() ? undefined : found.scope;
    },
    revoke: () => issued.clear(),
    count: () => issued.size,
  };
};

const scopePrefix = 'https://www.googleapis.com/auth/';

export interface Clouds {
  readonly endpoints: CloudEndpoints;
  readonly google: {
    /** The key file of its one service account. */
    readonly keyFile: Readonly<Record<string, string>>;
    readonly bucket: string;
  };
  readonly azure: { readonly container: string; readonly sas: (over?: Readonly<Record<string, string>>) => string };
  /** A token of a pod, as the API server signs it. */
  readonly podToken: (audience: string) => Promise<string>;
  readonly requests: { readonly service: string; readonly request: CloudRequest }[];
  /** Tokens that were issued and not revoked. */
  readonly tokens: { readonly revoke: () => void; readonly count: () => number };
  readonly close: () => Promise<void>;
}

export interface CloudOptions {
  /** What the stores do once a request is authorized. `mayWrite`: its token or signature permits it. */
  readonly store: (cloud: 'google' | 'azure', request: CloudRequest, mayWrite: boolean) => CloudAnswer;
  readonly tokenSeconds?: number;
  readonly now?: () => number;
}

export const provider = 'projects/1234/locations/global/workloadIdentityPools/cluster/providers/bullion';
export const tenant = '11111111-2222-3333-4444-555555555555';
export const client = '66666666-7777-8888-9999-000000000000';
const email = 'images@golden.iam.gserviceaccount.com';
const account = 'golden';

/** The string that a service signature of a container is made of, in the order of version 2020-12-06. */
const signedText = (fields: URLSearchParams, container: string): string =>
  [
    fields.get('sp'),
    fields.get('st'),
    fields.get('se'),
    `/blob/${account}/${container}`,
    ...['si', 'sip', 'spr', 'sv', 'sr', 'snapshot', 'ses', 'rscc', 'rscd', 'rsce', 'rscl', 'rsct'].map((name) =>
      fields.get(name),
    ),
  ]
    .map((text) => text ?? '')
    .join('\n');

const keyPair = () => generateKeyPair('RS256', { extractable: true });
type KeyPair = Awaited<ReturnType<typeof keyPair>>;
let pairs: Promise<readonly KeyPair[]> | undefined;
/** Of the service account and of the cluster: making them takes longer than a test. */
const keyPairs = () => (pairs ??= Promise.all([keyPair(), keyPair()]));
const verified = async (
  token: string,
  key: CryptoKey,
  audience: string,
): Promise<Record<string, unknown> | undefined> =>
  jwtVerify(token, key, { audience, requiredClaims: ['iss', 'exp', 'iat'] }).then(
    ({ payload }) => payload,
    () => undefined,
  );

/** Each listens on a port of 127.0.0.1, as the operator's endpoints name them. */
export const startClouds = async ({ store, tokenSeconds = 3600, now = Date.now }: CloudOptions): Promise<Clouds> => {
  const requests: Clouds['requests'] = [];
  const tokens = createTokens(now);
  const [ofAccount, ofCluster] = (await keyPairs()) as [KeyPair, KeyPair];
  const accountKey = randomBytes(32);
  const names = { bucket: 'images', container: 'images' };
  const refused = (description: string) => json(400, { error: 'invalid_grant', error_description: description });

  const googleToken = async ({ body, headers }: CloudRequest, url: string): Promise<CloudAnswer> => {
    if (headers['content-type'] !== 'application/x-www-form-urlencoded') return json(400, { error: 'invalid_request' });
    const form = new URLSearchParams(body.toString());
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer')
      return json(400, { error: 'unsupported_grant_type' });
    const claims = await verified(form.get('assertion') ?? '', ofAccount.publicKey, url);
    if (claims === undefined) return refused('Invalid JWT Signature.');
    if (claims['iss'] !== email) return refused('Not a valid email or user ID.');
    if (Number(claims['exp']) - Number(claims['iat']) > 3600) return refused('Token must be a short-lived token');
    const { scope } = claims;
    if (typeof scope !== 'string' || !scope.startsWith(scopePrefix)) return json(400, { error: 'invalid_scope' });
    return json(200, {
      access_token: tokens.issue(scope, tokenSeconds),
      expires_in: tokenSeconds,
      token_type: 'Bearer',
    });
  };

  const googleSts = async ({ body, headers }: CloudRequest): Promise<CloudAnswer> => {
    const form = new URLSearchParams(body.toString());
    const isForm =
      headers.authorization === undefined &&
      form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:token-exchange' &&
      form.get('requested_token_type') === 'urn:ietf:params:oauth:token-type:access_token' &&
      form.get('subject_token_type') === 'urn:ietf:params:oauth:token-type:jwt';
    if (!isForm) return json(400, { error: 'invalid_request' });
    if (form.get('audience') !== `//iam.googleapis.com/${provider}`)
      return json(400, { error: 'invalid_target', error_description: 'The target service indicated is invalid.' });
    const audience = `https://iam.googleapis.com/${provider}`;
    const claims = await verified(form.get('subject_token') ?? '', ofCluster.publicKey, audience);
    if (claims === undefined) return refused('The audience in ID Token does not match the expected audience.');
    return json(200, { access_token: tokens.issue(form.get('scope') ?? '', tokenSeconds), expires_in: tokenSeconds });
  };

  const googleIam = ({ headers, body }: CloudRequest): CloudAnswer => {
    if (tokens.scopeOf(headers.authorization) !== `${scopePrefix}cloud-platform`)
      return json(403, { error: { code: 403, status: 'PERMISSION_DENIED', message: 'insufficient scopes' } });
    const { scope, lifetime } = JSON.parse(body.toString()) as { scope: string[]; lifetime: string };
    if (lifetime !== '3600s')
      return json(400, { error: { code: 400, status: 'INVALID_ARGUMENT', message: 'lifetime' } });
    const expireTime = new Date(now() + tokenSeconds * 1000).toISOString();
    return json(200, { accessToken: tokens.issue(scope.join(' '), tokenSeconds), expireTime });
  };

  const google = await listen(async (request) => {
    const { pathname } = request.url;
    const service = pathname === '/token' ? 'token' : pathname.startsWith('/v1/') ? pathname.slice(4, 12) : 'google';
    requests.push({ service, request });
    if (pathname === '/token') return googleToken(request, `${google.url}/token`);
    if (pathname === '/v1/token') return googleSts(request);
    if (pathname === `/v1/projects/-/serviceAccounts/${encodeURIComponent(email)}:generateAccessToken`)
      return googleIam(request);
    const scope = tokens.scopeOf(request.headers.authorization);
    if (scope === undefined) return xmlError(401, 'AuthenticationRequired', 'Authentication required.');
    if (Object.keys(request.headers).some((name) => name.startsWith('x-amz-')))
      return xmlError(400, 'InvalidArgument', 'headers of another store');
    const right = scope.slice(`${scopePrefix}devstorage.`.length);
    if (!['read_only', 'read_write'].includes(right)) return xmlError(403, 'AccessDenied', 'Access denied.');
    return store('google', request, right === 'read_write');
  });

  const azureLogin = async ({ body }: CloudRequest): Promise<CloudAnswer> => {
    const form = new URLSearchParams(body.toString());
    const isForm =
      form.get('grant_type') === 'client_credentials' &&
      form.get('scope') === 'https://storage.azure.com/.default' &&
      form.get('client_assertion_type') === 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
    if (!isForm) return json(400, { error: 'invalid_request' });
    if (form.get('client_id') !== client)
      return json(400, { error: 'unauthorized_client', error_description: 'AADSTS700016: application not found' });
    const claims = await verified(
      form.get('client_assertion') ?? '',
      ofCluster.publicKey,
      'api://AzureADTokenExchange',
    );
    if (claims === undefined)
      return json(401, { error: 'invalid_client', error_description: 'AADSTS700212: No matching federated identity' });
    return json(200, {
      token_type: 'Bearer',
      expires_in: tokenSeconds,
      access_token: tokens.issue('azure', tokenSeconds),
    });
  };

  const isSigned = (url: URL): boolean => {
    const made = createHmac('sha256', accountKey).update(signedText(url.searchParams, names.container)).digest();
    const given = Buffer.from(url.searchParams.get('sig') ?? '', 'base64');
    return given.length === made.length && timingSafeEqual(given, made);
  };

  /** `undefined`: a signature, or a token of somebody, permits it. */
  const azureRefusal = ({ url, headers }: CloudRequest): CloudAnswer | undefined => {
    const { authorization, 'x-ms-version': version, 'x-ms-date': date } = headers;
    if (authorization === undefined) {
      const isCurrent = Date.parse(url.searchParams.get('se') ?? '') > now();
      if (!isSigned(url) || !isCurrent)
        return xmlError(403, 'AuthenticationFailed', 'Server failed to authenticate the request.');
      const mayRead = url.searchParams.get('sp')?.includes('r') === true;
      return mayRead ? undefined : xmlError(403, 'AuthorizationPermissionMismatch');
    }
    if (typeof version !== 'string' || version < '2017-11-09') return xmlError(403, 'AuthenticationFailed', 'version');
    if (Math.abs(Date.parse(String(date)) - now()) > 15 * 60_000) return xmlError(403, 'AuthenticationFailed', 'date');
    return tokens.scopeOf(authorization) === 'azure' ? undefined : xmlError(401, 'InvalidAuthenticationInfo');
  };

  const azure = await listen((request) => {
    const { pathname, searchParams } = request.url;
    requests.push({ service: pathname.endsWith('/oauth2/v2.0/token') ? 'login' : 'azure', request });
    if (pathname === `/${tenant}/oauth2/v2.0/token`) return azureLogin(request);
    const mayWrite = request.headers.authorization !== undefined || searchParams.get('sp')?.includes('w') === true;
    return azureRefusal(request) ?? store('azure', request, mayWrite);
  });

  return {
    requests,
    tokens,
    endpoints: CloudEndpoints.parse({
      googleStorage: google.url,
      googleToken: `${google.url}/token`,
      googleSts: `${google.url}/v1/token`,
      googleIam: google.url,
      azureLogin: azure.url,
      azureStorage: azure.url,
    }),
    google: {
      bucket: names.bucket,
      keyFile: {
        type: 'service_account',
        client_email: email,
        private_key_id: 'one',
        private_key: await exportPKCS8(ofAccount.privateKey),
        token_uri: `${google.url}/token`,
      },
    },
    azure: {
      container: names.container,
      sas: (over = {}) => {
        const fields = new URLSearchParams({ sv: '2021-12-02', sr: 'c', sp: 'rwdl', spr: 'https,http', ...over });
        if (over['se'] === undefined) fields.set('se', new Date(now() + 3_600_000).toISOString());
        const sig = createHmac('sha256', accountKey).update(signedText(fields, names.container)).digest('base64');
        fields.set('sig', sig);
        return fields.toString();
      },
    },
    podToken: (audience) =>
      new SignJWT({})
        .setProtectedHeader({ alg: 'RS256' })
        .setIssuer('https://cluster.example')
        .setSubject('system:serviceaccount:golden:default')
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime('1h')
        .sign(ofCluster.privateKey),
    close: async () => {
      await Promise.all([google.close(), azure.close()]);
    },
  };
};
