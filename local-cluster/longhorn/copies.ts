// The copies of a backing image: their reported state, and how further ones are made from the first.
import {
  type BackingImage,
  type BackingImageCopy,
  backingImageDataSources,
  backingImages,
} from '#shared/api/foreign/longhorn.ts';
import { keyOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { FileFacts } from '#local-cluster/longhorn/files.ts';

interface CopyContext {
  readonly kube: KubeClient;
}

/** Disks of the simulated cluster; each has at most one copy. */
export const disks = ['disk-1', 'disk-2', 'disk-3'] as const;

/** Milliseconds between two reports of progress. */
const reportMs = 300;

export const firstOf = ({ status }: BackingImage): BackingImageCopy | undefined =>
  status?.diskFileStatusMap?.[disks[0]];

/** Milliseconds for making a copy on another disk. */
const spreadMs = 200;

/** The other copies are made from the first, one after the other. */
export const spread = async (context: CopyContext, image: BackingImage): Promise<number | undefined> => {
  const copies = image.status?.diskFileStatusMap ?? {};
  const wanted = disks.slice(0, Math.max(1, image.spec.minNumberOfCopies ?? 1));
  const next = wanted.find((disk) => copies[disk]?.state !== 'ready');
  if (next === undefined) return undefined;
  const state = copies[next] === undefined ? 'in-progress' : 'ready';
  await say(context, image, { state, progress: state === 'ready' ? 100 : 50, message: '' }, { disk: next });
  return spreadMs;
};

const now = (): string => new Date().toISOString();

/** Records the state of one copy, and the known facts of the file. */
export const say = async (
  { kube }: Pick<CopyContext, 'kube'>,
  image: BackingImage,
  copy: BackingImageCopy,
  {
    facts = {},
    disk = disks[0],
  }: { readonly facts?: Partial<NonNullable<BackingImage['status']>>; readonly disk?: string } = {},
): Promise<void> => {
  const status = { ...facts, diskFileStatusMap: { [disk]: { ...copy, lastStateTransitionTime: now() } } };
  await kube.mergePatch(
    backingImages,
    keyOf(image),
    { metadata: { uid: image.metadata.uid }, status },
    { subresource: 'status' },
  );
  if (disk !== disks[0]) return;
  await kube
    .mergePatch(
      backingImageDataSources,
      keyOf(image),
      { status: { currentState: copy.state, progress: copy.progress ?? 0, message: copy.message ?? '' } },
      { subresource: 'status' },
    )
    .catch(() => undefined);
};

/** At most one write at a time, and none more often than every `reportMs`. */
export const reporter = (context: CopyContext, image: BackingImage) => {
  let last = 0;
  let writing: Promise<void> = Promise.resolve();
  return {
    report: (percent: number): void => {
      if (Date.now() - last < reportMs) return;
      last = Date.now();
      const copy = { state: 'in-progress', progress: Math.floor(percent) };
      writing = writing.then(() => say(context, image, copy)).catch(() => undefined);
    },
    end: () => writing,
  };
};

export const conclude = async (context: CopyContext, image: BackingImage, facts: FileFacts): Promise<void> => {
  const { size, virtualSize, checksum } = facts;
  const expected = image.spec.checksum?.toLowerCase();
  if (expected !== undefined && expected !== '' && expected !== checksum) {
    const message = `the expected checksum ${expected} doesn't match the file actual checksum ${checksum}`;
    await say(context, image, { state: 'failed', progress: 100, message });
    return;
  }
  await say(
    context,
    image,
    { state: 'ready-for-transfer', progress: 100, message: '' },
    { facts: { size, virtualSize, realSize: size, checksum } },
  );
};
