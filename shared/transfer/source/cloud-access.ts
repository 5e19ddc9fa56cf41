// Access to an object of a cloud: by its mounted Secret, or by the token of the pod.
import type { CloudUse } from '#shared/clients/cloud/azure.ts';
import { createCloudClient } from '#shared/clients/cloud/authorized.ts';
import { type Cloud, cloudOf, publicClouds } from '#shared/clients/cloud/endpoints.ts';
import type { HttpClient } from '#shared/clients/http/client.ts';
import { type ClientSpec, openCloudTools, readSecret, readWorkload } from '#shared/transfer/source/access.ts';
import type { HttpSource } from '#shared/transfer/spec.ts';

const hints: Readonly<Record<Cloud, string>> = {
  google: 'the key credentials.json: the key file of a service account',
  azure: 'the key sasToken: a shared access signature',
};

interface Place {
  readonly url: URL;
  readonly http: HttpClient;
  readonly use: CloudUse;
}

/** `http` with the access of the source; `undefined`: the URL is not one of a cloud. Makes no connection. */
export const openCloud = async (
  source: Pick<HttpSource, 'secretDir' | 'secretName' | 'workload'>,
  { url, http, use }: Place,
  spec: ClientSpec,
): Promise<HttpClient | undefined> => {
  const { secretName, workload } = source;
  const cloud = cloudOf(url, spec.clouds ?? publicClouds);
  if (cloud === undefined && workload === undefined) return undefined;
  const hint = cloud === undefined ? '' : hints[cloud];
  const secret = await readSecret(source, { of: 'the source', hint });
  return createCloudClient(http, url, { secret, secretName, use, ...readWorkload(source) }, openCloudTools(spec));
};
