// What the reconciler keeps of an object of any kind, from its metadata. Called by the kinds that read their own objects.
import { type KubeObject, refOf } from '#shared/api/object.ts';
import type { Subject } from '#shared/resources/reconciler.ts';

export const readSubject = (object: KubeObject): Pick<Subject, 'ref' | 'generation' | 'deleting' | 'finalizers'> => ({
  ref: refOf(object),
  generation: object.metadata.generation ?? 1,
  deleting: object.metadata.deletionTimestamp !== undefined,
  finalizers: object.metadata.finalizers ?? [],
});
