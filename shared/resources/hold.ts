// Taking hold of an object, and letting go: the writes of its metadata that are for the version that was read alone. Called by driver.ts.
import { labels } from '#shared/api/names.ts';
import { type KubeObject, refOf } from '#shared/api/object.ts';
import { sourceLabel } from '#shared/api/owner.ts';
import type { Subject } from '#shared/resources/reconciler.ts';
import type { Pass } from '#shared/resources/reconcile.ts';

/**
 * Takes hold of the object before its first child is made, so that none can outlive it, and lets it be found before anything is looked at
 * that it may have to wait for.
 */
export const hold = async (pass: Pass): Promise<Pass> => {
  const { deps, reconciler, object, subject } = pass;
  const finalizer = reconciler.finalizerOf(subject);
  const isHeld = finalizer === undefined || subject.finalizers.includes(finalizer);
  const source = reconciler.links?.sourceOf(subject);
  const label = source && sourceLabel(source);
  const isLabelled = label === undefined || object.metadata.labels?.[labels.source] === label;
  if (isHeld && isLabelled) return pass;
  const held = await writeMetadata(pass, {
    ...(isHeld ? {} : { finalizers: [...subject.finalizers, finalizer] }),
    ...(isLabelled ? {} : { labels: { [labels.source]: label } }),
  });
  return { deps, reconciler, object: held, subject: { ...subject, ...metadataOf(reconciler.read(held)) } };
};

const metadataOf = ({ ref, generation, finalizers }: Subject) => ({ ref, generation, finalizers });

/** Void if the object has changed since it was read. */
export const writeMetadata = ({ deps, reconciler, object }: Pass, change: object): Promise<KubeObject> =>
  deps.kube.mergePatch(reconciler.kind.type, refOf(object), {
    metadata: { resourceVersion: object.metadata.resourceVersion, ...change },
  });
