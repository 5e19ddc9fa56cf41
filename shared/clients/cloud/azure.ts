// Access to Azure Blob Storage: by a shared access signature, or by a token of Entra for a workload identity.
import type { CloudEndpoints } from '#shared/clients/cloud/endpoints.ts';
import { type Exchange, type Token, requestToken } from '#shared/clients/cloud/exchange.ts';
import type { WorkloadIdentity } from '#shared/clients/cloud/identity.ts';
import { HttpFailure } from '#shared/clients/http/errors.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** The first is ours, the other the variable that Azure's tools read. */
const sasNames = ['sasToken', 'AZURE_STORAGE_SAS_TOKEN'] as const;

export const hasSas = (secret: Readonly<Record<string, string>>): boolean =>
  sasNames.some((name) => secret[name] !== undefined);

interface Right {
  /** Letter among the permissions of a signature. */
  readonly letter: 'r' | 'w';
  readonly of: string;
}
const rights = {
  read: [{ letter: 'r', of: 'read' }],
  write: [
    { letter: 'r', of: 'read' },
    { letter: 'w', of: 'write' },
  ],
} as const satisfies Readonly<Record<string, readonly Right[]>>;
export type CloudUse = keyof typeof rights;

/**
 * The query of a shared access signature, without a question mark. Throws InvalidInput if it is missing or is none, and HttpFailure if it has
 * expired, is not valid yet, or does not permit the use; neither has any content of the Secret.
 */
export const parseSas = (
  secret: Readonly<Record<string, string>>,
  secretName: string,
  { use, now }: { readonly use: CloudUse; readonly now: number },
): string => {
  const name = sasNames.find((one) => secret[one] !== undefined);
  if (name === undefined) {
    throw new InvalidInput(
      `the Secret ${secretName} needs the key sasToken with a shared access signature of Azure, such as "sv=…&sp=r&se=…&sig=…"`,
    );
  }
  const where = `the shared access signature in the Secret ${secretName}`;
  const query = (secret[name] ?? '').trim().replace(/^.*\?/s, '');
  const fields = new URLSearchParams(query);
  if (!fields.get('sig') || !fields.get('sv') || /[\s#]/.test(query)) {
    throw new InvalidInput(`${where} is none: it needs sv and sig, as Azure shows it`);
  }
  // A stored access policy may state expiry, start and permissions instead.
  const [expiry, start] = [Date.parse(fields.get('se') ?? ''), Date.parse(fields.get('st') ?? '')];
  if (expiry <= now) {
    throw refused(`${where} expired at ${new Date(expiry).toISOString()}: store a new one in the Secret`);
  }
  if (start > now) throw refused(`${where} is not valid before ${new Date(start).toISOString()}`);
  const permitted = fields.get('sp');
  const missing = rights[use].filter(({ letter }) => permitted !== null && !permitted.includes(letter));
  if (missing.length > 0) {
    throw refused(`${where} does not permit to ${missing.map(({ of }) => of).join(' and ')}: create one that does`);
  }
  return query;
};

const refused = (message: string): HttpFailure => new HttpFailure('CredentialsRefused', message);

/** Required for every request that is authorized; tokens need 2017-11-09 at least. */
const version = '2021-12-02';

export const azureHeaders = (now: number): Readonly<Record<string, string>> => ({
  'x-ms-version': version,
  'x-ms-date': new Date(now).toUTCString(),
});

interface Federated {
  readonly identity: Extract<WorkloadIdentity, { cloud: 'azure' }>;
  /** Of the pod. */
  readonly token: string;
}

export const tokenForAzureIdentity = (
  exchange: Exchange,
  { identity: { tenant, client }, token }: Federated,
  { azureLogin }: CloudEndpoints,
): Promise<Token> =>
  requestToken(exchange, {
    url: `${azureLogin}/${tenant}/oauth2/v2.0/token`,
    what: `the workload identity of the pod for the application ${client}`,
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: client,
      scope: 'https://storage.azure.com/.default',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: token,
    }),
  });
