// Keeps the bytes of images that are deleted within a grace, gives them back, and removes them afterwards. Called by the reconciler and by the tick.
import { annotations, deletedOwner } from '#shared/api/names.ts';
import { childrenOf, isOwnedBy, keyOf, type KubeObject, type ResourceType } from '#shared/api/object.ts';
import type { Image } from '#shared/backends/backend.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import {
  attach,
  deletedImageIn,
  detach,
  graceOf,
  type Holder,
  unlike,
} from '#shared/resources/deleted-images/record.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { execute } from '#shared/resources/execute.ts';
import { type GoldenKind, goldenKinds } from '#shared/resources/protected/golden.ts';
import type { Refusal } from '#shared/resources/reconciler.ts';
import { AppError, Denied, isNotFound, messageOf } from '#shared/runtime/errors.ts';

/** Everything else of an image is made anew from these: snapshots and classes. */
export const holderKinds = goldenKinds.filter(
  (kind): kind is GoldenKind & Pick<Holder, 'child'> => kind.child === 'volume' || kind.child === 'backingImage',
);

const namespaceOf = ({ namespace }: GoldenKind, { ref }: Pick<Image, 'ref'>) => namespace ?? ref.namespace;

const readHolder = async (kube: KubeClient, image: Image): Promise<Holder | undefined> => {
  for (const kind of holderKinds) {
    const { type, child } = kind;
    const name = image.state.children?.[child];
    if (name === undefined) continue;
    const object = await kube.get(type, { namespace: namespaceOf(kind, image), name });
    const isLeft = object !== undefined && object.metadata.deletionTimestamp === undefined;
    if (isLeft && isOwnedBy(object, image.ref.uid)) return { type, child, object };
  }
  return undefined;
};

/** Milliseconds for which the bytes stay. Of an image that was to be brought back and never was: what is left of the time, at least. */
const graceFor = (object: KubeObject, image: Image, holder: Holder | undefined): number | undefined => {
  const before = holder && deletedImageIn(holder.object);
  const rest = before && Date.parse(before.until) - Date.parse(object.metadata.deletionTimestamp ?? '');
  // Only what was usable is worth it.
  if (image.state.progress === 100) return graceOf(object);
  return rest && Math.max(rest, graceOf(object) ?? 0);
};

/** Of an image that is being deleted, and that nothing uses: whether its bytes were detached from it just now. */
export const keepBytes = async (kube: KubeClient, object: KubeObject, image: Image, now: number): Promise<boolean> => {
  if (graceOf(object) === undefined && object.metadata.annotations?.[annotations.undelete] === undefined) return false;
  const holder = await readHolder(kube, image);
  const grace = graceFor(object, image, holder);
  if (grace === undefined || holder === undefined) return false;
  if (Date.parse(object.metadata.deletionTimestamp ?? '') + grace <= now) return false;
  const bytes = image.state.inspection?.virtualSize ?? deletedImageIn(holder.object)?.bytes;
  await execute(kube, [detach(object, holder, { grace, bytes })]);
  return true;
};

/** An image that is to have the bytes of a deleted one, and has none yet. */
const isWantedBack = (object: KubeObject, { deleting, state }: Image): string | undefined =>
  deleting || state.children !== undefined ? undefined : object.metadata.annotations?.[annotations.undelete];

/** The image with the bytes that the deleted one left, so that nothing is fetched; or why there are none. */
export const takeBytes = async (kube: KubeClient, object: KubeObject, image: Image): Promise<Image | Refusal> => {
  const name = isWantedBack(object, image);
  if (name === undefined) return image;
  let why = `nothing holds its bytes under the name ${name}`;
  for (const kind of holderKinds) {
    const found = await kube.get(kind.type, { namespace: namespaceOf(kind, image), name });
    if (found === undefined) continue;
    const problem = unlike(object, image.ref, found);
    if (problem === undefined) {
      const holder = { type: kind.type, child: kind.child, object: found };
      if (!isOwnedBy(found, image.ref.uid)) await execute(kube, [attach(image.ref, holder)]);
      return { ...image, trustsStatus: false, state: { ...image.state, children: { [kind.child]: name } } };
    }
    if (deletedImageIn(found) !== undefined) why = problem;
  }
  return {
    reason: 'UndeleteFailed',
    message: `the deleted image cannot be brought back: ${why}. bullion undelete lists what can be. To import it from its source, remove the annotation ${annotations.undelete} and set a new ${annotations.retry}`,
  };
};

/** Objects with the bytes of deleted images, under the rights of who asks. A kind that may not be listed is left out. */
export const listHolders = async (kube: KubeClient, namespace?: string): Promise<readonly Holder[]> => {
  const found: Holder[] = [];
  for (const { type, child, namespace: elsewhere } of holderKinds) {
    const where = { namespace: elsewhere ?? namespace, labelSelector: childrenOf(deletedOwner) };
    try {
      for await (const object of kube.listAll(type as ResourceType, where)) found.push({ type, child, object });
    } catch (error) {
      if (!isNotFound(error) && !(error instanceof Denied)) throw error;
    }
  }
  return found;
};

const isPast = ({ object }: Holder, now: number): boolean => {
  const until = deletedImageIn(object)?.until;
  return until !== undefined && Date.parse(until) <= now;
};

/** One that cannot be removed, since something uses it, is tried again with the next tick. */
export const removePast = async ({ kube, now, log }: ReconcileDeps): Promise<void> => {
  for (const holder of await listHolders(kube)) {
    if (!isPast(holder, now())) continue;
    const { type, object } = holder;
    const { uid = '', resourceVersion, deletionTimestamp } = object.metadata;
    if (deletionTimestamp !== undefined) continue;
    try {
      // As it was listed: an image may have taken it back meanwhile.
      await kube.delete(type, keyOf(object), { uid, resourceVersion, propagation: 'Background' });
      log.info('removed a deleted image for good', { kind: type.kind, name: object.metadata.name });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      log.warn('deleted image not removed', { name: object.metadata.name, error: messageOf(error) });
    }
  }
};
