// Decides about one entry of a backup target in this cluster. Pure.
import type { BackedImage } from '#shared/backup/image.ts';
import type { ImageMetadata } from '#shared/backup/metadata.ts';
import { type MissingSecret, describeMissing } from '#shared/backup/secret.ts';

export type RestoreDecision =
  | { readonly is: 'present'; readonly message: string }
  | { readonly is: 'deleted'; readonly message: string }
  /** The message names both sides; the condition is set on the image `holder`. */
  | { readonly is: 'conflict'; readonly message: string; readonly holder?: BackedImage | undefined }
  /** Checked again each minute. */
  | { readonly is: 'waiting'; readonly reason: string; readonly message: string }
  | { readonly is: 'create'; readonly message: string };

/** State of the data of a backing image in Longhorn. */
export type StorageBackup =
  | { readonly is: 'absent' }
  | { readonly is: 'completed'; readonly checksum?: string | undefined }
  | { readonly is: 'unfinished'; readonly state: string };

export interface ObservedRestore {
  /** Key of the metadata, for messages. */
  readonly key: string;
  readonly targetName: string;
  readonly metadata: ImageMetadata;
  /** Why its kind or backend is not available here. Default: it is. */
  readonly unfit?: string | undefined;
  readonly isDeleted: boolean;
  /** An image with the same kind, namespace and name. */
  readonly existing?: BackedImage | undefined;
  /** Another image with its display name, if those must be unique. */
  readonly nameHolder?: BackedImage | undefined;
  readonly isNamespaceLeaving: boolean;
  /** Missing storage class. */
  readonly missingClass?: string | undefined;
  /** Missing Secret. */
  readonly missingSecret?: MissingSecret | undefined;
  /** The table of its disk is in the target; not checked if the storage keeps the data. */
  readonly hasTable?: boolean | undefined;
  readonly storage?: StorageBackup | undefined;
}

export const restoreWord = ({ image }: ImageMetadata): string => `${image.namespace}/${image.name}`;

/** The difference between two images. Default: they cannot be compared. */
interface Difference {
  readonly here: string;
  readonly there: string;
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

const digestDifference = (existing: BackedImage, { digests = {} }: ImageMetadata): Difference | 'same' | undefined => {
  const own = existing.image.state.digests ?? {};
  const shared = Object.keys(digests).find((algorithm) => own[algorithm] !== undefined);
  if (shared === undefined) return undefined;
  const [here = '', there = ''] = [own[shared], digests[shared]];
  return between(shared, here, there);
};

/** Compares the recorded content of both sides. */
const compare = (existing: BackedImage, metadata: ImageMetadata): Difference | 'same' | undefined => {
  const { object, restored } = existing;
  const { image, data, spec } = metadata;
  if ([object.metadata.uid, restored?.uid].includes(image.uid)) return 'same';
  const disk = diskOf(existing);
  if (data.kept === 'chunks' && disk !== undefined) return between('disk', disk, data.disk);
  const difference = restored === undefined ? digestDifference(existing, metadata) : undefined;
  return difference ?? between('checksum', textOf(object.spec['checksum']), textOf(spec['checksum']));
};

const diskOf = ({ object, restored }: BackedImage): string | undefined =>
  object.status?.backup?.disk ?? restored?.from?.key.split('/').at(-1);

const between = (what: string, here: string | undefined, there: string | undefined) => {
  if (here === undefined || there === undefined) return undefined;
  return here === there ? ('same' as const) : { here: `${what} ${here}`, there: `${what} ${there}` };
};

const judgeExisting = (observed: ObservedRestore, existing: BackedImage): RestoreDecision => {
  const { metadata, key, targetName } = observed;
  const name = restoreWord(metadata);
  const found = compare(existing, metadata);
  if (found === 'same' || found === undefined) return { is: 'present', message: `image ${name} is here` };
  const here = `image ${name} here (uid ${existing.object.metadata.uid ?? ''}) has ${found.here}`;
  const there = `${key} in ${targetName} (uid ${metadata.image.uid}) has ${found.there}`;
  return {
    is: 'conflict',
    holder: existing,
    message: `${here}, ${there}: nothing is restored; rename or delete one of the two`,
  };
};

const judgeName = (observed: ObservedRestore, holder: BackedImage): RestoreDecision => {
  const { metadata, key, targetName } = observed;
  const { name, namespace } = holder.object.metadata;
  return {
    is: 'conflict',
    holder,
    message:
      `image ${namespace}/${name} here has the display name "${metadata.displayName}", and so has ${restoreWord(metadata)} of ` +
      `${key} in ${targetName}: nothing is restored; delete one of the two`,
  };
};

const wait = (reason: string, message: string): RestoreDecision => ({ is: 'waiting', reason, message });

const judgeStorage = ({ metadata, storage, key }: ObservedRestore): RestoreDecision | undefined => {
  const { data, children } = metadata;
  if (data.kept !== 'by-storage' || storage === undefined) return undefined;
  const name = children?.backingImage ?? data.url;
  if (storage.is === 'absent') return wait('WaitingForLonghorn', `Longhorn does not know a backup of ${name} yet`);
  if (storage.is === 'unfinished')
    return wait('WaitingForLonghorn', `Longhorn's backup of ${name} is ${storage.state}`);
  const [recorded, found] = [data.checksum, storage.checksum];
  if (recorded === undefined || recorded === '' || found === undefined || found === '' || recorded === found)
    return undefined;
  return {
    is: 'conflict',
    message: `${key} records that ${name} has checksum ${recorded}, and Longhorn's backup of it has ${found}: nothing is restored`,
  };
};

/** Reasons to wait, in the order in which a user would fix them. */
const judgeSurroundings = (observed: ObservedRestore): RestoreDecision | undefined => {
  const { metadata, unfit, isNamespaceLeaving, missingClass, missingSecret, hasTable, targetName } = observed;
  const { namespace } = metadata.image;
  if (unfit !== undefined) return wait('BackendNotServed', unfit);
  if (isNamespaceLeaving) return wait('NamespaceTerminating', `namespace ${namespace} is being deleted`);
  if (hasTable === false)
    return wait('DataMissing', `${targetName} does not contain the disk of the metadata: it may still be being copied`);
  if (missingClass !== undefined)
    return wait('StorageClassNotFound', `storage class "${missingClass}" does not exist here: create it`);
  if (missingSecret !== undefined) return wait('SecretMissing', describeMissing(missingSecret));
  return judgeStorage(observed);
};

export const decideRestore = (observed: ObservedRestore): RestoreDecision => {
  const { metadata, existing, nameHolder, isDeleted, targetName } = observed;
  const name = restoreWord(metadata);
  if (existing !== undefined) return judgeExisting(observed, existing);
  if (isDeleted)
    return { is: 'deleted', message: `image ${name} was deleted; what ${targetName} holds of it stays there` };
  if (nameHolder !== undefined) return judgeName(observed, nameHolder);
  return judgeSurroundings(observed) ?? { is: 'create', message: `image ${name} is made from ${targetName}` };
};
