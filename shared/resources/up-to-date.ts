// Whether an object needs a pass at all, by looking at nothing but itself. Called for the object in an event, and by the reconciler.
import type { KubeObject } from '#shared/api/object.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';

/**
 * Whether an object has been dealt with: some pass has observed this spec and holds the object, so that its children, the
 * progress of its transfer and the tick move it on. Our own writes come back as events, and cost nothing by this.
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
 * Whether all that a change of the object can be is that a pass took hold of it: that pass goes on to write a status, and reads again if somebody else
 * changes the object meanwhile. Where it died, its event comes again, or the tick does.
 */
export const isBegun = (reconciler: Reconciler, object: KubeObject): boolean => {
  const resource = reconciler.read(object);
  const finalizer = reconciler.finalizerOf(resource);
  const isHeld = finalizer !== undefined && resource.finalizers.includes(finalizer);
  return isHeld && !resource.deleting && (object as { readonly status?: object }).status === undefined;
};
