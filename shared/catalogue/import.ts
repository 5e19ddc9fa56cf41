// The objects that import an image, from what a person says of it.
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type KubeObject, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { type AnyImage, type ImageGroup, imageTypes } from '#shared/catalogue/image.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** What a person writes as the place of an image, and the object that imports it. */
type ImportSource =
  | { readonly type: 'http'; readonly url: string }
  | { readonly type: 'object'; readonly bucket: string; readonly key: string };

export interface ImportWish {
  readonly name: string;
  readonly namespace: string;
  /** `http(s)://…`, `s3://bucket/key`. */
  readonly place: string;
  readonly group?: ImageGroup | undefined;
  readonly storageClass?: string | undefined;
  readonly size?: string | undefined;
  readonly checksum?: string | undefined;
  readonly displayName?: string | undefined;
  readonly backend?: string | undefined;
}

/** `s3://bucket/key`; `undefined` where it is none. */
export const parseObjectPlace = (text: string): { readonly bucket: string; readonly key: string } | undefined => {
  const [, bucket, key] = /^s3:\/\/([^/]+)\/(.+)$/i.exec(text) ?? [];
  return bucket === undefined || key === undefined ? undefined : { bucket, key };
};

const isInRegistry = (place: string): boolean => /^(docker|oci):\/\//i.test(place);

/** `http(s)://…`, or `s3://bucket/key` in the object store of the installation. Throws InvalidInput. */
const parseSource = (text: string): ImportSource => {
  if (/^https?:\/\/./i.test(text)) return { type: 'http', url: text };
  const object = parseObjectPlace(text);
  if (object !== undefined) return { type: 'object', ...object };
  if (isInRegistry(text))
    throw new InvalidInput(
      `${text} is in a registry: an image that follows a registry is a DataImportCron, a volume made from one a DataVolume`,
    );
  throw new InvalidInput(`${text} is not a source: write http://…, https://… or s3://<bucket>/<key>`);
};

const defined = (fields: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

const refuse = (fields: Readonly<Record<string, unknown>>, group: ImageGroup): void => {
  const given = Object.entries(fields).find(([, value]) => value !== undefined);
  if (given !== undefined) throw new InvalidInput(`${given[0]} does not apply to a ${group} image: leave it out`);
};

const hyperCloudSpec = (source: ImportSource, { backend, displayName, size, storageClass, checksum }: ImportWish) => {
  refuse({ backend, 'display-name': displayName }, 'hypercloud');
  if (size !== undefined && parseQuantity(size) === undefined)
    throw new InvalidInput(`size is a quantity such as 20Gi, not ${size}`);
  return defined({
    source:
      source.type === 'http'
        ? { http: source.url }
        : { objectStore: { bucketName: source.bucket, objectName: source.key } },
    storageClassName: storageClass,
    checksum,
    pvc: size === undefined ? undefined : { resources: { requests: { storage: size } } },
  });
};

const harvesterSpec = (
  source: ImportSource,
  { name, displayName, backend, size, storageClass, checksum }: ImportWish,
) => {
  refuse({ size }, 'harvester');
  if (source.type !== 'http') throw new InvalidInput('a harvester image is downloaded over http or https');
  return defined({
    displayName: displayName ?? name,
    sourceType: 'download',
    url: source.url,
    backend: backend ?? 'csi',
    checksum,
    targetStorageClassName: storageClass,
  });
};

/** Throws InvalidInput. */
export const imageFrom = (wish: ImportWish): AnyImage => {
  const { name, namespace, place, group = 'hypercloud' } = wish;
  const source = parseSource(place);
  const { kind, ...type } = imageTypes[group];
  const spec = group === 'harvester' ? harvesterSpec(source, wish) : hyperCloudSpec(source, wish);
  return { apiVersion: apiVersionOf(type), kind, metadata: { name, namespace }, spec };
};

/** Asked twice a day where somebody names no schedule. */
const usualSchedule = '0 */12 * * *';

/** An image of a registry is followed: each newer version is imported beside the one in use. */
const cronFrom = ({
  name,
  namespace,
  place,
  storageClass,
  size,
}: ImportWish): KubeObject & { readonly spec: object } => {
  const { type } = dataImportCronKind;
  const storage = defined({
    storageClassName: storageClass,
    resources: size === undefined ? undefined : { requests: { storage: size } },
  });
  const source = { registry: { url: place } };
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: { name, namespace },
    spec: {
      ...(Object.keys(storage).length === 0 ? { source } : { template: { spec: { source, storage } } }),
      schedule: usualSchedule,
      managedDataSource: name,
    },
  };
};

export interface Planned {
  readonly type: ResourceType;
  readonly object: KubeObject;
}

/** What imports the image from wherever it is: `docker://` as well. Throws InvalidInput. */
export const plannedFrom = (wish: ImportWish): Planned => {
  if (!isInRegistry(wish.place)) return { type: imageTypes[wish.group ?? 'hypercloud'], object: imageFrom(wish) };
  if (wish.checksum !== undefined)
    throw new InvalidInput('an image of a registry has a digest: leave the checksum out');
  return { type: dataImportCronKind.type as ResourceType, object: cronFrom(wish) };
};
