// What a file is sent into: an image or a DataVolume, made where it is missing.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Call, textOf } from '#cli/command.ts';
import { TimeIsOver } from '#cli/exchange/answer.ts';
import type { AnyImage } from '#shared/catalogue/image.ts';
import { ensureUploadImage, notForUploads } from '#shared/catalogue/upload.ts';
import type { Line } from '#cli/line.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { formatQuantity } from '#shared/api/quantity.ts';
import { NotFound } from '#shared/runtime/errors.ts';

/** Throws InvalidInput where one of the name is there that takes no upload. */
export const ensureImage = ({ kube, namespace, values }: Call, name: string): Promise<AnyImage> =>
  ensureUploadImage(kube, {
    name,
    namespace,
    storageClass: textOf(values, 'storage-class'),
    backend: textOf(values, 'backend'),
    displayName: textOf(values, 'display-name'),
  });

/** `undefined` where there is none, and `bytes`, which one would need, are not known. Throws InvalidInput as above. */
export const ensureVolume = async ({ kube, namespace, values }: Call, name: string, bytes: number | undefined) => {
  const { type } = dataVolumeKind;
  const found = await kube.get(type, { namespace, name });
  if (found !== undefined && found.spec.source?.upload === undefined) throw notForUploads(`datavolume ${name}`);
  if (found !== undefined || bytes === undefined) return found;
  const className = textOf(values, 'storage-class');
  const wanted: DataVolume = {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    // It is filled now, and nobody uses it before that.
    metadata: { name, namespace, annotations: { [cdiAnnotations.immediateBinding]: 'true' } },
    spec: {
      source: { upload: {} },
      storage: {
        resources: { requests: { storage: formatQuantity(bytes) } },
        ...(className === undefined ? {} : { storageClassName: className }),
      },
    },
  };
  return kube.create(type, wanted);
};

/** Milliseconds between two looks at a volume that is being created. */
const lookMs = 500;

interface Awaited {
  readonly phases: readonly string[];
  readonly line: Line;
  readonly patienceMs: number | undefined;
}

/** Throws TimeIsOver. */
export const untilPhase = async (
  { kube, namespace, signal }: Call,
  name: string,
  { phases, line, patienceMs: most }: Awaited,
): Promise<DataVolume> => {
  const deadline = performance.now() + (most ?? Number.POSITIVE_INFINITY);
  for (;;) {
    const volume = await kube.get(dataVolumeKind.type, { namespace, name });
    if (volume === undefined) throw new NotFound(`datavolume ${name} was deleted meanwhile`);
    const { phase = 'Pending', conditions = [] } = volume.status ?? {};
    if (phases.includes(phase)) return volume;
    const message = conditions.find(({ type }) => type === 'Ready')?.message ?? '';
    line.show(`${name}: ${phase} ${message}`.trimEnd());
    if (performance.now() >= deadline) throw new TimeIsOver(`datavolume ${name} is still ${phase}: ${message}`);
    await sleep(lookMs, undefined, { signal });
  }
};
