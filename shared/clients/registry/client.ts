// Images in OCI registries, read-only: digests, manifests, tags, blobs. Used by polls and by the registry source of transfers.
import type { HttpResponse } from '#shared/clients/http/client.ts';
import { RegistryFailure } from '#shared/clients/registry/refusal.ts';
import {
  type IndexEntry,
  type Manifest,
  acceptedTypes,
  readEntries,
  readManifest,
} from '#shared/clients/registry/manifest.ts';
import { type Reference, formatReference, isDigest } from '#shared/clients/registry/reference.ts';
import { readBody, readJson } from '#shared/clients/registry/refusal.ts';
import { type RegistrySession, type SessionOptions, createSession } from '#shared/clients/registry/session.ts';

/** The manifest of a tag according to a HEAD request. */
export interface Head {
  readonly digest: string;
  /** As sent by the registry; empty if missing. */
  readonly mediaType: string;
  /** The place that answered, if mirrors are configured. */
  readonly saidBy?: string | undefined;
}

/** Every method throws RegistryFailure, HttpFailure, or the reason of the signal. */
export interface RegistryClient {
  /** Without fetching the manifest if the registry supports that. Does not count as a pull at Docker Hub. */
  head(image: Reference): Promise<Head>;
  /** Its digest is verified against that of the reference, if it has one. */
  manifest(image: Reference): Promise<Manifest>;
  /** Every tag of a repository. */
  tags(image: Reference): Promise<readonly string[]>;
  /** Manifests that refer to the one with this digest, such as signatures: from the referrers API, else from its fallback tag. */
  referrers(image: Reference & { readonly digest: string }): Promise<readonly IndexEntry[]>;
  /** A blob from byte `offset` on; the answer may start at 0 nevertheless (status 200 instead of 206). The reader must verify its digest. */
  blob(image: Reference, digest: string, offset: number): Promise<HttpResponse>;
}

const pathOf = ({ repository, tag, digest }: Reference): string =>
  `${repository}/manifests/${digest ?? tag ?? 'latest'}`;

/** A list of tags is read to its end, but an endless one is not. */
const mostPages = 1000;

const manifestCall = (image: Reference) => ({
  path: pathOf(image),
  repository: image.repository,
  what: formatReference(image),
  headers: { accept: acceptedTypes },
});

export const createRegistryClient = (options: SessionOptions): RegistryClient => {
  const session = createSession(options);
  const manifest = async (image: Reference): Promise<Manifest> => {
    const response = await session.ask(manifestCall(image));
    const bytes = await readBody(response, formatReference(image));
    const claimed = response.headers['docker-content-digest'];
    return readManifest(bytes, image.digest ?? (isDigest(claimed ?? '') ? claimed : undefined), formatReference(image));
  };
  return {
    manifest,
    head: async (image) => {
      const response = await session.ask({ ...manifestCall(image), method: 'HEAD' });
      response.discard();
      const digest = response.headers['docker-content-digest'] ?? '';
      const mediaType = response.headers['content-type']?.split(';')[0]?.trim() ?? '';
      if (isDigest(digest)) return { digest, mediaType };
      return { digest: (await manifest(image)).digest, mediaType };
    },
    tags: (image) => listTags(session, image),
    referrers: async (image) => {
      const listed = await listReferrers(session, image).catch(absent);
      if (listed !== undefined) return listed;
      const { host, repository, digest } = image;
      const standIn = await manifest({ host, repository, tag: digest.replace(':', '-') }).catch(absent);
      return standIn?.is === 'index' ? standIn.entries : [];
    },
    blob: (image, digest, offset) =>
      session.ask({
        path: `${image.repository}/blobs/${digest}`,
        repository: image.repository,
        what: `blob ${digest} of ${formatReference(image)}`,
        headers: offset === 0 ? {} : { range: `bytes=${offset}-` },
      }),
  };
};

const absent = (error: unknown): undefined => {
  if (error instanceof RegistryFailure && error.code === 'ImageNotFound') return undefined;
  throw error;
};

/** Of a list that is read to its end or to this many pages, for whoever hangs something on an image is a stranger. */
const mostReferrerPages = 8;

const listReferrers = async (
  session: RegistrySession,
  image: Reference & { readonly digest: string },
): Promise<readonly IndexEntry[]> => {
  const { repository, digest } = image;
  const what = `what refers to ${formatReference(image)}`;
  const list = `${repository}/referrers/${digest}`;
  const found: IndexEntry[] = [];
  let path: string | undefined = list;
  for (let page = 0; path !== undefined && page < mostReferrerPages; page += 1) {
    const response: HttpResponse = await session.ask({ path, repository, what });
    found.push(...readEntries(await readJson(response, what)));
    path = nextPage(response.headers['link'], list);
  }
  return found;
};

const listTags = async (session: RegistrySession, { repository, host }: Reference): Promise<readonly string[]> => {
  const what = `the tags of ${host}/${repository}`;
  const tags: string[] = [];
  let path: string | undefined = `${repository}/tags/list`;
  for (let page = 0; path !== undefined; page += 1) {
    if (page === mostPages) throw new RegistryFailure('RegistryFailed', `${what}: the list of tags has no end`);
    const response: HttpResponse = await session.ask({ path, repository, what });
    const body = (await readJson(response, what)) as { readonly tags?: unknown };
    if (Array.isArray(body.tags)) tags.push(...body.tags.filter((tag): tag is string => typeof tag === 'string'));
    path = nextPage(response.headers['link'], `${repository}/tags/list`);
  }
  return tags;
};

/** `Link: </v2/<name>/tags/list?n=…&last=…>; rel="next"`; only pages of the same list are followed. */
const nextPage = (link: string | undefined, list: string): string | undefined => {
  const target = /<([^>]+)>\s*;[^,]*rel="?next"?/i.exec(link ?? '')?.[1];
  if (target === undefined || !URL.canParse(target, 'http://registry')) return undefined;
  return `${list}${new URL(target, 'http://registry').search}`;
};
