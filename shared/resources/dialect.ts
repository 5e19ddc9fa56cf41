// Translates a kind to and from the internal model of an image. One file per kind, one line in registry.ts.
import type { CommonImageStatus } from '#shared/api/image-status.ts';
import type { ServedKind } from '#shared/api/kind.ts';
import { annotations } from '#shared/api/names.ts';
import { type KubeObject, refOf } from '#shared/api/object.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import type { Resource } from '#shared/resources/reconciler.ts';
import type { Image } from '#shared/backends/backend.ts';

/** Common fields of the image kinds. */
export interface ImageObject extends KubeObject {
  readonly status?: CommonImageStatus & { readonly phase?: string | undefined };
}

export interface ImageDialect<T extends ImageObject = ImageObject> {
  readonly kind: ServedKind<T>;
  /** Whether display names must be unique within a namespace, for kinds where they differ from the object's name. */
  readonly namesAreUnique?: boolean;
  /** Never throws: invalid fields become faults of the image. */
  toImage(object: T): Image;
  /**
   * The complete status for `state`, in this kind's fields; fields of other writers are kept. `toImage` reads the same state back. `now` is RFC
   * 3339 and becomes the time of changed conditions.
   */
  toStatus(object: T, image: Image, state: ImageState, now: string): NonNullable<T['status']>;
}

/** Fields of an image that every kind stores in its metadata. */
export const readMetadata = (
  object: KubeObject,
): Pick<Image, 'ref' | 'generation' | 'deleting' | 'finalizers' | 'retryToken' | 'resumedPause'> => ({
  ...readResource(object),
  retryToken: object.metadata.annotations?.[annotations.retry],
  resumedPause: object.metadata.annotations?.[annotations.resumedPause],
});

// Metadata that the reconciler uses for an object of any kind.

export const readResource = (object: KubeObject): Pick<Resource, 'ref' | 'generation' | 'deleting' | 'finalizers'> => ({
  ref: refOf(object),
  generation: object.metadata.generation ?? 1,
  deleting: object.metadata.deletionTimestamp !== undefined,
  finalizers: object.metadata.finalizers ?? [],
});
