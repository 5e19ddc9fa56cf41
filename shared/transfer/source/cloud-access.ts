// Access to an object of a cloud: by its mounted Secret, or by the token of the pod.
import { readFile } from 'node:fs/promises';
import { type CloudAccess, createCloudClient } from '#shared/clients/cloud/authorized.ts';
import { type Cloud, cloudOf, publicClouds } from '#shared/clients/cloud/endpoints.ts';
import type { HttpClient } from '#shared/clients/http/client.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { type ClientSpec, openClient, readSecret } from '#shared/transfer/source/access.ts';
import type { HttpSource } from '#shared/transfer/spec.ts';

const hints: Readonly<Record<Cloud, string>> = {
  google: 'the key credentials.json: the key file of a service account',
  azure: 'the key sasToken: a shared access signature',
};

const readPodToken = async (file: string): Promise<string> => {
  const token = await readFile(file, 'utf8').catch((error: unknown) => {
    const message = `cannot read the token of the pod for its workload identity: ${messageOf(error)}`;
    throw new TransferError('SourceForbidden', message, { cause: error, retryable: true });
  });
  return token.trim();
};

interface Place extends Pick<CloudAccess, 'use'> {
  readonly url: URL;
  readonly http: HttpClient;
}

/** `http` with the access of the source; `undefined`: the URL is not one of a cloud. Makes no connection. */
export const openCloud = async (
  { secretDir, secretName, workload }: Pick<HttpSource, 'secretDir' | 'secretName' | 'workload'>,
  { url, http, use }: Place,
  spec: ClientSpec,
): Promise<HttpClient | undefined> => {
  const { clouds = publicClouds } = spec;
  const cloud = cloudOf(url, clouds);
  if (cloud === undefined && workload === undefined) return undefined;
  const hint = cloud === undefined ? '' : hints[cloud];
  const secret = await readSecret({ secretDir, secretName }, { of: 'the source', hint });
  const access = {
    secret,
    secretName,
    use,
    ...(workload === undefined
      ? {}
      : { identity: workload.identity, readPodToken: () => readPodToken(workload.tokenFile) }),
  };
  const asks = openClient({ ...spec, reach: undefined }, undefined);
  return createCloudClient(http, url, access, { asks, now: Date.now, clouds });
};
