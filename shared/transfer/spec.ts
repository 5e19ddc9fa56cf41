// The spec of a transfer: the input of transfer-job, written by the backends into the environment of the Job.
import { z } from 'zod';
import { CloudEndpoints } from '#shared/clients/cloud/endpoints.ts';
import { WorkloadIdentity } from '#shared/clients/cloud/identity.ts';
import { Proxies } from '#shared/clients/http/proxy.ts';
import { ServerReach } from '#shared/clients/http/reach.ts';
import { ExportFormat } from '#shared/transfer/export/format.ts';
import { Inspection } from '#shared/transfer/report.ts';

/** Lengths of hex digests, in characters, by algorithm. */
export const digestLengths = { md5: 32, sha1: 40, sha256: 64, sha512: 128 } as const;
export type DigestAlgorithm = keyof typeof digestLengths;

/** A digest of the file as published (before any decompression or conversion). `hex` is lower case. */
export const Checksum = z.object({
  algorithm: z.enum(['md5', 'sha1', 'sha256', 'sha512']),
  hex: z.string().regex(/^[0-9a-f]+$/),
});
export type Checksum = z.infer<typeof Checksum>;

/** A mounted Secret or ConfigMap: a directory with a file for each key, empty if the object is missing. */
export const Mounted = z.object({
  dir: z.string(),
  /** Name of the object, for messages. */
  name: z.string(),
});
export type Mounted = z.infer<typeof Mounted>;

const accessShape = {
  /** Directory with the keys of a Secret with credentials. */
  secretDir: z.string().optional(),
  /** Name of that Secret, for messages. */
  secretName: z.string().optional(),
  /** Every key is a PEM bundle to trust besides the default ones. */
  ca: Mounted.optional(),
} as const;

const identityShape = {
  /** In place of a Secret. `tokenFile` has the token of the pod, and is renewed. */
  workload: z.object({ identity: WorkloadIdentity, tokenFile: z.string() }).optional(),
} as const;

const mirrorShape = {
  /** URLs of the same file at its mirrors, which are asked first, in order, without credentials. */
  mirrors: z.array(z.string()).optional(),
} as const;

export const HttpSource = z.object({
  type: z.literal('http'),
  url: z.string(),
  /** The Secret has accessKeyId and secretKey, or username and password; for an object of a cloud, what clients/cloud reads. */
  ...accessShape,
  ...identityShape,
  /** `Name: value`, sent only to the URL's own origin. */
  secretHeaders: z.array(z.string()).optional(),
  /** Secrets with such a header in every key. */
  headerSecrets: z.array(Mounted).optional(),
  ...mirrorShape,
});
export type HttpSource = z.infer<typeof HttpSource>;

export const RegistrySource = z.object({
  type: z.literal('registry'),
  /** `docker://host[:port]/repository[:tag][@digest]` of a containerDisk. */
  url: z.string(),
  /** Selects the image of an index: `amd64`, `arm64`, … Default: the architecture of the machine that runs the transfer. */
  architecture: z.string().optional(),
  /** The Secret is a dockerconfigjson, basic-auth, or has accessKeyId and secretKey. */
  ...accessShape,
  /** The registry is accessed without TLS. */
  plainHttp: z.boolean().optional(),
  /** Hosts that it may redirect to without TLS. */
  plainHosts: z.array(z.string()).optional(),
  /** Mirrors in their order, then the registry itself. Default: the registry alone. */
  places: z.array(z.object({ host: z.string(), repository: z.string(), plainHttp: z.boolean() })).optional(),
});
export type RegistrySource = z.infer<typeof RegistrySource>;

export const MountedVolumeSource = z.object({
  type: z.literal('volume'),
  /** `disk.img` in a mounted file system, or a block device; if files are requested, the folder with the files. */
  path: z.string(),
});
export type MountedVolumeSource = z.infer<typeof MountedVolumeSource>;

/** An empty disk: as large as the target. */
const BlankSource = z.object({ type: z.literal('blank') });

/** An object of an S3-compatible store, and its access. */
const StoredObject = z.object({
  /** URL of the store. Default: AWS in this region. */
  endpoint: z.string().optional(),
  /** If the store reports another region for the bucket, that is used. */
  region: z.string(),
  /** `endpoint/bucket/key`, or else `bucket.endpoint/key`. */
  pathStyle: z.boolean(),
  bucket: z.string(),
  key: z.string(),
  /** PEM certificates to trust besides the default ones, if no Secret or ConfigMap has them. */
  caBundle: z.string().optional(),
  /**
   * The Secret has accessKeyId, secretKey, sessionToken, and ca.crt to trust; for a store of a cloud, what clients/cloud reads. Default: requests
   * are not signed.
   */
  ...accessShape,
  ...identityShape,
});
export type StoredObject = z.infer<typeof StoredObject>;

export const S3Source = StoredObject.extend({ type: z.literal('s3'), ...mirrorShape });
export type S3Source = z.infer<typeof S3Source>;

/** A file below a folder that is mounted into the pod. */
export const FolderSource = z.object({
  type: z.literal('folder'),
  dir: z.string(),
  /** Path of the file below it. */
  key: z.string(),
});
export type FolderSource = z.infer<typeof FolderSource>;

/** A file that is sent to the Job: it listens, and accepts bytes from clients with a token. */
export const UploadSource = z.object({
  type: z.literal('upload'),
  /** TCP port of the pod. */
  port: z.number().int().nonnegative(),
  /** URL of the keys that verify tokens. */
  keysUrl: z.string(),
  /** UID that tokens must contain. */
  subject: z.string(),
  /** Seconds to wait for the first byte. */
  idleSeconds: z.number().positive(),
  /** Seconds to wait for each further one; the received bytes are kept after it. Default: `idleSeconds`, as in Jobs of earlier releases. */
  pauseSeconds: z.number().positive().optional(),
  /** Directory for received bytes, which survives the pod. Default: the directory for scratch. */
  dir: z.string().optional(),
});
export type UploadSource = z.infer<typeof UploadSource>;

/** The source of the bytes. */
export const TransferSource = z.discriminatedUnion('type', [
  HttpSource,
  RegistrySource,
  MountedVolumeSource,
  BlankSource,
  S3Source,
  FolderSource,
  UploadSource,
]);
export type TransferSource = z.infer<typeof TransferSource>;

export const TransferTarget = z.object({
  /** `disk.img` in a mounted file system, or a block device; for an archive, the folder for its files. */
  path: z.string(),
  volumeMode: z.enum(['Filesystem', 'Block']),
  /** Content of the target: a guest's disk (default), or the files of a tar archive or another volume. */
  content: z.enum(['disk', 'archive']).optional(),
  /** Size limit of the guest's disk, or of all files. A larger image is rejected before anything is written. */
  capacityBytes: z.number().int().positive(),
  /** Minimal size of the guest's disk: a smaller image is extended by zeroes. Files only; a device has its own size. */
  diskBytes: z.number().int().positive().optional(),
  /** Preallocate the disk, or all of the device. */
  preallocated: z.boolean().optional(),
});
export type TransferTarget = z.infer<typeof TransferTarget>;
export type TransferContent = NonNullable<TransferTarget['content']>;

export const TransferLimits = z.object({
  /** Idle timeout of a connection in seconds. */
  idleSeconds: z.number().positive().default(60),
  /** Bytes that must arrive in each window in which the reader waits; otherwise the source has stalled. */
  floor: z.object({ bytes: z.number().int().nonnegative(), seconds: z.number().positive() }).optional(),
  /** Timeout of the whole transfer in seconds. */
  totalSeconds: z
    .number()
    .positive()
    .default(6 * 3600),
  /** Retries after transient faults within one attempt (one Job pod). */
  retries: z.number().int().min(0).default(5),
});
export type TransferLimits = z.infer<typeof TransferLimits>;

/** Format and destination of an export. */
export const ExportRequest = z.object({
  form: ExportFormat,
  /** An object of a store… */
  object: StoredObject.optional(),
  /** …or a file in a mounted file system… */
  path: z.string().optional(),
  /** …or a containerDisk in a registry, under the tag of its URL. */
  image: RegistrySource.extend({
    /** UID of the object that is exported for. */
    owner: z.string(),
    /** What the image says of itself: annotations of its manifest, and labels of its configuration. */
    annotations: z.record(z.string(), z.string()).optional(),
    /** `NAME=value`: labels that describe how to run the disk. */
    environment: z.array(z.string()).optional(),
    /** RFC 3339: when the image was created, the same in each attempt. */
    created: z.string().optional(),
    /** Secret with the private key that signs the image. Default: it is not signed. */
    signing: Mounted.optional(),
  }).optional(),
  /** Also compute the sha256 of the guest's bytes, including zeroes: one second per 1.4 GB of the disk. */
  guestDigest: z.boolean().default(false),
});
export type ExportRequest = z.infer<typeof ExportRequest>;

/** The location of the chunks of a backup. `key` is the prefix of their keys, and ends in a slash. */
export const BackupRequest = z.object({ into: z.discriminatedUnion('type', [S3Source, FolderSource]) });
export type BackupRequest = z.infer<typeof BackupRequest>;

/** A volume that is served as a file to clients with a token. */
export const ServeRequest = z.object({
  /** TCP port of the pod. */
  port: z.number().int().nonnegative(),
  /** URL of the keys that verify tokens. */
  keysUrl: z.string(),
  /** UID that tokens must contain. */
  subject: z.string(),
  /** Seconds without a request after which it ends. */
  idleSeconds: z.number().positive(),
  /**
   * Identifies the content of a volume that has no writer any more, so that downloads can resume in another pod. Default: its modification
   * time.
   */
  identity: z.string().optional(),
});
export type ServeRequest = z.infer<typeof ServeRequest>;

export const TransferSpec = z.object({
  /**
   * `inspect` determines format, size and virtual size and writes nothing; `import` fills the target; `export` creates an object or a file from
   * a volume; `abort` removes unfinished uploads of such an object, and `discard` removes the object, too; `backup` stores a volume in chunks;
   * `serve` serves a volume over HTTP until there are no more requests.
   */
  mode: z.enum(['inspect', 'import', 'export', 'abort', 'discard', 'backup', 'serve']),
  source: TransferSource,
  checksum: Checksum.optional(),
  /** Result of an earlier inspection. If the end of the file is not marked, it must have found the same disk size. */
  expected: Inspection.optional(),
  /** Required for `import`. */
  target: TransferTarget.optional(),
  /** Required for `export`, whose source is a volume, and for `discard`. */
  export: ExportRequest.optional(),
  /** Required for `backup`, whose source is a volume. */
  backup: BackupRequest.optional(),
  /** Required for `serve`, whose source is a volume. */
  serve: ServeRequest.optional(),
  /** Directory for data that cannot be streamed. */
  scratchDir: z.string(),
  limits: TransferLimits.prefault({}),
  /** CIDRs of loopback, link-local or metadata addresses that are allowed nevertheless. */
  allowedAddresses: z.array(z.string()).default([]),
  /** Servers that may be asked for the source. Default: every server. */
  reach: ServerReach.optional(),
  /** Default: no proxy. */
  proxies: Proxies.optional(),
  /** Default: the public ones. */
  clouds: CloudEndpoints.optional(),
});
export type TransferSpec = z.infer<typeof TransferSpec>;
