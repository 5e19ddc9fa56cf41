// What a transfer is asked to do: the one input of transfer-job, written by the backends into the Job's environment.
import { z } from 'zod';
import { Proxies } from '#shared/clients/http/proxy.ts';
import { ExportFormat } from '#shared/transfer/export/format.ts';
import { Inspection } from '#shared/transfer/report.ts';

/** Hex digest lengths, in characters, of the algorithms an image may be checked with. */
export const digestLengths = { md5: 32, sha1: 40, sha256: 64, sha512: 128 } as const;
export type DigestAlgorithm = keyof typeof digestLengths;

/** A digest of the file as published (before any decompression or conversion). `hex` is lower case. */
export const Checksum = z.object({
  algorithm: z.enum(['md5', 'sha1', 'sha256', 'sha512']),
  hex: z.string().regex(/^[0-9a-f]+$/),
});
export type Checksum = z.infer<typeof Checksum>;

/** A Secret or ConfigMap as the worker finds it: a directory with a file for each key, empty where the object is not there. */
export const Mounted = z.object({
  dir: z.string(),
  /** What the object is called, for messages. */
  name: z.string(),
});
export type Mounted = z.infer<typeof Mounted>;

const accessShape = {
  /** Directory holding the keys of a Secret with credentials. */
  secretDir: z.string().optional(),
  /** What that Secret is called, for messages. */
  secretName: z.string().optional(),
  /** Every key is a PEM bundle to trust besides the system's. */
  ca: Mounted.optional(),
} as const;

export const HttpSource = z.object({
  type: z.literal('http'),
  url: z.string(),
  /** The Secret has accessKeyId and secretKey, or username and password. */
  ...accessShape,
  /** `Name: value`, for the URL's own origin alone. */
  secretHeaders: z.array(z.string()).optional(),
  /** Secrets whose every key holds such a header. */
  headerSecrets: z.array(Mounted).optional(),
});
export type HttpSource = z.infer<typeof HttpSource>;

export const RegistrySource = z.object({
  type: z.literal('registry'),
  /** `docker://host[:port]/repository[:tag][@digest]` of a containerDisk. */
  url: z.string(),
  /** Which image of an index: `amd64`, `arm64`, … Left out: that of the machine the transfer runs on. */
  architecture: z.string().optional(),
  /** The Secret is a dockerconfigjson, basic-auth, or has accessKeyId and secretKey. */
  ...accessShape,
  /** The registry is reached without TLS. */
  plainHttp: z.boolean().optional(),
  /** Hosts that it may redirect to without TLS. */
  plainHosts: z.array(z.string()).optional(),
});
export type RegistrySource = z.infer<typeof RegistrySource>;

export const MountedVolumeSource = z.object({
  type: z.literal('volume'),
  /** `disk.img` in a mounted file system, or a block device; where files are wanted, the folder that holds them. */
  path: z.string(),
});
export type MountedVolumeSource = z.infer<typeof MountedVolumeSource>;

/** An empty disk: as large as the target. */
const BlankSource = z.object({ type: z.literal('blank') });

/** An object of an S3-compatible store, and how it is reached. */
const StoredObject = z.object({
  /** URL of the store. Left out: AWS in this region. */
  endpoint: z.string().optional(),
  /** Where the store says that the bucket is of another region, that one is taken. */
  region: z.string(),
  /** `endpoint/bucket/key`, or else `bucket.endpoint/key`. */
  pathStyle: z.boolean(),
  bucket: z.string(),
  key: z.string(),
  /** PEM certificates to trust besides the system's, where no Secret or ConfigMap has them. */
  caBundle: z.string().optional(),
  /** The Secret has accessKeyId, secretKey, sessionToken, and ca.crt to trust. Left out: nothing is signed. */
  ...accessShape,
});
export type StoredObject = z.infer<typeof StoredObject>;

export const S3Source = StoredObject.extend({ type: z.literal('s3') });
export type S3Source = z.infer<typeof S3Source>;

/** A file below a folder that is mounted into the pod. */
export const FolderSource = z.object({
  type: z.literal('folder'),
  dir: z.string(),
  /** Path of the file below it. */
  key: z.string(),
});
export type FolderSource = z.infer<typeof FolderSource>;

/** A file that is sent to the Job: it listens, and takes bytes from whoever has a token. */
export const UploadSource = z.object({
  type: z.literal('upload'),
  /** TCP port of the pod. */
  port: z.number().int().nonnegative(),
  /** Where the keys are published that tokens are checked with. */
  keysUrl: z.string(),
  /** UID that tokens must be for. */
  subject: z.string(),
  /** Seconds without a byte after which the upload is given up. */
  idleSeconds: z.number().positive(),
  /** Directory for what has arrived, which outlives the pod. Left out: the one for scratch. */
  dir: z.string().optional(),
});
export type UploadSource = z.infer<typeof UploadSource>;

/** Where the bytes come from. */
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
  /** `disk.img` in a mounted file system, or a block device; of an archive, the folder for its files. */
  path: z.string(),
  volumeMode: z.enum(['Filesystem', 'Block']),
  /** What is made of the file: a guest's disk (left out), or, of a tar archive or another volume, the files in it. */
  content: z.enum(['disk', 'archive']).optional(),
  /** Bytes a guest disk, or all files, may have here. A larger image is refused before anything is written. */
  capacityBytes: z.number().int().positive(),
  /** Bytes the guest's disk shall have at least: a smaller image is followed by zeroes. Files only; a device has its size. */
  diskBytes: z.number().int().positive().optional(),
  /** The disk takes all of its room at once; of a device, all of the device. */
  preallocated: z.boolean().optional(),
});
export type TransferTarget = z.infer<typeof TransferTarget>;
export type TransferContent = NonNullable<TransferTarget['content']>;

export const TransferLimits = z.object({
  /** Seconds without a byte before the connection is given up. */
  idleSeconds: z.number().positive().default(60),
  /** Bytes that must arrive in each such time in which they are waited for; less has stalled. */
  floor: z.object({ bytes: z.number().int().nonnegative(), seconds: z.number().positive() }).optional(),
  /** Seconds for the whole transfer. */
  totalSeconds: z
    .number()
    .positive()
    .default(6 * 3600),
  /** Tries within one attempt (one Job pod) after the first, for transient faults. */
  retries: z.number().int().min(0).default(5),
});
export type TransferLimits = z.infer<typeof TransferLimits>;

/** What an export becomes. */
export const ExportRequest = z.object({
  form: ExportFormat,
  /** An object of a store… */
  object: StoredObject.optional(),
  /** …or a file in a mounted file system. */
  path: z.string().optional(),
  /** Also take the sha256 of the guest's bytes. Their zeroes have to be digested, too: a second for each 1.4 GB of the disk. */
  guestDigest: z.boolean().default(false),
});
export type ExportRequest = z.infer<typeof ExportRequest>;

/** Where a backup keeps its chunks. `key` is what their keys begin with, and ends in a slash. */
export const BackupRequest = z.object({ into: z.discriminatedUnion('type', [S3Source, FolderSource]) });
export type BackupRequest = z.infer<typeof BackupRequest>;

/** A volume that is handed out as a file to whoever has a token. */
export const ServeRequest = z.object({
  /** TCP port of the pod. */
  port: z.number().int().nonnegative(),
  /** Where the keys are published that tokens are checked with. */
  keysUrl: z.string(),
  /** UID that tokens must be for. */
  subject: z.string(),
  /** Seconds without a request after which nobody is expected any more. */
  idleSeconds: z.number().positive(),
  /** Names what the volume holds, where nobody writes to it any more: downloads go on in another pod then. Left out: its time of change does. */
  identity: z.string().optional(),
});
export type ServeRequest = z.infer<typeof ServeRequest>;

export const TransferSpec = z.object({
  /**
   * `inspect` finds format, size and virtual size and writes nothing; `import` fills the target; `export` makes an object or a
   * file of a volume; `abort` ends what unfinished uploads of such an object left, and `discard` removes the object, too; `backup`
   * keeps a volume in chunks; `serve` hands a volume out over HTTP until nobody asks any more.
   */
  mode: z.enum(['inspect', 'import', 'export', 'abort', 'discard', 'backup', 'serve']),
  source: TransferSource,
  checksum: Checksum.optional(),
  /** What an earlier look found. Where nothing marks the end of the file, it must have found the same disk size. */
  expected: Inspection.optional(),
  /** Needed by `import`. */
  target: TransferTarget.optional(),
  /** Needed by `export`, whose source is a volume, and by `discard`. */
  export: ExportRequest.optional(),
  /** Needed by `backup`, whose source is a volume. */
  backup: BackupRequest.optional(),
  /** Needed by `serve`, whose source is a volume. */
  serve: ServeRequest.optional(),
  /** Directory for data that cannot be streamed. */
  scratchDir: z.string(),
  limits: TransferLimits.prefault({}),
  /** CIDRs that are allowed although they are loopback, link-local or a cloud's metadata service. */
  allowedAddresses: z.array(z.string()).default([]),
  /** Left out: everything is reached directly. */
  proxies: Proxies.optional(),
});
export type TransferSpec = z.infer<typeof TransferSpec>;
