// Converts an image to the metadata in a target, and back. Pure.
import { toGrantText } from '#shared/access/permissions.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations, finalizers } from '#shared/api/names.ts';
import { foreignSecretsIn } from '#shared/backends/rules/encryption.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import type { BackupData, ImageMetadata } from '#shared/backup/metadata.ts';
import type { BackedImage, BackupImageObject } from '#shared/backup/image.ts';
import { indexKey } from '#shared/transfer/chunks/chunk-index.ts';
import { dataPrefix } from '#shared/backup/place.ts';
import type { NfsTarget, BackupTarget } from '#shared/backup/target.ts';
import type { Source } from '#shared/populate/source.ts';
import { type RestoreMark, toRestoreText } from '#shared/populate/restore-source.ts';
import { redactUrl, redactUrls } from '#shared/runtime/redact.ts';

/** Annotations that programs set for this object in this cluster only. */
const isPassing = (name: string): boolean =>
  name.startsWith('bullion.dev/') ||
  name.startsWith('kubectl.kubernetes.io/') ||
  /^(meta\.helm\.sh|field\.cattle\.io|objectset\.rio\.cattle\.io)\//.test(name);

const lasting = (map: Readonly<Record<string, string>> | undefined): Record<string, string> | undefined => {
  const kept = Object.entries(map ?? {}).filter(([name]) => !isPassing(name));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
};

const isUrl = (text: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(text);

/** URLs lose user info and query: a backup target has more readers than a Secret. */
const withoutSecrets = (value: unknown): unknown => {
  if (typeof value === 'string') return isUrl(value) ? redactUrl(value) : redactUrls(value);
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutSecrets(item)]));
};

/** `classParameters`: of the storage class, if the backend created it. */
export const buildMetadata = (backed: BackedImage, cluster: string, data: BackupData): ImageMetadata => {
  const { object, image } = backed;
  const { state, ref } = image;
  const storageClass = state.storageClassName;
  const parameters = image.storage.classParameters;
  return {
    version: 1,
    image: {
      apiVersion: ref.apiVersion,
      kind: ref.kind,
      namespace: ref.namespace ?? 'default',
      name: ref.name,
      uid: ref.uid,
      cluster,
    },
    backend: image.backend,
    displayName: image.displayName,
    labels: lasting(object.metadata.labels),
    annotations: withoutSecrets(lasting(object.metadata.annotations)) as Record<string, string> | undefined,
    spec: withoutSecrets(object.spec) as Record<string, unknown>,
    storageClass:
      storageClass === undefined
        ? undefined
        : { name: storageClass, ...(parameters === undefined ? {} : { parameters: { ...parameters } }) },
    children: childrenOf(state),
    ...state.inspection,
    digests: backed.restored === undefined && state.digests !== undefined ? { ...state.digests } : undefined,
    data,
  };
};

/** Names that other objects refer to, which excludes Jobs. */
const childrenOf = ({ children = {} }: ImageState): ImageMetadata['children'] => {
  const { job: _, ...lasting } = children;
  return Object.keys(lasting).length === 0 ? undefined : lasting;
};

/** Location for the Job to read or write. `secretName`: in the namespace of the Job. */
export const placeOf = (target: BackupTarget, key: string, secretName: string): Source<'s3' | 'nfs'> => {
  if (target.type === 'nfs') return nfsPlace(target, key);
  const { endpoint, region, bucket, pathStyle, secret, ca } = target;
  return {
    type: 's3',
    endpoint,
    region,
    bucket,
    key,
    pathStyle,
    ...(secret === undefined ? {} : { secretName }),
    ...(ca === undefined ? {} : { caBundle: ca }),
  };
};

const nfsPlace = ({ server, path }: NfsTarget, key: string): Source<'nfs'> => ({ type: 'nfs', server, path, key });

/** An image from any source in another cluster is restored from its backup here. */
const restoredSpec = (metadata: ImageMetadata, from: RestoreMark['from']): Record<string, unknown> => {
  const { spec, data } = metadata;
  if (metadata.image.apiVersion.split('/')[0] !== harvesterImageKind.type.group) return spec;
  const { pvcName: _p, pvcNamespace: _n, securityParameters: _s, url: _u, checksum, ...rest } = spec;
  if (data.kept === 'chunks') return { ...rest, sourceType: 'restore', url: urlOf(from) };
  const sum = data.checksum ?? checksum;
  return { ...rest, sourceType: 'restore', url: data.url, ...(sum === undefined ? {} : { checksum: sum }) };
};

/** For users, in Longhorn's format of such URLs. */
const urlOf = (from: RestoreMark['from']): string => {
  if (from?.type === 's3') return `s3://${from.bucket}@${from.region}/${from.key}`;
  return from === undefined ? '' : `nfs://${from.server}:${from.path}/${from.key}`;
};

const classParametersOf = (spec: ImageMetadata['spec']): Readonly<Record<string, string>> | undefined =>
  spec['storageClassParameters'] as Readonly<Record<string, string>> | undefined;

export interface DocumentContext {
  readonly target: BackupTarget;
  readonly secretName: string;
  /** Key of the metadata. */
  readonly key: string;
}

export const buildRestored = (
  metadata: ImageMetadata,
  { target, secretName, key }: DocumentContext,
): BackupImageObject => {
  const { image, data, labels, children } = metadata;
  const from = data.kept === 'chunks' ? placeOf(target, indexKey(dataPrefix, data.disk), secretName) : undefined;
  const mark: RestoreMark = {
    ...(from === undefined ? {} : { from: from as NonNullable<RestoreMark['from']> }),
    target: target.name,
    object: key,
    uid: image.uid,
    ...(children?.volume === undefined ? {} : { volume: children.volume }),
  };
  const spec = restoredSpec(metadata, mark.from);
  const granted = toGrantText(foreignSecretsIn(classParametersOf(spec), image.namespace));
  return {
    apiVersion: image.apiVersion,
    kind: image.kind,
    metadata: {
      name: image.name,
      namespace: image.namespace,
      ...(labels === undefined ? {} : { labels }),
      annotations: {
        ...metadata.annotations,
        [annotations.restore]: toRestoreText(mark),
        // Its author had the permission when the image was created; everyone who may write to the target is trusted with its content.
        ...(granted === undefined ? {} : { [annotations.granted]: granted }),
      },
      finalizers: [finalizers.backup],
    },
    spec,
  };
};
