// The DataVolume of an image, in the words that CDI and our own DataVolumes both understand.
import { createHash } from 'node:crypto';
import { toGrantText } from '#shared/access/grant.ts';
import { type DataVolume, type DataVolumeSpec, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { ConfigMap, PersistentVolumeClaim, StorageClass } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { childMetadata } from '#shared/api/owner.ts';
import { formatQuantity } from '#shared/api/quantity.ts';
import type { Image } from '#shared/backends/image.ts';
import type { Cloned } from '#shared/backends/cloned.ts';
import { inspectedMark } from '#shared/populate/volume.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { Inspection } from '#shared/transfer/report.ts';

/** Its claim has the same name, which is where Harvester's clients look for it. */
export const dataVolumeName = ({ ref }: Pick<Image, 'ref'>): string => ref.name;

export interface Shape {
  readonly storageClass: StorageClass;
  /** Bytes of the guest's disk; left out: those of what is cloned. */
  readonly diskBytes?: number | undefined;
  readonly cloned?: Cloned | undefined;
  /** The claim it is exported from. */
  readonly exported?: PersistentVolumeClaim | undefined;
  /** ConfigMap with the certificates that its server is trusted by. */
  readonly bundleName?: string | undefined;
  /** What told the size; noted on the DataVolume, since a crash may keep it from the image. */
  readonly inspected?: Inspection | undefined;
}

type Source = NonNullable<DataVolumeSpec['source']>;

const claimSource = (namespace: string, name: string): Source => ({ pvc: { namespace, name } });

const sourceOf = ({ ref, source, checksum, faults }: Image, { cloned, bundleName }: Shape): Source => {
  switch (source?.type) {
    case 'http': {
      const check = checksum === undefined ? {} : { checksum: `${checksum.algorithm}:${checksum.hex}` };
      const trust = bundleName === undefined ? {} : { certConfigMap: bundleName };
      return { http: { url: source.url, ...trust, ...check } };
    }
    case 'upload':
      return { upload: {} };
    case 'export-from-volume':
      return claimSource(source.namespace, source.claimName);
    case 'clone':
    case 's3':
    case 'nfs':
      if (cloned?.is === 'ready') return claimSource(cloned.namespace, cloned.name);
      break;
    default:
  }
  throw new InvalidInput(`nothing can be put into a DataVolume for ${ref.name}`, faults);
};

/** What the author of the image was allowed at admission is what the DataVolume may be made from. */
const grantsOf = ({ ref }: Image, { pvc }: Source): Readonly<Record<string, string>> => {
  if (pvc === undefined || pvc.namespace === ref.namespace) return {};
  return { [annotations.granted]: toGrantText([{ use: 'clone-claim', ...pvc }]) ?? '' };
};

/** Nobody uses a golden image before it is there: a class that waits for a consumer must not. */
const immediate = ({ volumeBindingMode }: StorageClass): Readonly<Record<string, string>> =>
  volumeBindingMode === 'WaitForFirstConsumer' ? { [cdiAnnotations.immediateBinding]: 'true' } : {};

/** A CDI that is installed trusts what it is given for each import. It goes with its image; an import of later certificates has one of its own. */
export const buildBundle = ({ ref }: Image, pem: string): ConfigMap => {
  const digest = createHash('sha256').update(pem).digest('hex').slice(0, 8);
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: childMetadata(ref, 'trust', `ca-${ref.uid}-${digest}`),
    data: { 'ca.pem': pem },
  };
};

export const buildDataVolume = (image: Image, shape: Shape): DataVolume => {
  const { storageClass, diskBytes, inspected } = shape;
  const metadata = childMetadata(image.ref, 'volume', dataVolumeName(image));
  const source = sourceOf(image, shape);
  const size = diskBytes === undefined ? {} : { resources: { requests: { storage: formatQuantity(diskBytes) } } };
  const { volumeMode, accessModes } = image.storage;
  return {
    apiVersion: apiVersionOf(dataVolumeKind.type),
    kind: dataVolumeKind.type.kind,
    metadata: {
      ...metadata,
      annotations: {
        ...metadata.annotations,
        ...image.volumeMarks.filling,
        ...inspectedMark(inspected),
        ...immediate(storageClass),
        ...grantsOf(image, source),
      },
    },
    spec: {
      source,
      storage: {
        storageClassName: storageClass.metadata.name,
        ...(volumeMode === undefined ? {} : { volumeMode }),
        ...(accessModes === undefined ? {} : { accessModes: [...accessModes] }),
        ...size,
      },
    },
  };
};
