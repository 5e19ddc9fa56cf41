// Access tokens of Google: for the key file of a service account, and for a workload identity.
import { z } from 'zod';
import type { CloudEndpoints } from '#shared/clients/cloud/endpoints.ts';
import { type Exchange, type Token, requestToken } from '#shared/clients/cloud/exchange.ts';
import type { WorkloadIdentity } from '#shared/clients/cloud/identity.ts';
import { parseJson } from '#shared/runtime/json.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** The first is the key of CDI, the other the name that Google's documents give to the file. */
const keyNames = ['credentials.json', 'key.json'] as const;

export const hasKeyFile = (secret: Readonly<Record<string, string>>): boolean =>
  keyNames.some((name) => secret[name] !== undefined);

/** In key files of earlier years; keys are sent to none of them. */
const formerTokenUris = [
  'https://oauth2.googleapis.com/token',
  'https://accounts.google.com/o/oauth2/token',
  'https://www.googleapis.com/oauth2/v4/token',
];

const KeyFile = z.looseObject({
  type: z.literal('service_account'),
  client_email: z.string().min(1),
  private_key: z.string().min(1),
  private_key_id: z.string().optional(),
  token_uri: z.string().optional(),
});
export type ServiceAccountKey = z.infer<typeof KeyFile>;

/** Throws InvalidInput, without any content of the Secret, if it has no usable key file. */
export const parseServiceAccountKey = (
  secret: Readonly<Record<string, string>>,
  secretName: string,
  { googleToken }: CloudEndpoints,
): ServiceAccountKey => {
  const name = keyNames.find((one) => secret[one] !== undefined);
  if (name === undefined) {
    throw new InvalidInput(
      `the Secret ${secretName} needs the key credentials.json with the key file of a Google service account; HMAC keys belong to a source or destination s3`,
    );
  }
  const where = `the key ${name} of the Secret ${secretName}`;
  const file = parseJson(secret[name] ?? '');
  if (file === undefined) throw new InvalidInput(`${where} is not JSON: store the key file as it was downloaded`);
  const { data, error } = KeyFile.safeParse(file);
  if (data === undefined) {
    const fields = error.issues.map(({ path }) => path.join('.') || 'type').join(', ');
    throw new InvalidInput(
      `${where} is not the key file of a service account (${fields}): create one with "gcloud iam service-accounts keys create"`,
    );
  }
  if (data.token_uri !== undefined && ![googleToken, ...formerTokenUris].includes(data.token_uri)) {
    throw new InvalidInput(
      `${where} names another token service than ${googleToken}: keys are sent to no other, unless an operator sets CLOUD_ENDPOINTS`,
    );
  }
  return data;
};

/** Seconds; Google accepts an hour at most. */
const assertionSeconds = 3600;

const sign = async (key: ServiceAccountKey, scope: string, audience: string, now: number, where: string) => {
  const { SignJWT, importPKCS8 } = await import('jose');
  const privateKey = await importPKCS8(key.private_key, 'RS256').catch(() => {
    throw new InvalidInput(`private_key of ${where} is not a private key in PEM form: store the key file unchanged`);
  });
  const issued = Math.floor(now / 1000);
  const { private_key_id: kid } = key;
  return new SignJWT({ scope })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(kid === undefined ? {} : { kid }) })
    .setIssuer(key.client_email)
    .setAudience(audience)
    .setIssuedAt(issued)
    .setExpirationTime(issued + assertionSeconds)
    .sign(privateKey);
};

interface Keyed {
  readonly key: ServiceAccountKey;
  readonly secretName: string;
  readonly scope: string;
}

export const tokenForKey = async (
  exchange: Exchange,
  { key, secretName, scope }: Keyed,
  { googleToken: url }: CloudEndpoints,
): Promise<Token> => {
  const what = `the service account key in the Secret ${secretName}`;
  const assertion = await sign(key, scope, url, exchange.now(), what);
  const grant_type = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
  return requestToken(exchange, { url, what, body: new URLSearchParams({ grant_type, assertion }) });
};

interface Federated {
  readonly identity: Extract<WorkloadIdentity, { cloud: 'google' }>;
  /** Of the pod. */
  readonly token: string;
  readonly scope: string;
}

/** To impersonate a service account is itself a request to an API of Google. */
const impersonationScope = 'https://www.googleapis.com/auth/cloud-platform';

export const tokenForGoogleIdentity = async (
  exchange: Exchange,
  { identity: { provider, account }, token, scope }: Federated,
  { googleSts, googleIam }: CloudEndpoints,
): Promise<Token> => {
  const federated = await requestToken(exchange, {
    url: googleSts,
    what: 'the workload identity of the pod',
    body: new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      audience: `//iam.googleapis.com/${provider}`,
      scope: account === undefined ? scope : impersonationScope,
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      subject_token: token,
    }),
  });
  if (account === undefined) return federated;
  return requestToken(exchange, {
    url: `${googleIam}/v1/projects/-/serviceAccounts/${encodeURIComponent(account)}:generateAccessToken`,
    what: `the workload identity of the pod for ${account}`,
    headers: { authorization: `Bearer ${federated.value}` },
    body: { scope: [scope], lifetime: '3600s' },
  });
};
