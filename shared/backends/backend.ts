// What a storage backend is. One folder each, one line in registry.ts; outside its folder nobody compares backend names.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { Owner } from '#shared/api/owner.ts';
import type { Action } from '#shared/backends/actions.ts';
import type { Image, ImageState } from '#shared/backends/image.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import type { JobSource } from '#shared/populate/transfer-job.ts';

/** Decided by a pure function, carried out by the executor: actions in order, then one status write if `state` differs. */
export interface Plan {
  readonly actions: readonly Action[];
  readonly state: ImageState;
}

/** What planning may know besides the object and its children. Everything in it is injected, so plans are pure. */
export interface PlanContext {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly settings: PopulateSettings;
}

/**
 * `Seen` is what the backend read: the children it knows of and whatever else decides. Reading and deciding are apart: `check` talks to
 * the cluster and decides nothing, the others decide and talk to nobody. Every method must be safe to repeat at any moment; a crash
 * between any two actions is repaired by the next pass.
 */
export interface Backend<Seen = unknown> {
  readonly capabilities: BackendCapabilities;
  /** Reads what the next step of this image depends on, no more. Throws only AppErrors of the client. */
  check(kube: KubeClient, image: Image): Promise<Seen>;
  /** The next step from what was seen towards a usable golden image, or the reason why there is none. */
  initialize(image: Image, seen: Seen, context: PlanContext): Plan;
  /** What the children say of sizes, where a usable image does not know them yet; `undefined` when nothing is new. */
  updateVirtualSize(image: Image, seen: Seen): ImageState | undefined;
  /** The next step of removal. `removed` once nothing of the image is left. */
  delete(image: Image, seen: Seen, context: PlanContext): Plan & { readonly removed: boolean };
  /** Child kinds whose changes concern an image. Triggers, sources and RBAC are generated from this. */
  readonly sidecars: readonly Sidecar[];
  /** Kinds that are read and not followed. RBAC is generated from this. */
  readonly reads: readonly ResourceType[];
  readonly validator: BackendValidator;
  readonly mutator: BackendMutator;
}

export interface BackendCapabilities {
  /** Source types this backend can fill an image from. */
  readonly sources: readonly JobSource['type'][];
}

export type Change = 'add' | 'update' | 'delete';

/** A child kind the backend follows. `verbs` beside get, list and watch are what plans do with it. */
export interface Sidecar {
  readonly type: ResourceType;
  readonly verbs: readonly ('create' | 'patch' | 'delete')[];
  /** The image a child belongs to; `undefined` for objects that are none of ours. */
  ownerOf(object: KubeObject): Owner | undefined;
  /** Whether a change of this child can move its image on. Saying `true` too often costs a few reads, `false` wrongly a minute. */
  matters(object: KubeObject, change: Change): boolean;
}

/** Rules beyond those of the kind and of `image.faults`. Each returns every fault at once, none when the request is fine. */
export interface BackendValidator {
  create(image: Image): readonly Fault[];
  update(before: Image, after: Image): readonly Fault[];
  delete(image: Image): readonly Fault[];
}

export interface BackendMutator {
  /** The image with what this backend fills in at creation; the same object when nothing is missing. */
  create(image: Image): Image;
}
