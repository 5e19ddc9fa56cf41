// Where files of web servers and object stores are fetched from: mirrors, as an administrator lists them by the beginning of the URL. Pure.
import { z } from 'zod';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** Without a slash at its end: what follows begins with one. */
const Prefix = z.string().transform((text, context): string => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:';
  if (url === undefined || !isWeb || url.username !== '' || url.password !== '' || /[?#]/.test(text)) {
    context.addIssue('must be an http or https URL without credentials, query and fragment');
    return z.NEVER;
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
});

const MirroredPrefix = z.strictObject({
  /** The beginning of URLs. That of an object in a store is `https://store/bucket/key`. */
  prefix: Prefix,
  /** In order. */
  mirror: z.array(z.strictObject({ location: Prefix })).min(1),
});

const MirrorsFile = z.strictObject({ source: z.array(MirroredPrefix).default([]) });

export type MirroredPrefix = z.output<typeof MirroredPrefix>;

/** What an operator says of mirrors of files. */
export interface MirrorAccess {
  /** Default: every file is fetched from its own address. */
  readonly mirrors?: readonly MirroredPrefix[] | undefined;
  /** Why the list cannot be read. Nothing is fetched meanwhile: the network of the servers themselves may be expensive, or not trusted. */
  readonly mirrorFault?: string | undefined;
}

/** `tables` as parsed from TOML. Throws InvalidInput, which says what to change. */
export const readMirrors = (tables: object): readonly MirroredPrefix[] => {
  const { success, data, error } = MirrorsFile.safeParse(tables);
  if (success) return data.source;
  const [issue] = error.issues;
  const where = (issue?.path ?? []).join('.');
  throw new InvalidInput(`${where === '' ? '' : `${where}: `}${issue?.message ?? 'is not valid'}`);
};

const isBelow = (prefix: string, url: string): boolean => url === prefix || url.startsWith(`${prefix}/`);

/**
 * The URLs of a file at its mirrors, in order; the rule with the longest prefix applies. A URL with a query has none: a query may contain credentials,
 * or select the file. Credentials in a URL are not passed on. Throws InvalidInput if the list cannot be read.
 */
export const mirrorsOf = (url: URL, { mirrors = [], mirrorFault }: MirrorAccess): readonly string[] => {
  if (mirrorFault !== undefined) throw new InvalidInput(mirrorFault);
  if (url.search !== '') return [];
  const plain = `${url.origin}${url.pathname}`;
  const [best] = mirrors
    .filter(({ prefix }) => isBelow(prefix, plain))
    .toSorted((one, other) => other.prefix.length - one.prefix.length);
  return best === undefined ? [] : best.mirror.map(({ location }) => `${location}${plain.slice(best.prefix.length)}`);
};

/** The URL of an object, whichever way its store is asked for it. */
export const objectUrl = ({ endpoint, bucket, key }: Readonly<Record<'endpoint' | 'bucket' | 'key', string>>): URL =>
  new URL(`${endpoint.replace(/\/+$/, '')}/${[bucket, ...key.split('/')].map(encodeURIComponent).join('/')}`);
