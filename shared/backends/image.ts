// The internal model of an image, for every kind that the user may create. The dialect of a kind translates to and from this.
import type { Grant } from '#shared/access/grant.ts';
import type { AccessMode, VolumeMode } from '#shared/api/foreign/core.ts';
import type { Filled } from '#shared/populate/filled.ts';
import type { Source, SourceType } from '#shared/populate/source.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { Checksum } from '#shared/transfer/spec.ts';

/** The requested state. */
export interface Image extends Filled {
  /** Name in the registry. */
  readonly backend: string;
  readonly displayName: string;
  /** `undefined` only if `faults` explains why. */
  readonly source: ImageSource | undefined;
  readonly checksum?: Checksum | undefined;
  /** For an upload: the announced file. */
  readonly offered?: Inspection | undefined;
  readonly storage: ImageStorage;
  /** What its author may use in other namespaces. Default: nothing. */
  readonly grants?: readonly Grant[] | undefined;
  /** Names of children that clients of this kind read. */
  readonly childNames: { readonly volume: string; readonly snapshot: string };
  /** Annotations of the golden volume that clients of this kind read: while it is being filled, and when it is filled. */
  readonly volumeMarks: { readonly filling: Annotations; readonly filled: Annotations };
}

type Annotations = Readonly<Record<string, string>>;

/** The source of an image. The types that a backend supports are one of its capabilities. */
export type ImageSource = Source<Exclude<SourceType, 'claim'>>;
export type ImageCloneSource = Source<'clone'>;

export interface ImageStorage {
  /** Default: the default class of the cluster. */
  readonly className?: string | undefined;
  readonly volumeMode?: VolumeMode | undefined;
  readonly accessModes?: readonly AccessMode[] | undefined;
  /** Bytes the user requested. Default: determined from the image. */
  readonly capacityBytes?: number | undefined;
  /** Default: the class of the volume's driver, if there is one. */
  readonly snapshotClassName?: string | undefined;
  /** Parameters of the storage class that a backend creates for the image. */
  readonly classParameters?: Readonly<Record<string, string>> | undefined;
}
