// Rules that select objects to import and define their images: one per bucket and prefix. Set by the operator in the environment. Pure.
import { z } from 'zod';

const suffixes = ['.qcow2', '.img', '.raw', '.iso', '.vmdk', '.vdi', '.vhd', '.vhdx'] as const;
const packed = ['', '.gz', '.xz', '.zst'] as const;

/** Suffixes of image files; other objects under the prefix are ignored. */
const imageSuffixes = suffixes.flatMap((suffix) => packed.map((end) => `${suffix}${end}`));

export const ImportRule = z.strictObject({
  bucket: z.string().min(1),
  prefix: z.string().default(''),
  suffixes: z.array(z.string().min(1)).min(1).default(imageSuffixes),
  namespace: z.string().min(1),
  storageClassName: z.string().min(1).optional(),
  /** Number of previous ready versions to keep. */
  keep: z.int().min(0).default(1),
  /** Action on the image when its object is removed. */
  onDelete: z.enum(['keep', 'delete']).default('keep'),
});
export type ImportRule = z.infer<typeof ImportRule>;
export const ImportRules = z.array(ImportRule);

/** Files with information about the object they are named after. */
export const sidecarSuffixes = ['.sha256', '.json'] as const;

export interface Match {
  readonly rule: ImportRule;
  /** The object itself, even if one of its sidecars has changed. */
  readonly key: string;
}

const isImage = (rule: ImportRule, key: string): boolean =>
  key.startsWith(rule.prefix) &&
  key.length > rule.prefix.length &&
  rule.suffixes.some((suffix) => key.toLowerCase().endsWith(suffix.toLowerCase()));

/** The rule with the longest prefix; `undefined` if the object is not an image. */
export const matchRule = (rules: readonly ImportRule[], bucket: string, changed: string): Match | undefined => {
  const sidecar = sidecarSuffixes.find((suffix) => changed.endsWith(suffix));
  const key = sidecar === undefined ? changed : changed.slice(0, -sidecar.length);
  const [rule] = rules
    .filter((candidate) => candidate.bucket === bucket && isImage(candidate, key))
    .toSorted((a, b) => b.prefix.length - a.prefix.length);
  return rule === undefined ? undefined : { rule, key };
};
