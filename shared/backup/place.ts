// Keys in a backup target. Pure.
import { shortHashOf } from '#shared/backup/metadata.ts';

/** Longhorn uses other prefixes in the same target. */
export const metadataPrefix = 'harvester/vmimages/';
/** Disks in chunks, shared by all images. */
export const dataPrefix = 'harvester/vmimage-data/';
const fileName = 'vmimage-metadata.yaml';

export interface ImageIdentity {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly cluster: string;
}

const keyIn = (folder: string): string => `${metadataPrefix}${folder}/${fileName}`;

/**
 * Possible keys for the metadata of an image, in the order they are tried: `a-b` + `c` and `a` + `b-c` give the same folder, and so may two
 * kinds or two clusters. The last key is unique.
 */
export const metadataKeys = ({ apiVersion, kind, namespace, name, cluster }: ImageIdentity): readonly string[] => {
  const plain = `${namespace}-${name}`;
  const identity = JSON.stringify([apiVersion.split('/')[0], kind, namespace, name]);
  return [
    keyIn(plain),
    keyIn(`${plain}-${shortHashOf(identity)}`),
    keyIn(`${plain}-${shortHashOf(JSON.stringify([identity, cluster]))}`),
  ];
};

/** Key for the record of a deletion: only this cluster writes it. */
export const tombstoneKey = (identity: ImageIdentity): string =>
  (metadataKeys(identity).at(-1) ?? '').replace(fileName, 'deleted.yaml');

const markName = '~sweep-';
/** Prefix of the marks of all sweeps. */
export const sweepMarkPrefix = `${metadataPrefix}${markName}`;

/** Written by a sweep to verify that a listing is complete: sorts after all metadata. */
export const sweepMarkKey = (id: string): string => `${sweepMarkPrefix}${id}`;

export type ClassifiedKey =
  | { readonly is: 'metadata' | 'released'; readonly key: string }
  | { readonly is: 'tombstone' | 'mark'; readonly key: string }
  | { readonly is: 'other'; readonly key: string };

/** Type of an object, from its key. */
export const classify = (key: string): ClassifiedKey => {
  const path = key.slice(metadataPrefix.length);
  if (/^[^/]+\/vmimage-metadata\.yaml$/.test(path)) return { is: 'metadata', key };
  if (/^[^/]+\/[^/]+\.cfg$/.test(path)) return { is: 'released', key };
  if (/^[^/]+\/deleted\.yaml$/.test(path)) return { is: 'tombstone', key };
  if (path.startsWith(markName)) return { is: 'mark', key };
  return { is: 'other', key };
};
