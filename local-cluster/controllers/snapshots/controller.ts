// Snapshots of local volumes: VolumeSnapshot → VolumeSnapshotContent → files, and back again on deletion.
import {
  type VolumeSnapshot,
  type VolumeSnapshotContent,
  volumeSnapshotContents,
  volumeSnapshots,
} from '#shared/api/foreign/snapshot.ts';
import { keyOf } from '#shared/api/object.ts';
import { formatQuantity } from '#shared/api/quantity.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import { type Controller, type ControllerContext, startController } from '#local-cluster/controllers/controller.ts';
import { createSay, type Say } from '#local-cluster/controllers/events.ts';
import { keyOfText, textOf } from '#local-cluster/controllers/informer.ts';
import { dropFinalizers, holdFinalizer } from '#local-cluster/controllers/finalizers.ts';
import {
  type Source,
  contentFinalizer,
  contentNameOf,
  findSource,
} from '#local-cluster/controllers/snapshots/source.ts';
import { directoryDriver } from '#local-cluster/controllers/volumes/classes.ts';
import type { VolumeDirectory } from '#local-cluster/controllers/volumes/directory.ts';

const boundFinalizer = 'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection';

interface Tools {
  readonly kube: KubeClient;
  readonly say: Say;
  readonly directory: VolumeDirectory;
}

export const startSnapshotController = (
  context: ControllerContext & { readonly directory: VolumeDirectory },
): Controller => {
  const tools: Tools = { ...context, say: createSay(context.kube, 'local-snapshotter') };
  return startController(
    {
      ...context,
      name: 'snapshots',
      reconcile: async (key) => {
        const snapshot = await context.kube.get(volumeSnapshots, keyOfText(key));
        if (snapshot === undefined) return undefined;
        if (snapshot.metadata.deletionTimestamp !== undefined) return remove(tools, snapshot);
        return snapshot.status?.readyToUse === true ? undefined : drive(tools, snapshot);
      },
    },
    ({ watch }) => {
      watch(volumeSnapshots, (snapshot) => [textOf(snapshot.metadata)]);
      watch(volumeSnapshotContents, ({ spec: { volumeSnapshotRef: ref } }) =>
        ref.namespace === undefined || ref.name === undefined ? [] : [`${ref.namespace}/${ref.name}`],
      );
    },
  );
};

/** Watches contents separately: their files are deleted with them, whoever deleted them. */
export const startContentController = (
  context: ControllerContext & { readonly directory: VolumeDirectory },
): Controller =>
  startController(
    {
      ...context,
      name: 'snapshot-contents',
      reconcile: async (name) => {
        const content = await context.kube.get(volumeSnapshotContents, { name });
        if (content?.metadata.deletionTimestamp === undefined || content.spec.driver !== directoryDriver)
          return undefined;
        const ref = content.spec.volumeSnapshotRef;
        const snapshot = await context.kube.get(volumeSnapshots, { namespace: ref.namespace, name: ref.name ?? '' });
        // A bound content is kept until its snapshot is deleted.
        if (snapshot?.metadata.uid === ref.uid && snapshot?.metadata.deletionTimestamp === undefined) return undefined;
        if (content.spec.deletionPolicy === 'Delete') {
          await context.directory.remove({ what: 'snapshot', handle: content.status?.snapshotHandle ?? name });
        }
        await dropFinalizers(context.kube, volumeSnapshotContents, content, [contentFinalizer]);
        return undefined;
      },
    },
    ({ watch }) => {
      watch(volumeSnapshotContents, (content) => [content.metadata.name]);
      watch(volumeSnapshots, (snapshot) => [contentNameOf(snapshot)]);
    },
  );

/** Milliseconds until an obstacle is checked again. */
const againMs = 2_000;

const drive = async (tools: Tools, snapshot: VolumeSnapshot): Promise<number | undefined> => {
  await holdFinalizer(tools.kube, volumeSnapshots, snapshot, boundFinalizer);
  const found = await findSource(tools.kube, snapshot);
  if ('obstacle' in found) {
    await tellObstacle(tools, snapshot, found.obstacle);
    return againMs;
  }
  await take(tools, snapshot, found);
  return undefined;
};

/** One that was prepared by hand is there already. */
const ensureContent = async (kube: KubeClient, content: VolumeSnapshotContent): Promise<VolumeSnapshotContent> => {
  if (content.metadata.uid !== undefined) return content;
  return kube.create(volumeSnapshotContents, content).catch(async (error: unknown) => {
    if (!isConflict(error)) throw error;
    return (await kube.get(volumeSnapshotContents, keyOf(content))) ?? content;
  });
};

/** Content, files, then both statuses: the snapshot is ready only once its bytes are complete and flushed. */
const take = async ({ kube, say, directory }: Tools, snapshot: VolumeSnapshot, source: Source): Promise<void> => {
  const content = await ensureContent(kube, source.content);
  const { volumeHandle, snapshotHandle: existing } = content.spec.source;
  const handle = existing ?? content.metadata.name;
  if (volumeHandle !== undefined) await directory.snapshot(handle, volumeHandle);
  const now = new Date();
  const creationTime = now.toISOString();
  await kube.mergePatch(
    volumeSnapshotContents,
    keyOf(content),
    {
      status: {
        snapshotHandle: handle,
        readyToUse: true,
        restoreSize: source.bytes,
        creationTime: now.getTime() * 1_000_000,
        error: null,
      },
    },
    { subresource: 'status' },
  );
  if (snapshot.spec.volumeSnapshotClassName === undefined && source.className !== undefined) {
    const patch = { spec: { volumeSnapshotClassName: source.className } };
    await kube.mergePatch(volumeSnapshots, keyOf(snapshot), patch);
  }
  await kube.mergePatch(
    volumeSnapshots,
    keyOf(snapshot),
    {
      status: {
        boundVolumeSnapshotContentName: content.metadata.name,
        readyToUse: true,
        restoreSize: formatQuantity(source.bytes),
        creationTime,
        error: null,
      },
    },
    { subresource: 'status' },
  );
  await say(snapshot, {
    type: 'Normal',
    reason: 'SnapshotReady',
    message: `Snapshot ${textOf(snapshot.metadata)} is ready to use.`,
  });
};

const tellObstacle = async ({ kube, say }: Tools, snapshot: VolumeSnapshot, message: string): Promise<void> => {
  if (snapshot.status?.error?.message === message) return;
  const error = { message, time: new Date().toISOString() };
  await kube.mergePatch(
    volumeSnapshots,
    keyOf(snapshot),
    { status: { readyToUse: false, error } },
    { subresource: 'status' },
  );
  await say(snapshot, { type: 'Warning', reason: 'SnapshotContentCreationFailed', message });
};

const remove = async ({ kube }: Tools, snapshot: VolumeSnapshot): Promise<number | undefined> => {
  const name = contentNameOf(snapshot);
  const content = await kube.get(volumeSnapshotContents, { name });
  const isOurs = content?.spec.volumeSnapshotRef.uid === snapshot.metadata.uid;
  if (content !== undefined && isOurs && content.spec.deletionPolicy === 'Delete') {
    await kube.delete(volumeSnapshotContents, { name }, { uid: content.metadata.uid ?? '' });
    return 500;
  }
  await dropFinalizers(kube, volumeSnapshots, snapshot, [boundFinalizer]);
  return undefined;
};
