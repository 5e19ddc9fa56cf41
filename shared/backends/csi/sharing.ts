// An image whose bytes somebody of its namespace has or fetches already: its golden volume begins as a copy of that one (backends/singleflight).
import { type StorageClass, jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { create, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { planCloning } from '#shared/populate/clone/plan.ts';
import { buildGoldenVolume, buildImportJob, modesOf } from '#shared/backends/csi/manifests.ts';
import type { ObservedCsi } from '#shared/backends/csi/observed.ts';
import { markExported } from '#shared/backends/source-claim.ts';
import { decideSingleflight } from '#shared/populate/singleflight/singleflight.ts';
import { holdKept } from '#shared/populate/singleflight/singleflight.ts';
import { withJob } from '#shared/populate/job/inspecting.ts';
import type { ReadyOrigin } from '#shared/populate/clone/origin.ts';
import { failedState, restingState, waitingState } from '#shared/populate/state.ts';
import { type CloneTarget, chooseClone } from '#shared/populate/clone/strategy.ts';
import { cloneStrategyOf, leastBytesOf } from '#shared/populate/storage/profile.ts';
import { volumeBytesFor } from '#shared/populate/population.ts';
import type { Image } from '#shared/backends/image.ts';

type Sharing = ObservedCsi & { readonly storageClass: StorageClass };

/** `fetch` plans what an image does that is alone in the world. */
export const planShared = (
  image: Image,
  observed: Sharing,
  fetch: (image: Image) => Plan,
  context: PlanContext,
): Plan => {
  if (observed.singleflight === undefined) return fetch(image);
  const singleflight = decideSingleflight(image.ref, observed.singleflight, (origin) => {
    const choice = chooseClone(origin.clone, targetFor(image, observed, origin, context));
    return choice.is === 'chosen' ? undefined : choice.message;
  });
  switch (singleflight.is) {
    case 'under way':
      return fetch(image);
    case 'leading': {
      const plan = fetch({ ...image, state: { ...image.state, fetchReason: singleflight.because } });
      return { ...plan, actions: [...singleflight.actions, ...plan.actions] };
    }
    case 'following': {
      const shared = { ...image, state: { ...image.state, fetchReason: undefined } };
      return singleflight.origin.is === 'waiting'
        ? { actions: singleflight.actions, state: restingState(shared, singleflight.origin) }
        : planCopied(
            shared,
            observed,
            { origin: singleflight.origin, reason: 'SharedContent', say: 'the bytes are there: ' },
            context,
          );
    }
  }
};

/** Nobody uses a golden volume: where its class waits for a pod, that of a Job is the only one to come. */
const obstacleOf = ({ metadata, volumeBindingMode }: StorageClass): string | undefined =>
  volumeBindingMode === 'WaitForFirstConsumer' ? `class ${metadata.name} waits for a pod` : undefined;

const targetFor = (
  image: Image,
  { storageClass, profile }: Sharing,
  { clone }: ReadyOrigin,
  { settings }: PlanContext,
): CloneTarget => {
  const { volumeMode } = modesOf(image, { storageClass, profile });
  const least =
    volumeMode === clone.volumeMode
      ? clone.bytes
      : volumeBytesFor(clone.diskBytes, volumeMode, settings.filesystemOverhead);
  return {
    storageClass,
    volumeMode,
    bytes: image.storage.capacityBytes ?? Math.max(least, leastBytesOf(storageClass, profile)),
    strategy: cloneStrategyOf(storageClass, profile?.spec),
    overhead: settings.filesystemOverhead,
    obstacle: obstacleOf(storageClass),
  };
};

/** It was asked to be one. */
export const planCopy = (image: Image, observed: Sharing, origin: ReadyOrigin, context: PlanContext): Plan => {
  const plan = planCopied(image, observed, { origin, reason: 'Cloning', say: '' }, context);
  const isExported = image.source?.type === 'export-from-volume' && plan.actions.length > 0;
  return isExported ? { ...plan, actions: [...markExported(origin.claim, image), ...plan.actions] } : plan;
};

interface Copied {
  readonly origin: ReadyOrigin;
  readonly reason: string;
  /** What is said of it first. */
  readonly say: string;
}

const planCopied = (image: Image, observed: Sharing, { origin, reason, say }: Copied, context: PlanContext): Plan => {
  const { storageClass, profile, sourceSnapshot, singleflight } = observed;
  const target = targetFor(image, observed, origin, context);
  const cloning = planCloning(image, { origin, sourceSnapshot }, target, context);
  switch (cloning.is) {
    case 'refused':
      return { actions: [], state: failedState(image.state, cloning.reason, cloning.message) };
    case 'waiting':
      return { actions: [], state: restingState(image, cloning) };
    case 'planned':
      return cloning.plan;
    case 'chosen':
      break;
  }
  const { record, dataSource, touched } = cloning;
  const shape = { storageClass, profile, bytes: () => target.bytes, content: singleflight?.name, record, dataSource };
  const volume = buildGoldenVolume(image, shape);
  const job = record.strategy === 'copy' ? buildImportJob(image, volume, context.settings) : undefined;
  const made = { volume: volume.metadata.name, ...(job === undefined ? {} : { job: job.metadata.name }) };
  const next = { ...withJob(image.state, made), storageClassName: storageClass.metadata.name };
  const message = `${say}copying ${origin.clone.what} (${record.because})`;
  return {
    actions: [
      ...(singleflight === undefined ? [] : holdKept(image.ref, singleflight.name, origin)),
      ...touched,
      create(persistentVolumeClaims, volume),
      ...(job === undefined ? [] : [create(jobs, job)]),
    ],
    state: waitingState(image, next, { phase: 'Cloning', reason, message }, context),
  };
};
