// Where a transfer Job reads from: what its worker is told, and what is mounted into its pod. Called by transfer-job.ts.
import type { Container, Volume, VolumeMode } from '#shared/api/foreign/core.ts';
import { parseReference } from '#shared/clients/registry/reference.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { spoolPath } from '#shared/populate/spool.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { Mounted, TransferSource, TransferSpec } from '#shared/transfer/spec.ts';

const devicePath = '/dev/bullion-source';
const mountPath = '/source';
const secretPath = '/source-secret';
const bundlePath = '/source-ca';
const exportPath = '/source-nfs';
const headersPath = '/source-headers';

/** Another claim of the same namespace, mounted read-only. */
export interface ClaimSource {
  readonly type: 'claim';
  readonly claimName: string;
  readonly volumeMode: VolumeMode;
  /** Its files are wanted, and not the disk that is one of them. */
  readonly holdsFiles?: boolean;
}

/** An object of the installation's object store. */
export interface ObjectSource {
  readonly type: 'object';
  readonly bucket: string;
  readonly key: string;
}

/** What a source is read with. Secrets and ConfigMaps are of the owner's namespace, and mounted by name: only the kubelet reads them. */
export interface SourceAccess {
  /** Secret with credentials: accessKeyId and secretKey, or the other words its kind of source knows. */
  readonly secretName?: string | undefined;
  /** ConfigMap whose every key is a PEM bundle to trust besides the system's. */
  readonly bundleName?: string | undefined;
  /** `Name: value`, sent to the source's own origin alone. */
  readonly headers?: readonly string[] | undefined;
  /** Secrets whose every key holds one such header. */
  readonly headerSecrets?: readonly string[] | undefined;
}

export interface HttpJobSource extends SourceAccess {
  readonly type: 'http';
  readonly url: string;
}

export interface RegistryJobSource extends SourceAccess {
  readonly type: 'registry';
  readonly url: string;
  readonly architecture?: string | undefined;
}

/** An object of a store that the user names. */
export interface S3JobSource extends SourceAccess {
  readonly type: 's3';
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly key: string;
  /** `endpoint/bucket/key`, or else `bucket.endpoint/key`; left out: the former. */
  readonly pathStyle?: boolean | undefined;
  /** PEM certificates to trust, where no Secret or ConfigMap has them. */
  readonly caBundle?: string | undefined;
}

/** A file of an NFS export, which the pod mounts. */
export interface NfsJobSource {
  readonly type: 'nfs';
  readonly server: string;
  /** Of the export. */
  readonly path: string;
  /** Path of the file below it. */
  readonly key: string;
}

/** Sent to the Job by the transfer function, for somebody. */
export interface UploadJobSource {
  readonly type: 'upload';
}

/** TCP port of a pod that waits for an upload. */
export const uploadPort = 8090;
/** TCP port of a pod that hands a volume out. */
export const downloadPort = 8091;
/** Seconds without a request after which it ends. Long enough for a client to come back after a cut. */
const downloadIdleSeconds = 60;

export type JobSource =
  | UploadJobSource
  | ClaimSource
  | ObjectSource
  | HttpJobSource
  | RegistryJobSource
  | S3JobSource
  | NfsJobSource
  | { readonly type: 'blank' };

const pathIn = ({ volumeMode, holdsFiles }: ClaimSource): string => {
  if (volumeMode === 'Block') return devicePath;
  return holdsFiles === true ? mountPath : `${mountPath}/disk.img`;
};

/** The source as the worker is told of it. */
export const toTransferSource = (
  source: Exclude<JobSource, UploadJobSource>,
  settings: PopulateSettings,
): TransferSource => {
  switch (source.type) {
    case 'claim':
      return { type: 'volume', path: pathIn(source) };
    case 'object':
      return storedObject(source, settings);
    case 'blank':
      return source;
    case 'http':
      return { type: 'http', url: source.url, ...told(source), ...toldHeaders(source) };
    case 's3': {
      const { type, endpoint, region, pathStyle = true, bucket, key, caBundle } = source;
      const trust = caBundle === undefined ? {} : { caBundle };
      return { type, endpoint, region, pathStyle, bucket, key, ...trust, ...told(source) };
    }
    case 'nfs':
      return { type: 'folder', dir: exportPath, key: source.key };
    case 'registry':
      return registrySource(source, settings);
  }
};

/** An upload, as its worker is told of it; `subject` is the UID of the object that is filled. */
export const toUploadSource = (subject: string, settings: PopulateSettings): TransferSource => ({
  type: 'upload',
  port: uploadPort,
  keysUrl: keysUrlOf(settings),
  subject,
  idleSeconds: settings.uploadIdleSeconds,
  dir: spoolPath,
});

const keysUrlOf = ({ transferUrl }: PopulateSettings): string => {
  if (transferUrl === undefined)
    throw new InvalidInput('this installation takes no uploads and gives no downloads: it has no TRANSFER_URL');
  return new URL('keys', `${transferUrl.replace(/\/+$/, '')}/`).href;
};

/** `identity` names what the volume holds, where nobody writes to it any more. */
export const toServeRequest = (
  subject: string,
  identity: string | undefined,
  settings: PopulateSettings,
): NonNullable<TransferSpec['serve']> => ({
  port: downloadPort,
  keysUrl: keysUrlOf(settings),
  subject,
  idleSeconds: downloadIdleSeconds,
  ...(identity === undefined ? {} : { identity }),
});

/** How a registry is reached is the operator's word, not the user's. */
const registrySource = (source: RegistryJobSource, { plainRegistries }: PopulateSettings): TransferSource => ({
  type: 'registry',
  url: source.url,
  ...(source.architecture === undefined ? {} : { architecture: source.architecture }),
  ...(plainRegistries.includes(parseReference(source.url).host) ? { plainHttp: true } : {}),
  ...(plainRegistries.length === 0 ? {} : { plainHosts: [...plainRegistries] }),
  ...told(source),
});

const storedObject = ({ bucket, key }: ObjectSource, { objectStore }: PopulateSettings): TransferSource => {
  if (objectStore === undefined) throw new InvalidInput('this installation has no object store');
  const { secretName, ...place } = objectStore;
  return { type: 's3', ...place, bucket, key, ...told({ secretName }) };
};

const told = ({ secretName, bundleName }: SourceAccess): { secretDir?: string; secretName?: string; ca?: Mounted } => ({
  ...(secretName === undefined ? {} : { secretDir: secretPath, secretName }),
  ...(bundleName === undefined ? {} : { ca: { dir: bundlePath, name: bundleName } }),
});

const toldHeaders = ({
  headers = [],
  headerSecrets = [],
}: SourceAccess): { secretHeaders?: string[]; headerSecrets?: Mounted[] } => ({
  ...(headers.length === 0 ? {} : { secretHeaders: [...headers] }),
  ...(headerSecrets.length === 0
    ? {}
    : { headerSecrets: headerSecrets.map((name, index) => ({ dir: `${headersPath}/${index}`, name })) }),
});

/** What the pod of a source has beside its target. */
export interface SourceMounts {
  readonly volumes: readonly Volume[];
  readonly mounts: NonNullable<Container['volumeMounts']>;
  readonly devices: NonNullable<Container['volumeDevices']>;
}

export const mountsOfSource = (source: JobSource, { objectStore }: PopulateSettings): SourceMounts => {
  if (source.type === 'claim') return claimMounts(source);
  if (source.type === 'nfs') return exportMounts(source, true);
  const access: SourceAccess =
    source.type === 'object'
      ? { secretName: objectStore?.secretName }
      : source.type === 'blank' || source.type === 'upload'
        ? {}
        : source;
  const mounted = mountedOf(access);
  return {
    volumes: mounted.map(({ volume }) => volume),
    mounts: mounted.map(({ volume, path }) => ({ name: volume.name, mountPath: path, readOnly: true })),
    devices: [],
  };
};

const claimMounts = ({ claimName, volumeMode }: ClaimSource): SourceMounts => ({
  volumes: [{ name: 'source', persistentVolumeClaim: { claimName, readOnly: true } }],
  mounts: volumeMode === 'Block' ? [] : [{ name: 'source', mountPath, readOnly: true }],
  devices: volumeMode === 'Block' ? [{ name: 'source', devicePath }] : [],
});

/** An NFS export as the pod has it. */
export const exportMounts = ({ server, path }: NfsJobSource, readOnly: boolean): SourceMounts => ({
  volumes: [{ name: 'source-nfs', nfs: { server, path, readOnly } }],
  mounts: [{ name: 'source-nfs', mountPath: exportPath, readOnly }],
  devices: [],
});

/** Optional: a pod that runs says at once what is missing, one that cannot start says it in an event that nobody sees. */
const mountedOf = ({
  secretName,
  bundleName,
  headerSecrets = [],
}: SourceAccess): readonly { readonly path: string; readonly volume: Volume }[] => [
  ...(secretName === undefined ? [] : [secret('source-secret', secretPath, secretName)]),
  ...(bundleName === undefined
    ? []
    : [{ path: bundlePath, volume: { name: 'source-ca', configMap: { name: bundleName, optional: true } } }]),
  ...headerSecrets.map((name, index) => secret(`source-headers-${index}`, `${headersPath}/${index}`, name)),
];

const secret = (
  name: string,
  path: string,
  secretName: string,
): { readonly path: string; readonly volume: Volume } => ({
  path,
  volume: { name, secret: { secretName, optional: true } },
});
