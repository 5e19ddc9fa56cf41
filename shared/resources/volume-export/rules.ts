// Rules of an export, one per line. That it has exactly one source and destination is also in the schema.
import type { VirtualMachineVolumeExport } from '#shared/api/hypercloud/volume-export.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type Parsed, parseSourceUrl } from '#shared/backends/rules/fields.ts';
import { hasBucketInPath, noS3Object, type S3Place, s3PlaceInHost, s3PlaceOf } from '#shared/clients/s3/place.ts';
import { readReference } from '#shared/clients/registry/reference.ts';
import type { Filled, ImageState } from '#shared/populate/filled.ts';
import type { Source } from '#shared/populate/source.ts';
import { faultIf, faultOf, type RequestRule, type SpecRule } from '#shared/resources/rule.ts';
import { accessFaults } from '#shared/resources/source-access.ts';
import { storedObjectFaults } from '#shared/resources/stored-object.ts';
import type { StoredResult } from '#shared/transfer/report.ts';

// The internal model of an export, for either form: a claim that is read, and a destination.

export interface VolumeExport extends Filled {
  readonly source: ExportSource;
  /** `undefined` only if `faults` explains why. */
  readonly destination: ExportDestination | undefined;
  /** RFC 3339. */
  readonly createdAt?: string | undefined;
  readonly state: ExportState;
}

export type ExportSource =
  | { readonly is: 'claim'; readonly name: string }
  /** A VirtualMachineVolume, and its existing or future claim. */
  | { readonly is: 'volume'; readonly name: string; readonly claimName: string };

export type ExportDestination =
  | { readonly is: 'store'; readonly object: Source<'object' | 's3'> }
  | {
      readonly is: 'registry';
      readonly object: Source<'registry'>;
      readonly compression: 'none' | 'zlib' | 'zstd';
      readonly signingSecretName?: string | undefined;
    }
  | { readonly is: 'local'; readonly claimName: string; readonly podName: string };

export interface ExportState extends ImageState {
  /** The source of the Job: a snapshot, or the claim itself. */
  readonly from?: 'snapshot' | 'claim' | undefined;
  readonly object?: StoredResult | undefined;
  /** Why it fails, while its data in the store is not removed yet. */
  readonly failing?: { readonly reason: string; readonly message: string } | undefined;
}

/** Location of an object or an image, for messages and status: without secrets. */
export const locationOf = ({ object }: Extract<ExportDestination, { is: 'store' | 'registry' }>): string => {
  if (object.type === 'registry') return object.url;
  if (object.type === 'object') return `s3://${object.bucket}/${object.key}`;
  return `${object.endpoint.replace(/\/+$/, '')}/${object.bucket}/${object.key}`;
};

type Rule = SpecRule<VirtualMachineVolumeExport>;

const oneSource: Rule['check'] = ({ spec: { pvcName, virtualMachineVolume } }) =>
  faultIf(
    (pvcName === undefined) === (virtualMachineVolume === undefined),
    'spec',
    'must have exactly one of pvcName and virtualMachineVolume',
  );

const oneDestination: Rule['check'] = ({ spec: { objectStore, destination } }) => {
  const places = [objectStore, destination?.local, destination?.s3, destination?.registry];
  const set = places.filter((place) => place !== undefined);
  const message = `must have exactly one of objectStore, destination.local, destination.s3 and destination.registry, and has ${set.length === 0 ? 'none' : set.length}`;
  return faultIf(set.length !== 1, 'spec', message);
};

const storedObject: Rule['check'] = ({ spec: { objectStore } }) =>
  objectStore === undefined ? [] : storedObjectFaults(objectStore, 'spec.objectStore');

const s3Url: Rule['check'] = ({ spec: { destination } }) => {
  if (destination?.s3 === undefined) return [];
  const field = 'spec.destination.s3.url';
  const parsed = toExportPlace(destination.s3.url);
  if ('problem' in parsed) return faultOf(parsed, field);
  const { bucket, key } = parsed.value;
  return storedObjectFaults({ bucketName: bucket, objectName: key }, field).map(({ message }) => ({ field, message }));
};

const storeAccess: Rule['check'] = ({ spec: { destination } }) =>
  destination?.s3 === undefined
    ? []
    : accessFaults({ type: 's3' }, destination.s3, (name) => `spec.destination.s3.${name}`);

const registryUrl: Rule['check'] = ({ spec: { destination } }) => {
  if (destination?.registry === undefined) return [];
  const field = 'spec.destination.registry.url';
  const parsed = readReference(destination.registry.url);
  if ('problem' in parsed) return faultOf(parsed, field);
  const { tag, digest } = parsed.value;
  return faultIf(
    tag === undefined || digest !== undefined,
    field,
    'must end in the tag that the image gets, and not in a digest: docker://host/repository:tag',
  );
};

/** For the pod: a label value is limited to 63 characters. */
const mostNameLength = 63 - '-exporter-local'.length;

const nameFits: Rule['check'] = ({ metadata, spec: { destination } }) =>
  faultIf(
    destination?.local !== undefined && metadata.name.length > mostNameLength,
    'metadata.name',
    `must have at most ${mostNameLength} characters, because the name of the pod of a local export is derived from it`,
  );

export const volumeExportRules: readonly Rule[] = [
  { id: 'one-source', check: oneSource },
  { id: 'one-destination', check: oneDestination },
  { id: 'stored-object', check: storedObject },
  { id: 's3-url', check: s3Url },
  { id: 'store-access', check: storeAccess },
  { id: 'registry-url', check: registryUrl },
  { id: 'name', check: nameFits },
];

export const volumeExportRequestRules: readonly RequestRule<KubeObject, VolumeExport>[] = [
  { id: 'spec', on: 'CREATE', reason: 'Invalid', check: ({ resource }) => resource.faults },
];

// `destination.s3.url` of an export: `https://bucket.store/key`, as in the released operator, or with the bucket in the path.

export const toExportPlace = (text: string): Parsed<S3Place & { readonly pathStyle: boolean }> => {
  const parsed = parseSourceUrl(text);
  if ('problem' in parsed) return parsed;
  const url = new URL(parsed.value);
  if (url.search !== '' || url.hash !== '')
    return {
      problem:
        'has a query or a fragment, which are not part of the name of an object; credentials are read from secretRef',
    };
  const pathStyle = hasBucketInPath(url);
  const place = pathStyle ? s3PlaceOf(url) : s3PlaceInHost(url);
  if (place !== undefined) return { value: { ...place, pathStyle } };
  return { problem: pathStyle ? noS3Object : 'does not refer to an object; write https://<bucket>.<store>/<key>' };
};
