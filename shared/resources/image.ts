// Reconciles an image kind: by the backend in its spec; an image is not removed while it is being cloned. Called by registry.ts.
import { finalizers, labels } from '#shared/api/names.ts';
import { groupKindOf, type KubeObject, sourceLabel } from '#shared/api/object.ts';
import type { Backend, Image } from '#shared/backends/backend.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { isFromServer } from '#shared/populate/source.ts';
import { type Filled, isFinal } from '#shared/populate/filled.ts';
import { contentOf } from '#shared/populate/singleflight/read.ts';
import { terminatingState } from '#shared/populate/state.ts';
import { type BackendRegistry, type Registration, registrationOf } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { refusalOfFaults } from '#shared/resources/reconciler.ts';
import { contentGroupKind, contentLinkOf } from '#shared/resources/fillable.ts';
import type { ImageDialect, ImageObject } from '#shared/resources/dialect.ts';
import type { Reconciler, Links, Planner, Refusal } from '#shared/resources/reconciler.ts';
import { keepBytes, takeBytes } from '#shared/resources/deleted-images/keep.ts';
import { unfitSource } from '#shared/resources/image-rules.ts';
import { fillable, noObjectStore, refusals } from '#shared/resources/fillable.ts';

const servedBy = (backends: BackendRegistry): readonly Backend[] =>
  Object.values<Registration>(backends).flatMap((registration) => (registration.served ? [registration.backend] : []));

interface ObservedImage {
  readonly children: unknown;
  /** Volumes that are being cloned from the image; read only if it is to be removed. */
  readonly clones: readonly string[];
}

const plannerOf = (backend: Backend, cloners: readonly Cloner[]): Planner<Image, ObservedImage> => ({
  check: async (kube, image, { look } = {}) => ({
    clones: image.deleting ? await findClones(kube, image, cloners) : [],
    children: await backend.check(kube, image, look),
  }),
  plan: (image, { children }, context) =>
    backend.initialize(
      { ...image, state: backend.updateVirtualSize(image, children) ?? image.state },
      children,
      context,
    ),
  remove: (image, { children, clones }, context) =>
    clones.length === 0 ? backend.delete(image, children, context) : waitForClones(image, clones),
});

const waitForClones = ({ state }: Image, clones: readonly string[]) => ({
  actions: [],
  removed: false,
  state: terminatingState(
    state,
    'BeingCloned',
    `waiting for ${clones.join(', ')}, which are being cloned from this image: let them finish, or delete them`,
  ),
});

/** A clone is in progress from its start until it is filled. Other images may be in any namespace. */
const findClones = async (kube: KubeClient, { ref }: Image, cloners: readonly Cloner[]): Promise<readonly string[]> => {
  const { namespace = '', name } = ref;
  const label = sourceLabel({ groupKind: groupKindOf(ref), namespace, name });
  const labelSelector = `${labels.source}=${label}`;
  const found: string[] = [];
  for (const reconciler of cloners) {
    const where = reconciler.kind.type.kind === ref.kind ? {} : { namespace };
    for await (const object of kube.listAll(reconciler.kind.type, { ...where, labelSelector })) {
      const clone = reconciler.read(object);
      const from = reconciler.links?.sourceOf(clone);
      // The label is a hint: users can set it.
      const isFromIt = from !== undefined && sourceLabel(from) === label;
      if (isFromIt && isBeingMade(clone)) found.push(`${object.kind} ${object.metadata.name}`);
    }
  }
  return found;
};

const isBeingMade = ({ deleting, state }: Filled): boolean => {
  const { volume, backingImage } = state.children ?? {};
  return !deleting && !isFinal(state) && (volume !== undefined || backingImage !== undefined);
};

const refusalOf = (image: Image, backends: BackendRegistry, settings: PopulateSettings): Refusal | undefined => {
  const registration = registrationOf(backends, image.backend);
  if (!registration.served) return { reason: refusals.backend, message: registration.because };
  const hasNoStore = image.source?.type === 'object' && settings.objectStore === undefined;
  return (
    refusalOfFaults(image) ?? (hasNoStore ? noObjectStore('the source') : refusalOfSource(image, registration.backend))
  );
};

/** Rejected by admission with the same message. */
const refusalOfSource = (image: Image, { capabilities }: Backend): Refusal | undefined => {
  const fault = unfitSource(image, capabilities);
  return fault === undefined ? undefined : { reason: refusals.spec, message: fault };
};

const imageLink = ({ ref }: Image) => ({ groupKind: groupKindOf(ref), namespace: ref.namespace ?? '', name: ref.name });

const contentLink = ({ ref, source, checksum }: Image) => contentLinkOf(ref, contentOf({ from: source, checksum }));

/** An image that is a copy of another one waits for that. */
const cloneLink = ({ ref, source }: Image) =>
  source?.type === 'clone'
    ? { groupKind: groupKindOf(ref), namespace: source.namespace, name: source.imageName }
    : undefined;

/** A kind whose objects are made from images of one kind. */
type Cloner = Pick<Reconciler<KubeObject, Filled>, 'kind' | 'read' | 'links'>;

const linksOf = <T extends ImageObject>({ kind: { type } }: ImageDialect<T>): Links<Image> => ({
  waitsFor: [contentGroupKind, `${type.kind}.${type.group}`],
  sourceOf: (image) => cloneLink(image) ?? contentLink(image),
  offersOf: (image) => [imageLink(image), contentLink(image)].filter((offer) => offer !== undefined),
});

export const imageReconciler = <T extends ImageObject>(
  dialect: ImageDialect<T>,
  cloners: readonly Cloner[] = [],
): Reconciler<T, Image> => ({
  ...fillable,
  kind: dialect.kind,
  read: (object) => dialect.toImage(object),
  toStatus: (object, image, state, now) => dialect.toStatus(object, image, state, now),
  watchedChildren: (backends) => servedBy(backends).flatMap(({ watchedChildren }) => watchedChildren),
  reads: (backends) => servedBy(backends).flatMap(({ reads }) => reads),
  refusalOf,
  keep: keepBytes,
  takeBack: takeBytes,
  plannerOf: ({ backend }, backends) => {
    const registration = registrationOf(backends, backend);
    // Images can also be made from images of their kind.
    const read = (object: KubeObject) => dialect.toImage(object as T);
    const own = { kind: dialect.kind, read, links: linksOf(dialect) };
    return registration.served ? (plannerOf(registration.backend, [...cloners, own]) as Planner<Image>) : undefined;
  },
  uniqueNameOf: ({ displayName, state }) =>
    dialect.namesAreUnique === true
      ? { name: displayName, what: 'display name', reason: refusals.name, isDue: state.children === undefined }
      : undefined,
  fetches: ({ source, state }) => !isFinal(state) && isFromServer(source),
  finalizerOf: () => finalizers.image,
  isOfferDue: ({ offered, state }) => offered !== undefined && state.children?.volume === undefined,
  links: linksOf(dialect),
});
