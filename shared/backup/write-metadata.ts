// Writes the metadata of one image to its key in a target; replaces only the version that was read.
import type { BackedImage } from '#shared/backup/image.ts';
import { type ImageMetadata, haveSameBytes, serializeMetadata } from '#shared/backup/metadata.ts';
import { metadataKeys } from '#shared/backup/place.ts';
import { choose, readRemote } from '#shared/backup/remote.ts';
import { keepForAWhile } from '#shared/backup/sweep/guard.ts';
import type { BackupTarget } from '#shared/backup/target.ts';
import { type Store, isTaken } from '#shared/clients/store/store.ts';
import { AppError } from '#shared/runtime/errors.ts';

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
  for (let round = 1; ; round += 1) {
    const choice = choose(metadata, await Promise.all(keys.map((key) => readRemote(store, key))));
    if (choice === undefined) throw new AppErrorOfPlaces(keys);
    if (choice.is === 'there') return { key: choice.key, revision: choice.revision };
    try {
      await keepWhatLosesItsName(store, metadata, choice.before);
      const revision = await store.write(choice.key, serializeMetadata(metadata), choice.expected);
      return { key: choice.key, revision };
    } catch (error) {
      if (!isTaken(error) || round === maxRounds) throw error;
    }
  }
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
