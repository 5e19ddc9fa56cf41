// Whether an object needs a pass at all, by looking at nothing but itself. Called for the object in an event, and by the driver.
import type { KubeObject } from '#shared/api/object.ts';
import type { Driven } from '#shared/resources/driven.ts';

/**
 * Whether an object has been dealt with: some pass has observed this spec and holds the object, so that its children, the
 * progress of its transfer and the tick move it on. Our own writes come back as events, and cost nothing by this.
 */
export const isDealtWith = (driven: Driven, object: KubeObject): boolean => {
  const subject = driven.read(object);
  const { observedGeneration } =
    (object as { readonly status?: { readonly observedGeneration?: number } }).status ?? {};
  if (subject.deleting || observedGeneration !== subject.generation) return false;
  if (driven.isSettled(subject)) return true;
  if (driven.isRetryDue(subject) || driven.isOfferDue?.(subject) === true) return false;
  const finalizer = driven.finalizerOf(subject);
  return finalizer === undefined || subject.finalizers.includes(finalizer);
};

/**
 * Whether all that a change of the object can be is that a pass took hold of it: that pass goes on to write a status, and reads again if somebody else
 * changes the object meanwhile. Where it died, its event comes again, or the tick does.
 */
export const isBegun = (driven: Driven, object: KubeObject): boolean => {
  const subject = driven.read(object);
  const finalizer = driven.finalizerOf(subject);
  const isHeld = finalizer !== undefined && subject.finalizers.includes(finalizer);
  return isHeld && !subject.deleting && (object as { readonly status?: object }).status === undefined;
};
