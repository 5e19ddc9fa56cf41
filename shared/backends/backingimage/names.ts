// What the backing image and the storage class of an image are called: by its UID, by its backup, or as Harvester called them before.
import { createHash } from 'node:crypto';
import type { Image } from '#shared/backends/image.ts';

/** Longest name Longhorn takes. */
export const maxNameLength = 40;

/** Candidates, first found wins; `own` is the one that is made where none is there. */
export interface Names {
  readonly own: string;
  readonly candidates: readonly string[];
}

type Named = Pick<Image, 'ref' | 'source'>;

/** As Longhorn shortens what is too long for it: the end becomes a piece of the SHA-512 of the whole. */
export const correctedName = (name: string): string => {
  const lower = name.toLowerCase();
  if (name.length <= maxNameLength) return lower;
  const suffix = `-${createHash('sha512').update(name).digest('hex').slice(0, 8)}`;
  return lower.slice(0, maxNameLength - suffix.length).replace(/-+$/, '') + suffix;
};

/** The name a backup was made under: volumes in backups refer to it, so a restored image must have it again. */
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
