// The interface of storage backends: one folder each, and one row in registry.ts. Backend names are compared only in their own folders.
import type { StorageClass } from '#shared/api/foreign/core.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { Plan, PlanContext } from '#shared/populate/actions.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type Fault, isNotFound } from '#shared/runtime/errors.ts';
import type { WatchedChild } from '#shared/populate/watched-child.ts';
import type { Image, ImageSource } from '#shared/backends/image.ts';
import type { LookAtFile } from '#shared/transfer/file-look.ts';

/**
 * `Observed` is what the backend has read: its children and everything else a decision depends on. Reads and decisions are separate: `check`
 * reads from the cluster and decides nothing, the other methods decide and are pure. Every method must be safe to repeat; the next pass repairs
 * a crash between any two actions.
 */
export interface Backend<Observed = unknown> {
  readonly capabilities: BackendCapabilities;
  /** A product required in the cluster besides a storage driver. Default: none. */
  readonly needs?: Need | undefined;
  /**
   * Reads only what the next step of this image depends on. `look` is set if a file on a web server can be inspected. Throws only AppErrors of
   * the client.
   */
  check(kube: KubeClient, image: Image, look?: LookAtFile): Promise<Observed>;
  /** The next step from the observed state towards a usable golden image, or the reason why there is none. */
  initialize(image: Image, observed: Observed, context: PlanContext): Plan;
  /** Sizes according to the children, if a usable image lacks them; `undefined` if there is no change. */
  updateVirtualSize(image: Image, observed: Observed): ImageState | undefined;
  /** The next step of removal. `removed`: nothing of the image is left. */
  delete(image: Image, observed: Observed, context: PlanContext): Plan & { readonly removed: boolean };
  /** The initial content of a disk made from a usable image. */
  rootDiskOf(image: Image): RootDisk;
  /** Kinds of children whose changes reconcile an image. Triggers, sources and RBAC are generated from this. */
  readonly watchedChildren: readonly WatchedChild[];
  /** Kinds that are read but not watched. RBAC is generated from this. */
  readonly reads: readonly ResourceType[];
  readonly validator: BackendValidator;
  readonly mutator: BackendMutator;
}

export interface BackendCapabilities {
  /** Supported types of sources. */
  readonly sources: readonly ImageSource['type'][];
  /** Clones may be encrypted or decrypted. Default: plain copies only. */
  readonly encrypts?: true;
  /** An upload is one request. Default: an upload is sent in parts, and an interrupted one resumes. */
  readonly uploadsWhole?: true;
  /** The source of a copy must be in the namespace of the image. Default: any namespace. */
  readonly copiesNearby?: true;
}

/** A product is installed if its kind is served. */
export interface Need {
  readonly type: ResourceType;
  /** Namespace in which the kind is listed. */
  readonly namespace: string;
  /** What a user should do if it is not installed. */
  readonly because: string;
}

/** How a disk is created from an image. */
export type RootDisk =
  /** An empty claim of this class: the storage fills it. */
  | { readonly is: 'class'; readonly className: string }
  /** A copy of the golden volume, in the image's namespace. */
  | { readonly is: 'copy'; readonly volume: string; readonly snapshot?: string | undefined };

/**
 * Rules in addition to those of the kind and to `image.faults`. Each method returns all faults at once, none if the request is valid. Look-ups
 * are bounded: one object, or one page.
 */
export interface BackendValidator {
  create(image: Image, kube: KubeClient): readonly Fault[] | Promise<readonly Fault[]>;
  update(before: Image, after: Image): readonly Fault[];
  delete(image: Image): readonly Fault[];
}

export interface BackendMutator {
  /**
   * Parameters of the storage class that the backend creates for an image, decided once at creation: those of its template class, else those
   * `asked` for. `undefined` if the backend creates no class.
   */
  classParameters(
    asked: Readonly<Record<string, string>> | undefined,
    template: StorageClass | undefined,
  ): Readonly<Record<string, string>> | undefined;
}

/** Whether the product that a backend requires is installed. */
export const isInstalled = async (kube: KubeClient, { type, namespace }: Need): Promise<boolean> => {
  try {
    await kube.list(type, { namespace, limit: 1 });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
};
