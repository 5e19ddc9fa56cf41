// The DataVolume of an image, in a form that CDI and our own DataVolumes both support.
import { createHash } from 'node:crypto';
import { toGrantText } from '#shared/access/permissions.ts';
import { type DataVolume, type DataVolumeSpec, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { ConfigMap, PersistentVolumeClaim, StorageClass } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import { apiVersionOf, childMetadata } from '#shared/api/object.ts';
import { formatQuantity } from '#shared/api/quantity.ts';
import type { Cloned } from '#shared/backends/source-claim.ts';
import { type Source, type SourceType, isOneOf } from '#shared/populate/source.ts';
import { inspectedMark } from '#shared/populate/population.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { Image } from '#shared/backends/backend.ts';

/** Its claim has the same name, where Harvester's clients look for it. */
export const dataVolumeName = ({ ref }: Pick<Image, 'ref'>): string => ref.name;

export interface Shape {
  readonly storageClass: StorageClass;
  /** Bytes of the guest's disk. Default: the size of the cloned disk. */
  readonly diskBytes?: number | undefined;
  readonly cloned?: Cloned | undefined;
  /** The claim it is exported from. */
  readonly exported?: PersistentVolumeClaim | undefined;
  /** ConfigMap with the CA certificates of its server. */
  readonly bundleName?: string | undefined;
  /** The inspection that determined the size; recorded on the DataVolume, because a crash may prevent the record on the image. */
  readonly inspected?: Inspection | undefined;
}

type Filling = NonNullable<DataVolumeSpec['source']>;

const fromClaim = (namespace: string, name: string): Filling => ({ pvc: { namespace, name } });

const fromServer = (source: Source<'http'>, { checksum }: Image, shape: Shape): Filling => {
  const { url, secretName, bundleName = shape.bundleName } = source;
  const check = checksum === undefined ? {} : { checksum: `${checksum.algorithm}:${checksum.hex}` };
  const trust = bundleName === undefined ? {} : { certConfigMap: bundleName };
  const secret = secretName === undefined ? {} : { secretRef: secretName };
  return { http: { url, ...secret, ...trust, ...check } };
};

const fromCopy = (_source: object, _image: object, { cloned }: Shape): Filling | undefined =>
  cloned?.is === 'ready' ? fromClaim(cloned.namespace, cloned.name) : undefined;

/** Supported types of sources. */
export const cdiSources = [
  'http',
  'upload',
  'export-from-volume',
  'clone',
  's3',
  'nfs',
] as const satisfies readonly SourceType[];
type CdiSource = (typeof cdiSources)[number];

interface Taken<S> {
  /** It is restored into a claim first and the DataVolume is a copy of that: CDI does not support such sources. */
  readonly isStaged: boolean;
  /** `undefined`: the source of the copy does not exist yet. */
  fillingOf(source: S, image: Image, shape: Shape): Filling | undefined;
}

const taken: { readonly [T in CdiSource]: Taken<Source<T>> } = {
  http: { isStaged: false, fillingOf: fromServer },
  upload: { isStaged: false, fillingOf: () => ({ upload: {} }) },
  'export-from-volume': { isStaged: false, fillingOf: ({ namespace, claimName }) => fromClaim(namespace, claimName) },
  clone: { isStaged: false, fillingOf: fromCopy },
  s3: { isStaged: true, fillingOf: fromCopy },
  nfs: { isStaged: true, fillingOf: fromCopy },
};

const isTaken = isOneOf(cdiSources);

export const needsStage = ({ source }: Pick<Image, 'source'>): boolean =>
  isTaken(source) && taken[source.type].isStaged;

const fill = <T extends CdiSource>(source: Source<T>, image: Image, shape: Shape): Filling | undefined =>
  taken[source.type].fillingOf(source, image, shape);

const sourceOf = (image: Image, shape: Shape): Filling => {
  const { ref, source, faults } = image;
  const filling = isTaken(source) ? fill(source, image, shape) : undefined;
  if (filling === undefined) throw new InvalidInput(`nothing can be put into a DataVolume for ${ref.name}`, faults);
  return filling;
};

/** The DataVolume may use what the author of the image was allowed to use at admission. */
const grantsOf = ({ ref }: Image, { pvc }: Filling): Readonly<Record<string, string>> => {
  if (pvc === undefined || pvc.namespace === ref.namespace) return {};
  return { [annotations.granted]: toGrantText([{ use: 'clone-claim', ...pvc }]) ?? '' };
};

/** A golden image has no consumer: a class must not wait for one. */
const immediate = ({ volumeBindingMode }: StorageClass): Readonly<Record<string, string>> =>
  volumeBindingMode === 'WaitForFirstConsumer' ? { [cdiAnnotations.immediateBinding]: 'true' } : {};

/**
 * An installed CDI trusts the CA certificates that are passed with each import. Deleted with its image; an import with later certificates has
 * its own.
 */
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
