// Types of sources: each is a member of one of the maps and has a row in the table. Code that depends on the type reads it here.
import { type MountedClaim, type NfsFile, claim, nfs } from '#shared/populate/sources/mounted.ts';
import {
  type CopiedRow,
  type JobContext,
  type JobRow,
  type RestoredRow,
  type SourceMounts,
  type SourceRow,
  downloading,
  noMounts,
} from '#shared/populate/sources/row.ts';
import {
  type HttpFile,
  type RegistryImage,
  type S3Object,
  type ObjectLocation,
  http,
  object,
  registry,
  s3,
} from '#shared/populate/sources/servers.ts';
import { upload } from '#shared/populate/sources/upload.ts';
import type { TransferSource } from '#shared/transfer/spec.ts';

/** Sources that a Job fetches, or that are uploaded to it. */
interface JobSources {
  http: HttpFile;
  registry: RegistryImage;
  s3: S3Object;
  object: ObjectLocation;
  nfs: NfsFile;
  claim: MountedClaim;
  upload: object;
  /** An empty disk. */
  blank: object;
}

/** Sources that are copied within the cluster. */
interface CopiedSources {
  /** A claim, of any namespace. */
  'export-from-volume': { readonly namespace: string; readonly claimName: string };
  /** Another image of the same kind. `operation` default: a plain copy. */
  clone: {
    readonly namespace: string;
    readonly imageName: string;
    readonly operation?: 'encrypt' | 'decrypt' | undefined;
  };
}

/** Sources that the storage restores by itself. */
interface RestoredSources {
  /** A backup, by its URL. */
  restore: { readonly url: string };
}

interface Sources extends JobSources, CopiedSources, RestoredSources {}

export type SourceType = keyof Sources;
/** Default: any type. */
export type Source<T extends SourceType = SourceType> = { readonly [K in T]: { readonly type: K } & Sources[K] }[T];
export type JobSource = Source<keyof JobSources>;
export type CopiedSource = Source<keyof CopiedSources>;

type JobRows = { readonly [T in keyof JobSources]: JobRow<Source<T>> };
type Table = JobRows & { readonly [T in keyof CopiedSources]: CopiedRow<Source<T>> } & {
  readonly [T in keyof RestoredSources]: RestoredRow<Source<T>>;
};

export const sources: Table = {
  http,
  registry,
  s3,
  object,
  nfs,
  claim,
  upload,
  blank: {
    name: 'an empty disk',
    takes: [],
    isServer: false,
    isFile: false,
    arrives: 'fetched',
    moving: downloading,
    spec: () => ({ type: 'blank' }),
    mounts: () => noMounts,
  },
  'export-from-volume': {
    name: 'a claim of any namespace',
    takes: [],
    isServer: false,
    isFile: false,
    arrives: 'copied',
    moving: { phase: 'Cloning', doing: 'exporting the volume' },
  },
  clone: {
    name: 'another image of the same kind',
    takes: [],
    isServer: false,
    isFile: false,
    arrives: 'copied',
    moving: { phase: 'Cloning', doing: 'cloning' },
  },
  restore: {
    name: 'a backup that the storage itself made',
    takes: [],
    isServer: false,
    isFile: false,
    arrives: 'restored',
    moving: { phase: 'Downloading', doing: 'restoring the backup' },
  },
};

/** The same table, so that a row is found by its type together with a source of that type. */
const jobRows: JobRows = sources;
const rows: { readonly [T in SourceType]: SourceRow<Source<T>> } = sources;

type MaybeSource = Pick<Source, 'type'> | undefined;

const arrivalOf = (source: MaybeSource) => source && sources[source.type].arrives;

/** Filled by a Job. Only rows of Jobs have `arrives`. */
export const isForJob = (source: Source | undefined): source is JobSource => isFetched(source) || isSent(source);
/** A Job fetches it by itself, and can inspect it before. */
export const isFetched = (source: MaybeSource): boolean => arrivalOf(source) === 'fetched';
/** A Job waits until a client sends it. */
export const isSent = (source: MaybeSource): boolean => arrivalOf(source) === 'sent';
export const isCopied = (source: Source | undefined): source is CopiedSource => arrivalOf(source) === 'copied';
export const isFromServer = (source: MaybeSource): boolean => source !== undefined && sources[source.type].isServer;
export const isFile = ({ type }: Source): boolean => sources[type].isFile;
/** Its name for messages, and the credentials that it can be read with. */
export const accessOf = ({ type }: Pick<Source, 'type'>): Pick<SourceRow<Source>, 'name' | 'takes'> => sources[type];
export const movingOf = (source: MaybeSource): SourceRow<Source>['moving'] =>
  source === undefined ? downloading : sources[source.type].moving;
export const pinOf = <T extends SourceType>(source: Source<T>): string | undefined => rows[source.type].pinOf?.(source);

/** The source in the spec of the worker. */
export const toTransferSource = <T extends keyof JobSources>(source: Source<T>, context: JobContext): TransferSource =>
  jobRows[source.type].spec(source, context);

/** `host[:port]` of the server that its bytes come from; `undefined`: none. */
export const hostOfSource = <T extends keyof JobSources>(source: Source<T>, context: JobContext): string | undefined =>
  jobRows[source.type].hostOf?.(source, context);

export const mountsOfSource = <T extends keyof JobSources>(source: Source<T>, context: JobContext): SourceMounts =>
  jobRows[source.type].mounts(source, context);

/** Whether a source is of one of some types, for callers that accept only these. */
export const isOneOf =
  <T extends SourceType>(types: readonly T[]) =>
  (source: Source | undefined): source is Extract<Source, { readonly type: T }> =>
    types.some((type) => type === source?.type);
