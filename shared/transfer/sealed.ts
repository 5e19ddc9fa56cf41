// Splits a spec into a public part, which is in the Job, and a part that may contain credentials, which is in a Secret. Everything not known to
// be harmless is sealed, so that a forgotten field cannot leak.

/** Files of the Secret that a worker mounts. */
export const secretFiles = {
  /** The sealed texts of the spec (JSON). */
  sealed: 'sealed',
  /** Private key (PEM) of this Job's reports. */
  reportKey: 'report-key',
} as const;

/** Fields whose texts are paths in the pod, names, numbers, or digests. Every other field may contain a credential. */
const openFields: ReadonlySet<string> = new Set([
  'mode',
  'type',
  'path',
  'dir',
  'secretDir',
  'scratchDir',
  'secretName',
  'name',
  'region',
  'bucket',
  'key',
  'architecture',
  'subject',
  'identity',
  'volumeMode',
  'content',
  'format',
  'compression',
  'algorithm',
  'hex',
  'allowedAddresses',
]);

/** Replaces a text in a spec: its index among the sealed ones. */
interface Sealed {
  readonly sealed: number;
}

const isSealed = (value: object): value is Sealed => 'sealed' in value && typeof value.sealed === 'number';

const mapTexts = (value: unknown, map: (text: string, field: string) => unknown, field = ''): unknown => {
  if (typeof value === 'string') return map(value, field);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => mapTexts(item, map, field));
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, mapTexts(inner, map, key)]));
};

/** Both parts of a spec, as JSON. */
export const sealSpec = (spec: object): { readonly open: string; readonly sealed: string } => {
  const texts: string[] = [];
  const open = mapTexts(spec, (text, field) => (openFields.has(field) ? text : { sealed: texts.push(text) - 1 }));
  return { open: JSON.stringify(open), sealed: JSON.stringify(texts) };
};

const restore = (value: unknown, texts: readonly string[]): unknown => {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => restore(item, texts));
  if (isSealed(value)) return texts[value.sealed];
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, restore(inner, texts)]));
};

/** Restores the spec as one JSON text; returns it unchanged if a part is missing or is not valid JSON. */
export const unsealSpec = (open: string, sealed: string | undefined): string => {
  try {
    return JSON.stringify(restore(JSON.parse(open), JSON.parse(sealed ?? '') as readonly string[]));
  } catch {
    return open;
  }
};
