// Pushes to one repository of a registry, as the OCI distribution specification has it: blobs in chunks, and manifests. Used by exports.
import type { Descriptor } from '#shared/clients/registry/manifest.ts';
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { createRegistryClient } from '#shared/clients/registry/client.ts';
import { type Reference, formatReference } from '#shared/clients/registry/reference.ts';
import { RegistryFailure } from '#shared/clients/registry/refusal.ts';
import { type RegistryRequest, type SessionOptions, createSession } from '#shared/clients/registry/session.ts';

/** An upload in progress. */
export interface BlobUpload {
  /** Where the next chunk is sent. The registry may change it with each answer. */
  readonly url: URL;
  /** Bytes that the registry has. */
  readonly offset: number;
}

export interface TaggedManifest {
  readonly digest: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly layers: readonly Descriptor[];
}

/** Every method throws RegistryFailure, HttpFailure, or the reason of the signal. */
export interface RegistryPusher {
  /** What a tag names; `undefined`: nothing. Annotations and layers of an index are not read. */
  find(tag: string): Promise<TaggedManifest | undefined>;
  hasBlob(digest: string): Promise<boolean>;
  begin(): Promise<BlobUpload>;
  append(upload: BlobUpload, chunk: Uint8Array): Promise<BlobUpload>;
  /** How far an upload is after an error. Fails with ImageNotFound if the registry does not know it any more. */
  look(upload: BlobUpload): Promise<BlobUpload>;
  /** The registry compares the digest. */
  commit(upload: BlobUpload, digest: string): Promise<void>;
  cancel(upload: BlobUpload): Promise<void>;
  putManifest(tag: string, manifest: Uint8Array, mediaType: string): Promise<void>;
  removeManifest(digest: string): Promise<void>;
}

type Call = Omit<RegistryRequest, 'repository' | 'what'>;
/** Reads no body. */
type Ask = (call: Call) => Promise<HttpResponse>;

const orAbsent = <T>(asked: Promise<T>): Promise<T | undefined> =>
  asked.catch((error: unknown) => {
    if (error instanceof RegistryFailure && error.code === 'ImageNotFound') return undefined;
    throw error;
  });

/** Uploads stay at the registry: credentials are sent to it alone. */
const next = (before: URL, response: HttpResponse, offset: number): BlobUpload => {
  const url = new URL(response.headers['location'] ?? before.href, before);
  if (url.host === before.host && url.protocol === before.protocol) return { url, offset };
  throw new RegistryFailure('RegistryFailed', `${before.host} sends uploads to another server, ${url.host}`);
};

const uploads = (ask: Ask, base: URL): Pick<RegistryPusher, 'begin' | 'append' | 'look' | 'commit' | 'cancel'> => ({
  begin: async () => next(base, await ask({ method: 'POST', path: base }), 0),
  append: async ({ url, offset }, chunk) => {
    const end = offset + chunk.length;
    const headers = { 'content-type': 'application/octet-stream', 'content-range': `${offset}-${end - 1}` };
    return next(url, await ask({ method: 'PATCH', path: url, body: chunk, headers }), end);
  },
  look: async ({ url }) => {
    const response = await ask({ path: url });
    // `0-0` for no byte as well as for one: a chunk has more.
    const last = Number(/^(?:bytes=)?0-(\d+)$/.exec(response.headers['range'] ?? '')?.[1] ?? 0);
    return next(url, response, last === 0 ? 0 : last + 1);
  },
  commit: async ({ url }, digest) => {
    const whole = new URL(url);
    whole.searchParams.set('digest', digest);
    await ask({ method: 'PUT', path: whole, headers: { 'content-type': 'application/octet-stream' } });
  },
  cancel: async ({ url }) => {
    await ask({ method: 'DELETE', path: url });
  },
});

export const createRegistryPusher = (
  image: Pick<Reference, 'host' | 'repository'>,
  options: Omit<SessionOptions, 'host' | 'mayPush'>,
): RegistryPusher => {
  const { host, repository } = image;
  const all = { ...options, host, mayPush: true };
  const session = createSession(all);
  const client = createRegistryClient(all);
  const ask: Ask = async (call) => {
    const response = await session.ask({ ...call, repository, what: `a push to ${host}/${repository}` });
    response.discard();
    return response;
  };
  return {
    ...uploads(ask, session.urlOf(`${repository}/blobs/uploads/`)),
    find: async (tag) => {
      const found = await orAbsent(client.manifest({ host, repository, tag }));
      if (found === undefined) return undefined;
      if (found.is === 'index') return { digest: found.digest, annotations: {}, layers: [] };
      const { annotations = {}, layers } = found.image;
      return { digest: found.digest, annotations, layers };
    },
    hasBlob: async (digest) =>
      (await orAbsent(ask({ method: 'HEAD', path: `${repository}/blobs/${digest}` }))) !== undefined,
    putManifest: async (tag, manifest, mediaType) => {
      const path = `${repository}/manifests/${tag}`;
      await ask({ method: 'PUT', path, body: manifest, headers: { 'content-type': mediaType } });
    },
    removeManifest: async (digest) => {
      await ask({ method: 'DELETE', path: `${repository}/manifests/${digest}` });
    },
  };
};

/** For messages. */
export const shownImage = (image: Reference): string => `docker://${formatReference(image)}`;
