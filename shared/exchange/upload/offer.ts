// Announces an upload to an image, so that its volume gets the required size; a failed image is restarted.
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { type ExchangeTarget, findTarget } from '#shared/exchange/target.ts';
import { targetText } from '#shared/exchange/target-name.ts';
import { type UploadDeps, requireOpen } from '#shared/exchange/upload/open.ts';
import type { Inspection } from '#shared/transfer/report.ts';

export interface Offer {
  readonly inspection: Inspection;
  /** Bytes of the disk, if the file does not contain the size but the client announced it. */
  readonly virtualSize: number | undefined;
}

const sizeUnknown = (): Problem =>
  new Problem(
    400,
    'SizeUnknown',
    'the size of the disk is known only once all of the file was read: add &virtualSize=<bytes of the disk>',
  );

/** The resulting target. A failed one is restarted: an upload may be repeated. */
export const offer = async (
  { kube, now }: Pick<UploadDeps, 'kube' | 'now'>,
  target: ExchangeTarget,
  { inspection, virtualSize }: Offer,
): Promise<ExchangeTarget> => {
  if (target.stage === 'failed' && target.volumeName !== undefined)
    return restartVolume({ kube, now }, target, target.volumeName);
  // For a file in Longhorn, the size is that of the file itself.
  const isKept = target.backingImage !== undefined && target.stage !== 'failed';
  if (
    isKept ||
    target.name.plural !== 'virtualmachineimages' ||
    (target.stage !== 'unoffered' && target.stage !== 'failed')
  ) {
    requireOpen(target);
    return target;
  }
  const disk = inspection.virtualSize ?? virtualSize;
  if (disk === undefined) throw sizeUnknown();
  const mark = JSON.stringify({ ...inspection, virtualSize: disk });
  const retry = target.stage === 'failed' ? { [annotations.retry]: `upload-${now()}` } : {};
  const key = { namespace: target.name.namespace, name: target.name.name };
  await kube.mergePatch(harvesterImageKind.type, key, {
    metadata: { annotations: { [annotations.offered]: mark, ...retry } },
  });
  if (target.stage === 'unoffered') return { ...target, stage: 'open', receiver: undefined };
  return untilStarted(kube, target);
};

/** Its claim keeps the requested size. From here on it is looked up by its own name: its claim is deleted and created again. */
const restartVolume = async (
  { kube, now }: Pick<UploadDeps, 'kube' | 'now'>,
  target: ExchangeTarget,
  name: string,
): Promise<ExchangeTarget> => {
  const { namespace } = target.name;
  const metadata = { annotations: { [annotations.retry]: `upload-${now()}` } };
  await kube.mergePatch(dataVolumeKind.type, { namespace, name }, { metadata });
  return untilStarted(kube, { ...target, name: { plural: 'datavolumes', namespace, name } });
};

const pollMs = 200;
const tries = 150;

/** The previous failure must not be mistaken for one of this upload. */
const untilStarted = async (kube: KubeClient, { name }: ExchangeTarget): Promise<ExchangeTarget> => {
  for (let attempt = 0; attempt < tries; attempt++) {
    const now = await findTarget(kube, name);
    if (now.stage !== 'failed') return { ...now, stage: 'open' };
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  throw new Problem(503, 'NotReady', `${targetText(name)} does not restart; try again`);
};
