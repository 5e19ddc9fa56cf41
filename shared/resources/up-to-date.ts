// Decides from the object alone whether it needs a pass. Called for the object in an event, and by the reconciler.
import type { KubeObject } from '#shared/api/object.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';

/**
 * Whether a pass has observed this spec and set the finalizer, so that events of children, progress reports and the tick reconcile it. Makes
 * the events of our own writes cheap.
 */
export const isUpToDate = (reconciler: Reconciler, object: KubeObject): boolean => {
  const resource = reconciler.read(object);
  const { observedGeneration } =
    (object as { readonly status?: { readonly observedGeneration?: number } }).status ?? {};
  if (resource.deleting || observedGeneration !== resource.generation) return false;
  if (reconciler.isSettled(resource)) return true;
  if (reconciler.isRetryDue(resource) || reconciler.isOfferDue?.(resource) === true) return false;
  const finalizer = reconciler.finalizerOf(resource);
  return finalizer === undefined || resource.finalizers.includes(finalizer);
};

/**
 * Whether a change of the object can only be the finalizer that a pass has set: that pass will write a status, and reads again if the object
 * changes meanwhile. If it died, its event is delivered again, or the tick follows.
 */
export const isBegun = (reconciler: Reconciler, object: KubeObject): boolean => {
  const resource = reconciler.read(object);
  const finalizer = reconciler.finalizerOf(resource);
  const isHeld = finalizer !== undefined && resource.finalizers.includes(finalizer);
  return isHeld && !resource.deleting && (object as { readonly status?: object }).status === undefined;
};
