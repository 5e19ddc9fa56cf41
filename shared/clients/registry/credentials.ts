// Registry credentials from the usual types of Secrets: dockerconfigjson, dockercfg, basic-auth, accessKeyId. Pure.
import { z } from 'zod';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { Reference } from '#shared/clients/registry/reference.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';
import { lookup } from '#shared/runtime/lookup.ts';

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** The keys of a Secret with their values decoded, or the files of a mounted one. */
export type SecretData = Readonly<Record<string, string>>;

const DockerAuth = z.looseObject({
  auth: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
  identitytoken: z.string().optional(),
});
type DockerAuth = z.infer<typeof DockerAuth>;
const DockerAuths = z.record(z.string(), DockerAuth);
const DockerConfig = z.looseObject({ auths: DockerAuths });

const pairs = [
  ['username', 'password'],
  ['accessKeyId', 'secretKey'],
] as const;

/**
 * The credentials to log in with. `undefined`: the Secret is a Docker configuration without an entry for this registry, so the access is
 * anonymous. Throws InvalidInput, without any content of the Secret, if its format is unknown.
 */
export const findCredentials = (secret: SecretData, image: Reference): Credentials | undefined => {
  const auths = readAuths(secret);
  if (auths !== undefined) return toCredentials(bestMatch(auths, image));
  for (const [user, password] of pairs) {
    const username = secret[user]?.trim();
    const key = secret[password]?.trim();
    if (username !== undefined && key !== undefined) return { username, password: key };
  }
  throw new InvalidInput(
    'the Secret has no registry credentials: it needs .dockerconfigjson, or username and password, or accessKeyId and secretKey',
  );
};

/** Those of a mirror: only from a Docker configuration, whose entries name the registry that they are for. */
export const findMirrorCredentials = (secret: SecretData, mirror: Reference): Credentials | undefined => {
  const auths = readAuths(secret);
  return auths && toCredentials(bestMatch(auths, mirror));
};

const readAuths = (secret: SecretData): Readonly<Record<string, DockerAuth>> | undefined => {
  const config = secret['.dockerconfigjson'];
  const legacy = secret['.dockercfg'];
  if (config !== undefined) return parseDocument(config, DockerConfig, '.dockerconfigjson').auths;
  return legacy === undefined ? undefined : parseDocument(legacy, DockerAuths, '.dockercfg');
};

const parseDocument = <T>(text: string, schema: z.ZodType<T>, key: string): T => {
  const value = parseJsonAs(schema, text);
  if (value === undefined) throw new InvalidInput(`the Secret's ${key} is not a Docker configuration with "auths"`);
  return value;
};

/** Normalizes `https://host/v1/`, `host:port`, `host/team` and `*.example` to a host pattern and a repository prefix. */
const parseKey = (key: string): { readonly host: string; readonly path: string } => {
  const bare = key.replace(/^https?:\/\//, '').replace(/\/+$/, '');
  const [host = '', ...path] = bare.split('/');
  const joined = path.join('/');
  return { host: host.toLowerCase(), path: /^v[12]$/.test(joined) ? '' : joined };
};

const aliases: Readonly<Record<string, string>> = {
  'index.docker.io': 'docker.io',
  'registry-1.docker.io': 'docker.io',
};

const plainHost = (host: string): string => lookup(aliases, host.toLowerCase()) ?? host.toLowerCase();

/** A star matches within one label, as in the kubelet. */
const isHostMatch = (pattern: string, host: string): boolean => {
  const wanted = plainHost(pattern).split('.');
  const given = plainHost(host).split('.');
  if (wanted.length !== given.length) return false;
  return wanted.every((label, index) => isLabelMatch(label, given[index] ?? ''));
};

const isLabelMatch = (pattern: string, label: string): boolean => {
  const [head = '', ...rest] = pattern.split('*');
  const tail = rest.at(-1);
  if (tail === undefined) return pattern === label;
  return (
    rest.length === 1 && label.length >= head.length + tail.length && label.startsWith(head) && label.endsWith(tail)
  );
};

/** The longest repository prefix wins, then the host without a star. */
const bestMatch = (auths: Readonly<Record<string, DockerAuth>>, image: Reference): DockerAuth | undefined => {
  const matches = Object.entries(auths)
    .map(([key, auth]) => ({ ...parseKey(key), auth }))
    .filter(({ host, path }) => isHostMatch(host, image.host) && isPrefix(path, image.repository));
  const rank = ({ host, path }: { readonly host: string; readonly path: string }) =>
    path.length * 2 + (host.includes('*') ? 0 : 1);
  return matches.sort((a, b) => rank(b) - rank(a))[0]?.auth;
};

const isPrefix = (path: string, repository: string): boolean =>
  path === '' || repository === path || repository.startsWith(`${path}/`);

const toCredentials = (auth: DockerAuth | undefined): Credentials | undefined => {
  if (auth === undefined) return undefined;
  if (auth.username !== undefined && auth.password !== undefined)
    return { username: auth.username, password: auth.password };
  const pair = Buffer.from(auth.auth ?? '', 'base64')
    .toString('utf8')
    .replace(/\0+$/, '');
  const colon = pair.indexOf(':');
  if (colon > 0 && pair.length > colon + 1) return { username: pair.slice(0, colon), password: pair.slice(colon + 1) };
  if (auth.identitytoken !== undefined) {
    throw new InvalidInput('the Secret holds an identity token, which is valid only for a person: use a robot account');
  }
  return undefined;
};
