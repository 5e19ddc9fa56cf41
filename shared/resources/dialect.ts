// How a kind is translated to and from the image every backend knows. One file per kind, one line in registry.ts.
import type { CommonImageStatus } from '#shared/api/image-status.ts';
import type { ServedKind } from '#shared/api/kind.ts';
import { annotations } from '#shared/api/names.ts';
import { type KubeObject, refOf } from '#shared/api/object.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import type { Resource } from '#shared/resources/reconciler.ts';
import type { Image } from '#shared/backends/image.ts';

/** An object of an image kind, as far as all of them are alike. */
export interface ImageObject extends KubeObject {
  readonly status?: CommonImageStatus & { readonly phase?: string | undefined };
}

export interface ImageDialect<T extends ImageObject = ImageObject> {
  readonly kind: ServedKind<T>;
  /** Whether no two images of a namespace may have one display name, where that is not the object's own. */
  readonly namesAreUnique?: boolean;
  /** Total: what cannot be understood becomes a fault of the image. */
  toImage(object: T): Image;
  /**
   * The whole status that says `state`, in this kind's words; what others wrote into it stays. `toImage` reads the same state back.
   * `now` is RFC 3339 and becomes the time of the conditions that changed.
   */
  toStatus(object: T, image: Image, state: ImageState, now: string): NonNullable<T['status']>;
}

/** The part of an image that every kind keeps in its metadata. */
export const readMetadata = (
  object: KubeObject,
): Pick<Image, 'ref' | 'generation' | 'deleting' | 'finalizers' | 'retryToken'> => ({
  ...readResource(object),
  retryToken: object.metadata.annotations?.[annotations.retry],
});

// What the reconciler keeps of an object of any kind, from its metadata.

export const readResource = (object: KubeObject): Pick<Resource, 'ref' | 'generation' | 'deleting' | 'finalizers'> => ({
  ref: refOf(object),
  generation: object.metadata.generation ?? 1,
  deleting: object.metadata.deletionTimestamp !== undefined,
  finalizers: object.metadata.finalizers ?? [],
});
