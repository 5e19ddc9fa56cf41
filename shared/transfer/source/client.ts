// The HTTP client and the object store client of a transfer: allowed addresses, timeouts, certificates and credentials.
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { type HttpClient, createHttpClient } from '#shared/clients/http/client.ts';
import { redactUrl } from '#shared/runtime/redact.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import type { TransferSpec, StoredObject } from '#shared/transfer/spec.ts';
import { type S3Client, createS3Client } from '#shared/clients/s3/client.ts';
import { parseS3Credentials } from '#shared/clients/s3/credentials.ts';
import { readBundle, readSecret } from '#shared/transfer/source/access.ts';

export const parseUrl = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new TransferError('InvalidSpec', `"${redactUrl(text)}" is not an http or https URL`);
};

export type ClientSpec = Pick<TransferSpec, 'allowedAddresses' | 'limits' | 'proxies'>;

export const openClient = (spec: ClientSpec, ca: string | undefined): HttpClient =>
  createHttpClient({
    isRefused: createAddressPolicy(spec.allowedAddresses),
    idleMs: spec.limits.idleSeconds * 1000,
    floor:
      spec.limits.floor === undefined
        ? undefined
        : { bytes: spec.limits.floor.bytes, windowMs: spec.limits.floor.seconds * 1000 },
    ca,
    proxies: spec.proxies,
  });

/** The store of a spec, with its mounted credentials: for sources and for exports. */
interface OpenStore {
  readonly s3: S3Client;
  readonly close: () => Promise<void>;
}

/** Makes no connection. Throws TransferError, or InvalidInput for missing keys of the Secret. */
export const openStore = async (place: StoredObject, spec: ClientSpec): Promise<OpenStore> => {
  const { endpoint, region, pathStyle } = place;
  if (endpoint !== undefined) parseUrl(endpoint);
  const secret = await readSecret(place, { of: 'the object store', hint: 'the keys accessKeyId and secretKey' });
  const credentials = secret === undefined ? undefined : parseS3Credentials(secret);
  const http = openClient(spec, (await readBundle(place.ca)) ?? secret?.['ca.crt'] ?? place.caBundle);
  return { s3: createS3Client({ http, endpoint, region, pathStyle, credentials }), close: () => http.close() };
};
