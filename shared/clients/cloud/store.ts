// An object store by the credentials that it is opened with: of S3 by keys, of Google by keys (HMAC), a key file or an identity, of Azure by a
// signature or an identity.
import { createHash } from 'node:crypto';
import { type CloudAccess, type CloudTools, createCloudClient } from '#shared/clients/cloud/authorized.ts';
import { hasSas } from '#shared/clients/cloud/azure.ts';
import { createBlobClient } from '#shared/clients/cloud/blobs.ts';
import { cloudOf, publicClouds } from '#shared/clients/cloud/endpoints.ts';
import { hasKeyFile } from '#shared/clients/cloud/google.ts';
import type { HttpClient } from '#shared/clients/http/client.ts';
import { type S3Client, createS3Client } from '#shared/clients/s3/client.ts';
import { parseS3Credentials } from '#shared/clients/s3/place.ts';
import type { S3Options } from '#shared/clients/s3/send.ts';
import { lookup } from '#shared/runtime/lookup.ts';

// Google's XML API is that of S3 as far as requests without a signature go, except for headers and for preconditions: those of Google name the
// generation of an object. It stands for the ETag here, so that what was read can be replaced on condition that it is unchanged.

const generationOf = (etag: string | undefined): string | undefined => /^"generation-(\d+)"$/.exec(etag ?? '')?.[1];

const preconditionOf = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> => {
  const generation = headers['if-none-match'] === '*' ? '0' : generationOf(headers['if-match']);
  return generation === undefined ? {} : { 'x-goog-if-generation-match': generation };
};

const isOfSdk = (name: string): boolean => /^(?:x-amz-|amz-sdk-|if-none-match$|if-match$)/.test(name);

/** The request is not signed, so the store verifies a body by its MD5. */
const digestOf = (body: Uint8Array | undefined): Readonly<Record<string, string>> =>
  body === undefined ? {} : { 'content-md5': createHash('md5').update(body).digest('base64') };

const asGoogle = (http: HttpClient): HttpClient => ({
  get: async (call) => {
    const lower = Object.fromEntries(
      Object.entries(call.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
    );
    const plain = Object.entries(lower).filter(([name]) => !isOfSdk(name));
    const answer = await http.get({
      ...call,
      headers: { ...Object.fromEntries(plain), ...preconditionOf(lower), ...digestOf(call.body) },
    });
    const generation = lookup(answer.headers, 'x-goog-generation');
    if (generation === undefined) return answer;
    return {
      status: answer.status,
      headers: { ...answer.headers, etag: `"generation-${generation}"` },
      body: answer.body,
      pour: (take) => answer.pour(take),
      discard: () => answer.discard(),
    };
  },
  close: () => http.close(),
});

/** Whether a Secret has a key that only a cloud understands. */
export const hasCloudKey = (secret: Readonly<Record<string, string>>): boolean => hasKeyFile(secret) || hasSas(secret);

export interface OpenedObjects {
  readonly s3: S3Client;
  readonly close: () => Promise<void>;
}

/** Makes no connection. Throws InvalidInput for missing keys of the Secret. */
export const openObjectStore = (
  place: Omit<S3Options, 'credentials'>,
  access: CloudAccess,
  tools: CloudTools,
): OpenedObjects => {
  const { http, endpoint } = place;
  const { secret, identity } = access;
  const { clouds = publicClouds } = tools;
  const url = endpoint === undefined ? undefined : new URL(endpoint);
  const cloud = url && cloudOf(url, clouds);
  const isPlain = cloud === undefined || (cloud === 'google' && secret !== undefined && !hasKeyFile(secret));
  if (url === undefined || (isPlain && identity === undefined)) {
    const credentials = secret && parseS3Credentials(secret);
    const close = async () => void (await Promise.all([http.close(), tools.asks.close()]));
    return { s3: createS3Client({ ...place, credentials }), close };
  }
  const client = createCloudClient(http, url, access, tools);
  const close = () => client.close();
  return cloud === 'azure'
    ? { s3: createBlobClient(client, url.origin), close }
    : { s3: createS3Client({ ...place, http: asGoogle(client), pathStyle: true }), close };
};
