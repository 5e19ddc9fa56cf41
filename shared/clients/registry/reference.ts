// References to images in registries: `docker://host[:port]/repository[:tag][@digest]`. Parsed by admission, polls and the transfer source.
import { InvalidInput } from '#shared/runtime/errors.ts';
import { redactUrl } from '#shared/runtime/redact.ts';

export interface Reference {
  /** Host and port as the user wrote them: the key for credentials. */
  readonly host: string;
  readonly repository: string;
  /** Missing if the user wrote neither tag nor digest, or only a digest. */
  readonly tag?: string | undefined;
  /** `sha256:<64 hex>` or `sha512:<128 hex>`. */
  readonly digest?: string | undefined;
}

const scheme = /^(docker|oci):\/\//;
const hostPattern = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::\d{1,5})?$/i;
const repositoryPattern = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const tagPattern = /^\w[\w.-]{0,127}$/;
const digestPattern = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/;

/** Docker Hub: its actual server, and the namespace of official images. */
const hub = { server: 'registry-1.docker.io', official: 'library' } as const;

/** All names of Docker Hub, of which one is its server. */
const hubNames: readonly string[] = ['docker.io', 'index.docker.io', 'registry.hub.docker.com', hub.server];

export const isDigest = (text: string): boolean => digestPattern.test(text);

export type ParsedReference = { readonly value: Reference } | { readonly problem: string };

const problem = (text: string): ParsedReference => ({ problem: text });

/** `problem` completes a sentence about the field it came from. */
export const readReference = (text: string): ParsedReference => {
  const rest = text.replace(scheme, '');
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(rest)) return problem('must begin with docker://');
  const [named = '', digest, ...more] = rest.split('@');
  if (more.length > 0) return problem('must have one digest at most');
  if (digest !== undefined && !isDigest(digest)) return problem('must end in a digest such as sha256:<64 hex digits>');
  const slash = named.indexOf('/');
  const host = named.slice(0, Math.max(0, slash));
  const path = named.slice(slash + 1);
  const colon = path.indexOf(':');
  const repository = colon === -1 ? path : path.slice(0, colon);
  const tag = colon === -1 ? undefined : path.slice(colon + 1);
  if (!hostPattern.test(host)) return problem('must name a registry: docker://host[:port]/repository[:tag]');
  if (!repositoryPattern.test(repository)) return problem(`must name a repository in lower case after ${host}/`);
  if (tag !== undefined && !tagPattern.test(tag))
    return problem('must have a tag of letters, digits, "_", "." and "-"');
  return { value: { host, repository: officially(host, repository), tag, digest } };
};

/** Its own port is no other server. */
const isHub = (host: string): boolean => hubNames.includes(host.toLowerCase().replace(/:443$/, ''));

/** The repository, complete: Docker Hub has short names for official images. */
export const officially = (host: string, repository: string): string =>
  isHub(host) && repository !== '' && !repository.includes('/') ? `${hub.official}/${repository}` : repository;

/** Like readReference; throws InvalidInput. */
export const parseReference = (text: string): Reference => {
  const parsed = readReference(text);
  if ('value' in parsed) return parsed.value;
  throw new InvalidInput(`the image reference "${redactUrl(text)}" ${parsed.problem}`);
};

export const serverOf = (host: string): string => (isHub(host) ? hub.server : host);

/** Host, repository, then the digest or else the tag: the name in requests. */
export const formatReference = ({ host, repository, tag, digest }: Reference): string =>
  `${host}/${repository}${digest === undefined ? `:${tag ?? 'latest'}` : `@${digest}`}`;

/** The same repository at one digest: an immutable reference. */
export const pinReference = ({ host, repository }: Reference, digest: string): string =>
  `docker://${formatReference({ host, repository, digest })}`;
