// Longhorn's backing image controller, as seen by its clients: states of each copy, a data source that prepares the first one, sizes when they
// are known.
import { randomUUID } from 'node:crypto';
import {
  type BackingImage,
  type BackingImageDataSource,
  backingImageDataSources,
  backingImages,
  longhornNamespace,
} from '#shared/api/foreign/longhorn.ts';
import { keyOf } from '#shared/api/object.ts';
import { isConflict, messageOf } from '#shared/runtime/errors.ts';
import { type Controller, type ControllerContext, startController } from '#local-cluster/controllers/controller.ts';
import { dropFinalizers, holdFinalizer } from '#local-cluster/controllers/finalizers.ts';
import { keyOfText, textOf } from '#local-cluster/controllers/informer.ts';
import { conclude, disks, firstOf, reporter, say, spread } from '#local-cluster/longhorn/copies.ts';
import { type Tools, prepare } from '#local-cluster/longhorn/prepare.ts';

const longhornFinalizer = 'longhorn.io';

export interface BackingImageController extends Controller {
  /** Receives the bytes of an upload. Throws if the backing image does not wait for one. */
  receive(name: string, size: number, bytes: AsyncIterable<Uint8Array>): Promise<void>;
}

type Context = ControllerContext & Tools;

export const startBackingImageController = (context: Context): BackingImageController => {
  const work = new Map<string, AbortController>();
  const controller = startController(
    {
      ...context,
      name: 'backing-images',
      reconcile: async (text) => {
        const image = await context.kube.get(backingImages, keyOfText(text));
        if (image === undefined) return undefined;
        if (image.metadata.deletionTimestamp !== undefined) return remove(context, image, work);
        return advance(context, image, work);
      },
    },
    ({ watch }) => {
      watch(backingImages, ({ metadata }) => [textOf(metadata)]);
    },
  );
  return {
    ...controller,
    receive: (name, size, bytes) => receive(context, name, { size, bytes, work }),
    stop: async () => {
      for (const one of work.values()) one.abort();
      await controller.stop();
    },
  };
};

const remove = async (
  { kube, files, directory }: Context,
  image: BackingImage,
  work: Map<string, AbortController>,
): Promise<undefined> => {
  const uuid = image.status?.uuid;
  work.get(uuid ?? '')?.abort();
  work.delete(uuid ?? '');
  if (uuid !== undefined) {
    await files.remove(uuid);
    await directory.remove({ what: 'image', handle: uuid });
  }
  await kube.delete(backingImageDataSources, keyOf(image));
  await dropFinalizers(kube, backingImages, image, [longhornFinalizer]);
};

const advance = async (
  context: Context,
  image: BackingImage,
  work: Map<string, AbortController>,
): Promise<number | undefined> => {
  await holdFinalizer(context.kube, backingImages, image, longhornFinalizer);
  const uuid = image.status?.uuid;
  if (uuid === undefined) return begin(context, image);
  switch (firstOf(image)?.state) {
    case 'pending':
      if (image.spec.sourceType !== 'upload') await startWork(context, image, uuid, work);
      return undefined;
    case 'in-progress':
      // It was started by an earlier process, which has ended.
      if (!work.has(uuid)) {
        await say(context, image, { state: 'failed', message: 'the data source was interrupted' });
      }
      return undefined;
    case 'ready-for-transfer':
      await say(context, image, { state: 'ready', progress: 100, message: '' });
      return undefined;
    case 'ready':
      return spread(context, image);
    default:
      return undefined;
  }
};

const begin = async (context: Context, image: BackingImage): Promise<undefined> => {
  const uuid = `${image.metadata.name.slice(0, 8)}-${randomUUID().slice(0, 8)}`;
  const { sourceType, sourceParameters: parameters, checksum } = image.spec;
  const source: BackingImageDataSource = {
    apiVersion: 'longhorn.io/v1beta2',
    kind: 'BackingImageDataSource',
    metadata: { namespace: longhornNamespace, name: image.metadata.name, ownerReferences: [ownerOf(image)] },
    spec: {
      ...(sourceType === undefined ? {} : { sourceType }),
      ...(parameters === undefined ? {} : { parameters }),
      ...(checksum === undefined ? {} : { checksum }),
      uuid,
      diskUUID: disks[0],
      nodeID: 'local',
    },
  };
  await context.kube.create(backingImageDataSources, source).catch((error: unknown) => {
    if (!isConflict(error)) throw error;
  });
  await say(context, image, { state: 'pending', progress: 0, message: '' }, { facts: { uuid } });
};

const ownerOf = ({ apiVersion, kind, metadata }: BackingImage) => ({
  apiVersion,
  kind,
  name: metadata.name,
  uid: metadata.uid ?? '',
  blockOwnerDeletion: true,
});

/** Continues after this pass; the state reports the progress. */
const startWork = async (
  context: Context,
  image: BackingImage,
  uuid: string,
  work: Map<string, AbortController>,
): Promise<void> => {
  if (work.has(uuid)) return;
  const abort = new AbortController();
  work.set(uuid, abort);
  await say(context, image, { state: 'in-progress', progress: 0, message: '' });
  const progress = reporter(context, image);
  void prepare(context, image, { uuid, signal: abort.signal, onProgress: progress.report })
    .then(async (facts) => {
      await progress.end();
      return facts;
    })
    .then(
      (facts) => conclude(context, image, facts),
      async (error: unknown) => {
        await progress.end();
        if (!abort.signal.aborted) await say(context, image, { state: 'failed', message: messageOf(error) });
      },
    )
    .catch((error: unknown) => context.report('backing image status not updated', { error: messageOf(error) }));
};

const sectorBytes = 512;

const receive = async (
  context: Context,
  name: string,
  {
    size,
    bytes,
    work,
  }: {
    readonly size: number;
    readonly bytes: AsyncIterable<Uint8Array>;
    readonly work: Map<string, AbortController>;
  },
): Promise<void> => {
  const image = await context.kube.get(backingImages, { namespace: longhornNamespace, name });
  const uuid = image?.status?.uuid;
  if (image === undefined || uuid === undefined) throw new Error(`backing image ${name} is not there yet`);
  if (image.spec.sourceType !== 'upload') throw new Error(`backing image ${name} is not of source type upload`);
  if (firstOf(image)?.state !== 'pending') throw new Error(`backing image ${name} does not wait for an upload`);
  if (size % sectorBytes !== 0) {
    throw new Error(
      `the uploaded file size ${size} should be a multiple of ${sectorBytes} bytes since Longhorn uses directIO by default`,
    );
  }
  // One that was started by an earlier process was interrupted when that ended.
  work.set(uuid, new AbortController());
  await say(context, image, { state: 'in-progress', progress: 0, message: '' });
  const progress = reporter(context, image);
  try {
    const facts = await context.files.write(uuid, bytes, (count) => progress.report((count * 100) / size));
    await progress.end();
    if (facts.size !== size) throw new Error(`got ${facts.size} bytes of ${size}`);
    await conclude(context, image, facts);
  } catch (error) {
    await progress.end();
    await say(context, image, { state: 'failed', message: messageOf(error) });
    throw error;
  } finally {
    work.delete(uuid);
  }
};
