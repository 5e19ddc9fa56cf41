// The store that a spec names, with its mounted credentials: for sources and for exports.
import { type S3Client, createS3Client } from '#shared/clients/s3/client.ts';
import { parseS3Credentials } from '#shared/clients/s3/credentials.ts';
import { readBundle, readSecret } from '#shared/transfer/source/access.ts';
import { type ClientSpec, openClient, parseUrl } from '#shared/transfer/source/client.ts';
import type { StoredObject } from '#shared/transfer/spec.ts';

export interface OpenStore {
  readonly s3: S3Client;
  readonly close: () => Promise<void>;
}

/** Nothing is connected to yet. Throws TransferError, or InvalidInput for what the Secret lacks. */
export const openStore = async (place: StoredObject, spec: ClientSpec): Promise<OpenStore> => {
  const { endpoint, region, pathStyle } = place;
  if (endpoint !== undefined) parseUrl(endpoint);
  const secret = await readSecret(place, { of: 'the object store', hint: 'the keys accessKeyId and secretKey' });
  const credentials = secret === undefined ? undefined : parseS3Credentials(secret);
  const http = openClient(spec, (await readBundle(place.ca)) ?? secret?.['ca.crt'] ?? place.caBundle);
  return { s3: createS3Client({ http, endpoint, region, pathStyle, credentials }), close: () => http.close() };
};
