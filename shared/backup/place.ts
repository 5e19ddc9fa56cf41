// Where things lie in a backup target. Pure.
import { shortHashOf } from '#shared/backup/metadata.ts';

/** What Longhorn keeps in the same target begins otherwise. */
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
 * Keys that the metadata of an image may have, in the order they are tried: `a-b` + `c` and `a` + `b-c` give one folder, so do two kinds, and
 * two clusters. The last one is nobody else's.
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

/** Where a cluster notes that it deleted an image: nobody else writes there. */
export const tombstoneKey = (identity: ImageIdentity): string =>
  (metadataKeys(identity).at(-1) ?? '').replace(fileName, 'deleted.yaml');

const markName = '~sweep-';
/** Begins the marks of all sweeps. */
export const sweepMarkPrefix = `${metadataPrefix}${markName}`;

/** Written by who sweeps, to see that a listing is whole: sorted behind all metadata. */
export const sweepMarkKey = (id: string): string => `${sweepMarkPrefix}${id}`;

export type ClassifiedKey =
  | { readonly is: 'metadata' | 'released'; readonly key: string }
  | { readonly is: 'tombstone' | 'mark'; readonly key: string }
  | { readonly is: 'other'; readonly key: string };

/** What an object is by its key. */
export const classify = (key: string): ClassifiedKey => {
  const path = key.slice(metadataPrefix.length);
  if (/^[^/]+\/vmimage-metadata\.yaml$/.test(path)) return { is: 'metadata', key };
  if (/^[^/]+\/[^/]+\.cfg$/.test(path)) return { is: 'released', key };
  if (/^[^/]+\/deleted\.yaml$/.test(path)) return { is: 'tombstone', key };
  if (path.startsWith(markName)) return { is: 'mark', key };
  return { is: 'other', key };
};
