// Whether an object needs a pass at all, by looking at nothing but itself. Called for the object in an event, and by the reconciler.
import type { KubeObject } from '#shared/api/object.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';

/**
 * Whether an object has been dealt with: some pass has observed this spec and holds the object, so that its children, the
 * progress of its transfer and the tick move it on. Our own writes come back as events, and cost nothing by this.
 */
export const isUpToDate = (reconciler: Reconciler, object: KubeObject): boolean => {
  const subject = reconciler.read(object);
  const { observedGeneration } =
    (object as { readonly status?: { readonly observedGeneration?: number } }).status ?? {};
  if (subject.deleting || observedGeneration !== subject.generation) return false;
  if (reconciler.isSettled(subject)) return true;
  if (reconciler.isRetryDue(subject) || reconciler.isOfferDue?.(subject) === true) return false;
  const finalizer = reconciler.finalizerOf(subject);
  return finalizer === undefined || subject.finalizers.includes(finalizer);
};

/**
 * Whether all that a change of the object can be is that a pass took hold of it: that pass goes on to write a status, and reads again if somebody else
 * changes the object meanwhile. Where it died, its event comes again, or the tick does.
 */
export const isBegun = (reconciler: Reconciler, object: KubeObject): boolean => {
  const subject = reconciler.read(object);
  const finalizer = reconciler.finalizerOf(subject);
  const isHeld = finalizer !== undefined && subject.finalizers.includes(finalizer);
  return isHeld && !subject.deleting && (object as { readonly status?: object }).status === undefined;
};
