// What a storage backend is. One folder each, one line in registry.ts; outside its folder nobody compares backend names.
import type { KubeObject, ObjectRef, ResourceType } from '#shared/api/object.ts';
import type { Action } from '#shared/backends/actions.ts';
import type { Image, ImageState } from '#shared/backends/image.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Fault } from '#shared/runtime/errors.ts';

/** Decided by a pure function, carried out by the executor: actions in order, then one status write if `state` differs. */
export interface Plan {
  readonly actions: readonly Action[];
  readonly state: ImageState;
}

/** What planning may know besides the object and its children. Everything in it is injected, so plans are pure. */
export interface PlanContext {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly settings: BackendSettings;
}

/** Operator settings that shape children. One place, filled from the functions' configuration. */
export interface BackendSettings {
  /** OCI image of transfer-job. */
  readonly transferImage: string;
  readonly transferServiceAccount: string;
  /** CIDRs sources may point to although they are loopback, link-local or metadata addresses. */
  readonly allowedAddresses: readonly string[];
  /** Where transfer-job posts progress; left out: it posts none. */
  readonly eventSink?: string | undefined;
  /** Seconds one attempt may take. */
  readonly attemptSeconds: number;
  /** Seconds a child may take to become usable (bound, ready) before the image says it is stuck. */
  readonly childSeconds: number;
}

/**
 * `Seen` is what the backend read: the children it knows of and whatever else decides. Reading and deciding are apart: `check` talks to
 * the cluster and decides nothing, the others decide and talk to nobody. Every method must be safe to repeat at any moment; a crash
 * between any two actions is repaired by the next pass.
 */
export interface Backend<Seen = unknown> {
  readonly capabilities: BackendCapabilities;
  /** Reads the children by label and by name. Throws only AppErrors of the client. */
  check(kube: KubeClient, image: Image): Promise<Seen>;
  /** The next step from what was seen towards a usable golden image, or the reason why there is none. */
  initialize(image: Image, seen: Seen, context: PlanContext): Plan;
  /** What the children now say of sizes, where the image does not know them yet; `undefined` when nothing is new. */
  updateVirtualSize(image: Image, seen: Seen): ImageState | undefined;
  /** The next step of removal. No actions and no children seen means removed. */
  delete(image: Image, seen: Seen, context: PlanContext): Plan & { readonly removed: boolean };
  /** Child kinds whose changes concern an image. Triggers, sources and RBAC are generated from this. */
  readonly sidecars: readonly Sidecar[];
  readonly validator: BackendValidator;
  readonly mutator: BackendMutator;
}

export interface BackendCapabilities {
  /** Source types this backend can fill an image from. */
  readonly sources: readonly string[];
}

/** A child kind the backend follows. `verbs` beside get, list and watch are what plans do with it. */
export interface Sidecar {
  readonly type: ResourceType;
  readonly verbs: readonly ('create' | 'patch' | 'delete')[];
  /** The image a child belongs to; `undefined` for objects that are none of ours. */
  imageOf(object: KubeObject): ObjectRef | undefined;
}

/** Rules beyond those of the kind. Each returns every fault at once, none when the request is fine. */
export interface BackendValidator {
  create(image: Image): readonly Fault[];
  update(before: Image, after: Image): readonly Fault[];
  delete(image: Image): readonly Fault[];
}

export interface BackendMutator {
  /** The image with what this backend fills in at creation; the same object when nothing is missing. */
  create(image: Image): Image;
}
