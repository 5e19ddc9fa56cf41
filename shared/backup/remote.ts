// The metadata of one image in a target: read, compared, and replaced only if it belongs to this image. `choose` is pure.
import type { Store } from '#shared/clients/store/store.ts';
import {
  type ImageMetadata,
  haveSameBytes,
  parseMetadata,
  isSameMetadata,
  serializeMetadata,
} from '#shared/backup/metadata.ts';

/** Size limit of a document. */
export const mostMetadataBytes = 2 ** 20;

export interface Remote {
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

export type Choice =
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
export const choose = (own: ImageMetadata, remotes: readonly Remote[]): Choice | undefined => {
  for (const remote of remotes) {
    const choice = judge(own, remote);
    if (choice !== undefined) return choice;
  }
  return undefined;
};
