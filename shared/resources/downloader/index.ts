// Reconciles VirtualMachineImageDownloaders: each reports when its image can be downloaded, and expires. One line in registry.ts.
import { type StatusCondition, findCondition, setConditions } from '#shared/api/conditions.ts';
import { type Downloader, type DownloaderStatus, downloaderKind } from '#shared/api/harvester/downloader.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { apiVersionOf, groupKindOf } from '#shared/api/object.ts';
import { remove } from '#shared/populate/actions.ts';
import { follow } from '#shared/populate/watched-child.ts';
import type { Reconciler, ReconciledState, Planner, Resource } from '#shared/resources/reconciler.ts';
import { readResource } from '#shared/resources/dialect.ts';
import { plainReconciler } from '#shared/resources/reconciler.ts';

/** Milliseconds after which an unused one is deleted. It runs no pod meanwhile. */
export const lifetimeMs = 24 * 3600 * 1000;

interface DownloaderState extends ReconciledState {
  readonly downloadUrl?: string | undefined;
}

export interface DownloaderResource extends Resource<DownloaderState> {
  readonly object: Downloader;
}

const images = harvesterImageKind.type;
const imageGroupKind = groupKindOf({ apiVersion: apiVersionOf(images), kind: images.kind });

const read = (object: Downloader): DownloaderResource => {
  const { status, downloadUrl, conditions } = object.status ?? {};
  const ready = findCondition(conditions, 'Ready');
  return {
    ...readResource(object),
    object,
    state: {
      phase: status ?? 'Progressing',
      reason: ready?.reason ?? 'Pending',
      message: ready?.message ?? 'waiting to be processed',
      downloadUrl,
    },
  };
};

const progressing = (reason: string, message: string): DownloaderState => ({ phase: 'Progressing', reason, message });

const stateFor = (
  { object }: DownloaderResource,
  image: HarvesterImage | undefined,
  transferUrl: string | undefined,
): DownloaderState => {
  const { imageName } = object.spec;
  if (image === undefined) return progressing('ImageNotFound', `there is no image ${imageName} in this namespace`);
  if (image.status?.phase !== 'Imported')
    return progressing(
      'SourceNotReady',
      `image ${imageName} is ${image.status?.phase ?? 'new'}: it must be imported first`,
    );
  if (transferUrl === undefined)
    return progressing('NoTransferUrl', 'this installation supports no downloads: TRANSFER_URL is not set');
  const path = `v1/harvester/harvesterhci.io.virtualmachineimages/${object.metadata.namespace ?? ''}/${imageName}/download`;
  return {
    phase: 'Ready',
    reason: 'Ready',
    message: 'the image can be downloaded',
    downloadUrl: `${transferUrl.replace(/\/+$/, '')}/${path}`,
  };
};

const isExpired = ({ object }: DownloaderResource, now: number): boolean =>
  now - Date.parse(object.metadata.creationTimestamp ?? '') >= lifetimeMs;

export const downloaderPlanner: Planner<DownloaderResource, HarvesterImage | undefined> = {
  check: (kube, { object }) => {
    const { namespace } = object.metadata;
    return kube.get(images, { namespace, name: object.spec.imageName });
  },
  plan: (resource, image, { now, settings }) =>
    isExpired(resource, now)
      ? { actions: remove(downloaderKind.type, resource.object), state: resource.state }
      : { actions: [], state: stateFor(resource, image, settings.transferUrl) },
  remove: ({ state }) => ({ actions: [], state, removed: true }),
};

/** Harvester's conditions in addition to ours. */
const conditionsOf = ({ status }: Downloader, generation: number, state: DownloaderState, now: string) => {
  const isReady = state.phase === 'Ready';
  const { reason, message } = state;
  const wanted = [
    { type: 'Ready', status: isReady ? 'True' : 'False', reason, message, observedGeneration: generation },
    {
      type: 'Reconciling',
      status: isReady ? 'False' : 'True',
      reason: isReady ? 'Reconciled' : 'Reconciling',
      message: isReady ? '' : message,
      observedGeneration: generation,
    },
  ] as const;
  return setConditions((status?.conditions ?? []) as readonly StatusCondition[], wanted, now);
};

export const downloaderReconciler: Reconciler<Downloader, DownloaderResource> = {
  ...plainReconciler('Ready', (_resource, { reason, message }) => progressing(reason, message)),
  kind: downloaderKind,
  // It has no children; declared for the permission to delete expired ones.
  watchedChildren: () => [follow(downloaderKind.type, ['delete'], () => false)],
  reads: () => [images],
  read,
  toStatus: (object, { generation }, state, now): DownloaderStatus => ({
    observedGeneration: generation,
    status: state.phase === 'Ready' ? 'Ready' : 'Progressing',
    ...(state.downloadUrl === undefined ? {} : { downloadUrl: state.downloadUrl }),
    conditions: [...conditionsOf(object, generation, state, now)],
  }),
  refusalOf: () => undefined,
  plannerOf: () => downloaderPlanner,
  // It expires: the tick must check it.
  isSettled: () => false,
  links: {
    waitsFor: [imageGroupKind],
    sourceOf: ({ object }) => ({
      groupKind: imageGroupKind,
      namespace: object.metadata.namespace ?? '',
      name: object.spec.imageName,
    }),
    offersOf: () => [],
  },
};
