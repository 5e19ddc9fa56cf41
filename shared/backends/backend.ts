// What a storage backend is: one folder each, and one row in registry.ts. Outside its folder nobody compares backend names.
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
 * `Observed` is what the backend read: the children it knows of and whatever else decides. Reading and deciding are apart: `check` talks to
 * the cluster and decides nothing, the others decide and talk to nobody. Every method must be safe to repeat at any moment; a crash
 * between any two actions is repaired by the next pass.
 */
export interface Backend<Observed = unknown> {
  readonly capabilities: BackendCapabilities;
  /** What must be installed in the cluster beside a storage driver; left out: nothing. */
  readonly needs?: Need | undefined;
  /**
   * Reads what the next step of this image depends on, no more. `look` is there where a file on a web server can be looked at. Throws only AppErrors of
   * the client.
   */
  check(kube: KubeClient, image: Image, look?: LookAtFile): Promise<Observed>;
  /** The next step from what was observed towards a usable golden image, or the reason why there is none. */
  initialize(image: Image, observed: Observed, context: PlanContext): Plan;
  /** What the children say of sizes, where a usable image does not know them yet; `undefined` when nothing is new. */
  updateVirtualSize(image: Image, observed: Observed): ImageState | undefined;
  /** The next step of removal. `removed` once nothing of the image is left. */
  delete(image: Image, observed: Observed, context: PlanContext): Plan & { readonly removed: boolean };
  /** What a disk made from a usable image begins as. */
  rootDiskOf(image: Image): RootDisk;
  /** Child kinds whose changes concern an image. Triggers, sources and RBAC are generated from this. */
  readonly watchedChildren: readonly WatchedChild[];
  /** Kinds that are read and not followed. RBAC is generated from this. */
  readonly reads: readonly ResourceType[];
  readonly validator: BackendValidator;
  readonly mutator: BackendMutator;
}

export interface BackendCapabilities {
  /** Source types this backend can fill an image from. */
  readonly sources: readonly ImageSource['type'][];
  /** Clones may be encrypted or decrypted on the way; left out: they are plain copies. */
  readonly encrypts?: true;
  /** It takes an uploaded file in one request; left out: in parts, and an interrupted upload resumes. */
  readonly uploadsWhole?: true;
  /** What it copies lies in the namespace of the image; left out: in any. */
  readonly copiesNearby?: true;
}

/** A product is installed where its kind is served. */
export interface Need {
  readonly type: ResourceType;
  /** Namespace the kind is looked for in. */
  readonly namespace: string;
  /** What a user should do where it is not. */
  readonly because: string;
}

/** How a disk is made from an image. */
export type RootDisk =
  /** An empty claim of this class: the storage fills it. */
  | { readonly is: 'class'; readonly className: string }
  /** A copy of the golden volume, in the image's namespace. */
  | { readonly is: 'copy'; readonly volume: string; readonly snapshot?: string | undefined };

/**
 * Rules beyond those of the kind and of `image.faults`. Each returns every fault at once, none when the request is fine. Look-ups are
 * bounded: one object, or one page.
 */
export interface BackendValidator {
  create(image: Image, kube: KubeClient): readonly Fault[] | Promise<readonly Fault[]>;
  update(before: Image, after: Image): readonly Fault[];
  delete(image: Image): readonly Fault[];
}

export interface BackendMutator {
  /**
   * Parameters of the storage class that the backend makes for an image, decided once at creation: those of the class it is modelled on, else
   * those `asked` for. `undefined` where the backend makes no class.
   */
  classParameters(
    asked: Readonly<Record<string, string>> | undefined,
    template: StorageClass | undefined,
  ): Readonly<Record<string, string>> | undefined;
}

/** Whether the product a backend stands on is there. */
export const isInstalled = async (kube: KubeClient, { type, namespace }: Need): Promise<boolean> => {
  try {
    await kube.list(type, { namespace, limit: 1 });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
};
