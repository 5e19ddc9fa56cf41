// Rules of an export, one per line. That it has exactly one source and destination is also in the schema.
import type { VirtualMachineVolumeExport } from '#shared/api/hypercloud/volume-export.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type RequestRule, type SpecRule, faultIf, faultOf } from '#shared/resources/rule.ts';
import { storedObjectFaults } from '#shared/resources/stored-object.ts';
import type { VolumeExport } from '#shared/resources/volume-export/export.ts';
import type { Parsed } from '#shared/backends/rules/fields.ts';
import { parseSourceUrl } from '#shared/backends/rules/fields.ts';
import { type S3Place, hasBucketInPath, noS3Object, s3PlaceInHost, s3PlaceOf } from '#shared/clients/s3/place.ts';

type Rule = SpecRule<VirtualMachineVolumeExport>;

const oneSource: Rule['check'] = ({ spec: { pvcName, virtualMachineVolume } }) =>
  faultIf(
    (pvcName === undefined) === (virtualMachineVolume === undefined),
    'spec',
    'must have exactly one of pvcName and virtualMachineVolume',
  );

const oneDestination: Rule['check'] = ({ spec: { objectStore, destination } }) => {
  const set = [objectStore, destination?.local, destination?.s3].filter((place) => place !== undefined);
  const message = `must have exactly one of objectStore, destination.local and destination.s3, and has ${set.length === 0 ? 'none' : set.length}`;
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
