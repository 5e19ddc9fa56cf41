// Workload identity: the token of a pod's service account in place of a stored credential. How users name the identity, and which audience its
// token has. Pure.
import { z } from 'zod';

const Google = z.object({
  cloud: z.literal('google'),
  /** `projects/<number>/locations/global/workloadIdentityPools/<pool>/providers/<provider>` */
  provider: z.string(),
  /** Service account of Google that is impersonated. Default: the bucket is open to the principal of the pool itself. */
  account: z.string().optional(),
});
const Azure = z.object({ cloud: z.literal('azure'), tenant: z.string(), client: z.string() });

export const WorkloadIdentity = z.discriminatedUnion('cloud', [Google, Azure]);
export type WorkloadIdentity = z.infer<typeof WorkloadIdentity>;

const name = '[a-z0-9-]{4,32}';
const uuid = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}';
const googleText = new RegExp(
  `^google:(projects/\\d+/locations/global/workloadIdentityPools/${name}/providers/${name})(?:,([a-z0-9-]+@[a-z0-9.-]+\\.gserviceaccount\\.com))?$`,
);
const azureText = new RegExp(`^azure:(${uuid})/(${uuid})$`);

export const identityForms =
  'google:projects/<number>/locations/global/workloadIdentityPools/<pool>/providers/<provider>[,<service account>] or azure:<tenant id>/<client id>';

/** `undefined`: the text has none of the forms. */
export const parseIdentity = (text: string): WorkloadIdentity | undefined => {
  const [, provider, account] = googleText.exec(text) ?? [];
  if (provider !== undefined) return { cloud: 'google', provider, ...(account === undefined ? {} : { account }) };
  const [, tenant, client] = azureText.exec(text) ?? [];
  return tenant === undefined || client === undefined ? undefined : { cloud: 'azure', tenant, client };
};

export const formatIdentity = (identity: WorkloadIdentity): string =>
  identity.cloud === 'azure'
    ? `azure:${identity.tenant}/${identity.client}`
    : `google:${identity.provider}${identity.account === undefined ? '' : `,${identity.account}`}`;

/** Of the token that the kubelet gives to the pod: only the cloud accepts it, the API server of the cluster never does. */
export const audienceOf = (identity: WorkloadIdentity): string =>
  identity.cloud === 'google' ? `https://iam.googleapis.com/${identity.provider}` : 'api://AzureADTokenExchange';
