// Name and checksum of an image made from an object: from its key, its metadata and its sidecars, in order of increasing precedence. Pure.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ImportRule } from '#shared/object-import/rules.ts';
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';

/** An object according to the store. */
export interface StoredFacts {
  readonly etag: string | undefined;
  readonly versionId: string | undefined;
  readonly size: number;
  /** User metadata, names in lower case without their prefix. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** Content of the existing sidecars. */
export interface Sidecars {
  readonly '.sha256'?: string | undefined;
  readonly '.json'?: string | undefined;
}

export interface Description {
  /** Name of the DataSource, and prefix of the names of versions. */
  readonly name: string;
  readonly displayName: string;
  /** `<algorithm>:<hex>`. */
  readonly checksum: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** 12 hex digits that change with the object or its expected digest. */
  readonly version: string;
}

const name = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'lower-case letters, digits and -')
  .max(50);
const labelKey = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
/** Labels that determine owners or protection of an object: users of a bucket must not set them. */
const reserved =
  /^([^/]+\.)?(bullion\.dev|kubevirt\.io|harvesterhci\.io|tmaxanc\.com|kubernetes\.io|k8s\.io|longhorn\.io)\//;
const labelValue = z
  .string()
  .max(63)
  .regex(/^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/, 'not a valid label value');
const labels = z
  .record(z.string(), labelValue)
  .refine(
    (given) => Object.keys(given).every((key) => labelKey.test(key)),
    'one of the names is not a valid label name',
  )
  .refine(
    (given) => Object.keys(given).every((key) => !reserved.test(key)),
    'one of the names is reserved for controllers',
  );
const checksum = z.string().refine((text) => 'value' in parseChecksum(text), 'not <algorithm>:<hex>');

const SidecarJson = z.strictObject({
  name: name.optional(),
  displayName: z.string().min(1).max(1024).optional(),
  checksum: checksum.optional(),
  labels: labels.optional(),
});
type Described = z.infer<typeof SidecarJson>;

const parse = (what: string, text: unknown): Described => {
  const result = SidecarJson.safeParse(text);
  if (result.success) return result.data;
  const faults = result.error.issues.map(({ path, message }) => ({ field: path.join('.'), message }));
  throw new InvalidInput(`${what}: ${faults.map(({ field, message }) => `${field}: ${message}`).join('; ')}`, faults);
};

const ofJson = (text: string | undefined): Described => {
  if (text === undefined) return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new InvalidInput(`the .json beside the object is not valid JSON: ${messageOf(error)}`, [], { cause: error });
  }
  return parse('the .json beside the object', value);
};

/** Only the digest, `<hex>  <file>`, or the BSD format. */
const ofSha256 = (text: string | undefined): Described => {
  if (text === undefined) return {};
  const hex = /\b[0-9a-f]{64}\b/i.exec(text)?.[0];
  if (hex === undefined)
    throw new InvalidInput('the .sha256 beside the object contains no SHA-256 digest of 64 hex digits');
  return { checksum: `sha256:${hex.toLowerCase()}` };
};

/** Keys of user metadata: `x-amz-meta-bullion-name`, `…-display-name`, `…-checksum`, `…-labels` as `a=b,c=d`. */
const ofMetadata = (metadata: StoredFacts['metadata']): Described => {
  const pairs = (metadata['bullion-labels'] ?? '').split(',').filter((pair) => pair.trim() !== '');
  const described = {
    name: metadata['bullion-name'],
    displayName: metadata['bullion-display-name'],
    checksum: metadata['bullion-checksum'],
    ...(pairs.length === 0 ? {} : { labels: Object.fromEntries(pairs.map((pair) => toPair(pair))) }),
  };
  return parse('metadata of the object', described);
};

const toPair = (text: string): readonly [string, string] => {
  const at = text.indexOf('=');
  return at === -1 ? [text.trim(), ''] : [text.slice(0, at).trim(), text.slice(at + 1).trim()];
};

/** `Images/Ubuntu 24.04.qcow2` under `Images/` becomes `ubuntu-24-04`; if no character is left, the name is a hash of the key. */
export const nameOfKey = (rule: ImportRule, key: string): string => {
  const path = key.slice(rule.prefix.length);
  const [suffix = ''] = rule.suffixes
    .filter((known) => path.toLowerCase().endsWith(known.toLowerCase()))
    .toSorted((a, b) => b.length - a.length);
  const stem = path.slice(0, path.length - suffix.length);
  const ascii = stem
    .normalize('NFKD')
    .replace(/[\u0300-\u036F]/g, '')
    .toLowerCase();
  const slug = ascii.replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '');
  const isFaithful = slug !== '' && slug.length <= 50 && /^[\x20-\x7E]*$/.test(ascii);
  return isFaithful ? slug : `${slug.slice(0, 40).replace(/-+$/, '') || 'image'}-${shortHash([key]).slice(0, 8)}`;
};

export const shortHash = (parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 12);

/** Throws InvalidInput with the name of the invalid sidecar or metadata. */
export const describeObject = (rule: ImportRule, key: string, facts: StoredFacts, sidecars: Sidecars): Description => {
  const described = {
    ...defined(ofMetadata(facts.metadata)),
    ...defined(ofSha256(sidecars['.sha256'])),
    ...defined(ofJson(sidecars['.json'])),
  };
  const identity = [facts.versionId ?? null, facts.etag ?? null, facts.size, described.checksum ?? null];
  return {
    name: described.name ?? nameOfKey(rule, key),
    displayName: described.displayName ?? key.slice(rule.prefix.length),
    checksum: described.checksum,
    labels: described.labels ?? {},
    version: shortHash(identity),
  };
};

const defined = (described: Described): Described =>
  Object.fromEntries(Object.entries(described).filter(([, value]) => value !== undefined)) as Described;
