// Names of the backing image and the storage class of an image: from its UID, from its backup, or as Harvester named them.
import { createHash } from 'node:crypto';
import type { Image } from '#shared/backends/image.ts';

/** Longest name in Longhorn. */
export const maxNameLength = 40;

/** Candidates, the first that exists wins; `own` is the name for a new one. */
export interface Names {
  readonly own: string;
  readonly candidates: readonly string[];
}

type Named = Pick<Image, 'ref' | 'source'>;

/** The way Longhorn shortens long names: the end is replaced by a part of the SHA-512 of the whole. */
export const correctedName = (name: string): string => {
  const lower = name.toLowerCase();
  if (name.length <= maxNameLength) return lower;
  const suffix = `-${createHash('sha512').update(name).digest('hex').slice(0, 8)}`;
  return lower.slice(0, maxNameLength - suffix.length).replace(/-+$/, '') + suffix;
};

/** The name in its backup: volumes in backups refer to it, so a restored image must have it again. */
const restoreName = ({ source }: Named): string | undefined => {
  if (source?.type !== 'restore') return undefined;
  const name = new URLSearchParams(source.url.split('?')[1] ?? '').get('backingImage') ?? '';
  return /^[a-z0-9][a-z0-9_.-]+$/.test(name) ? name : undefined;
};

const namesOf = (own: string, legacy: readonly (string | undefined)[]): Names => ({
  own,
  candidates: [...new Set([...legacy.filter((name) => name !== undefined), own])],
});

export const backingImageNames = (image: Named): Names => {
  const { namespace = '', name, uid } = image.ref;
  const restored = restoreName(image);
  const legacy = `${namespace}-${name}`;
  return namesOf(restored ?? `vmi-${uid}`, [restored, legacy, correctedName(legacy), `vmi-${uid}`]);
};

export const storageClassNames = (image: Named): Names => {
  const { name, uid } = image.ref;
  const restored = restoreName(image);
  const ofBackup = restored === undefined ? undefined : `lh-${restored.replace(/^vmi-/, '')}`;
  return namesOf(ofBackup ?? `lh-${uid}`, [ofBackup, `lh-${uid}`, `longhorn-${name}`]);
};
