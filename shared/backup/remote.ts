// The metadata of one image in a target: read, compared, and replaced only if it belongs to this image. `choose` is pure.
import type { BackedImage } from './image.ts';
import { haveSameBytes, type ImageMetadata, isSameMetadata, parseMetadata, serializeMetadata } from './metadata.ts';
import { metadataKeys } from './place.ts';
import { keepForAWhile } from '#shared/backup/sweep/plan.ts';
import type { BackupTarget } from './target.ts';
import { isTaken, type Store } from '#shared/clients/store/store.ts';
import { retryConflicts } from '#shared/clients/kube/tolerant.ts';
import { AppError } from '#shared/runtime/errors.ts';

// Writes the metadata of one image to its key in a target; replaces only the version that was read.

interface Writing {
  readonly backed: BackedImage;
  readonly target: BackupTarget;
  readonly store: Store;
}

/** Concurrent writers may cause conflicts: then all keys are read again. */
const maxRounds = 4;

export const writeMetadata = async (
  { backed, target, store }: Writing,
  metadata: ImageMetadata,
): Promise<{ readonly key: string; readonly revision: string }> => {
  const before = backed.object.status?.backup;
  const known = before?.target === target.name ? before.object : undefined;
  const places = metadataKeys(metadata.image);
  const keys = [...new Set([...places.filter((key) => key === known), ...places])];
  const write = async () => {
    const choice = choose(metadata, await Promise.all(keys.map((key) => readRemote(store, key))));
    if (choice === undefined) throw new AppErrorOfPlaces(keys);
    if (choice.is === 'there') return { key: choice.key, revision: choice.revision };
    await keepWhatLosesItsName(store, metadata, choice.before);
    const revision = await store.write(choice.key, serializeMetadata(metadata), choice.expected);
    return { key: choice.key, revision };
  };
  return retryConflicts(maxRounds, write, isTaken);
};

const keepWhatLosesItsName = async (
  store: Store,
  { data }: ImageMetadata,
  before: ImageMetadata | undefined,
): Promise<void> => {
  if (before?.data.kept !== 'chunks' || haveSameBytes(data, before.data)) return;
  await keepForAWhile(store, before.data.disk);
};

/** Happens only if a user writes objects by hand: the last key contains a digest of the identity. */
class AppErrorOfPlaces extends AppError {
  override readonly code = 'PlacesTaken' as const;
  override readonly retryable = false;

  constructor(keys: readonly string[]) {
    super(`other images use the keys ${keys.join(', ')}: remove the last one by hand`);
  }
}

/** Size limit of a document. */
export const mostMetadataBytes = 2 ** 20;

interface Remote {
  readonly key: string;
  /** Default: the object does not exist. */
  readonly revision?: string | undefined;
  readonly metadata?: ImageMetadata | undefined;
  /** Why the object is not valid metadata. */
  readonly problem?: string | undefined;
  /** Written by a later release. */
  readonly isLater?: boolean | undefined;
}

export const readRemote = async (store: Store, key: string): Promise<Remote> => {
  const found = await store.read(key, mostMetadataBytes);
  if (found === undefined) return { key };
  const parsed = parseMetadata(found.bytes);
  const { revision } = found;
  return 'value' in parsed
    ? { key, revision, metadata: parsed.value }
    : { key, revision, problem: parsed.problem, isLater: parsed.isLater };
};

type Choice =
  /** The existing metadata is up to date. */
  | { readonly is: 'there'; readonly key: string; readonly revision: string }
  | {
      readonly is: 'write';
      readonly key: string;
      readonly expected: 'nothing' | { readonly revision: string };
      /** The metadata that is replaced. */
      readonly before?: ImageMetadata | undefined;
    };

const isOurs = (own: ImageMetadata, { image }: ImageMetadata): boolean =>
  image.cluster === own.image.cluster &&
  image.apiVersion === own.image.apiVersion &&
  image.kind === own.image.kind &&
  image.namespace === own.image.namespace &&
  image.name === own.image.name;

const isSame = (own: ImageMetadata, there: ImageMetadata): boolean =>
  isSameMetadata(own, there) && haveSameBytes(own.data, there.data);

/** Decision for one key; `undefined`: it belongs to another image. */
const judge = (own: ImageMetadata, remote: Remote): Choice | undefined => {
  const { key, revision, metadata } = remote;
  if (revision === undefined) return { is: 'write', key, expected: 'nothing' };
  // Unreadable metadata is replaced, which repairs an incomplete write.
  if (metadata === undefined) return remote.isLater ? undefined : { is: 'write', key, expected: { revision } };
  if (isOurs(own, metadata)) {
    const isCurrent = serializeMetadata(metadata).equals(serializeMetadata(own));
    return isCurrent ? { is: 'there', key, revision } : { is: 'write', key, expected: { revision }, before: metadata };
  }
  return isSame(own, metadata) ? { is: 'there', key, revision } : undefined;
};

/** In order; the last key is unique to this image. */
const choose = (own: ImageMetadata, remotes: readonly Remote[]): Choice | undefined => {
  for (const remote of remotes) {
    const choice = judge(own, remote);
    if (choice !== undefined) return choice;
  }
  return undefined;
};
