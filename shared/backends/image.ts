// An image as every backend sees it, whichever kind the user wrote. A kind's dialect translates to and from this.
import type { Grant } from '#shared/access/grant.ts';
import type { AccessMode, VolumeMode } from '#shared/api/foreign/core.ts';
import type { Filled } from '#shared/populate/filled.ts';
import type { Source, SourceType } from '#shared/populate/source.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { Checksum } from '#shared/transfer/spec.ts';

/** What the user asked for. */
export interface Image extends Filled {
  /** Its name in the registry. */
  readonly backend: string;
  readonly displayName: string;
  /** `undefined` only where `faults` says why. */
  readonly source: ImageSource | undefined;
  readonly checksum?: Checksum | undefined;
  /** Of an upload: what the client is about to send. */
  readonly offered?: Inspection | undefined;
  readonly storage: ImageStorage;
  /** What of other namespaces its author may have. Default: nothing. */
  readonly grants?: readonly Grant[] | undefined;
  /** Names of children that clients of this kind look up by name. */
  readonly childNames: { readonly volume: string; readonly snapshot: string };
  /** Annotations of the golden volume that clients of this kind look for: while it is being filled, and once it is. */
  readonly volumeMarks: { readonly filling: Annotations; readonly filled: Annotations };
}

type Annotations = Readonly<Record<string, string>>;

/** Where the bytes of an image come from. Which of them a backend takes is its capability. */
export type ImageSource = Source<Exclude<SourceType, 'claim'>>;
export type ImageCloneSource = Source<'clone'>;

export interface ImageStorage {
  /** Left out: the cluster's default class. */
  readonly className?: string | undefined;
  readonly volumeMode?: VolumeMode | undefined;
  readonly accessModes?: readonly AccessMode[] | undefined;
  /** Bytes the user asked for; left out: found out from the image. */
  readonly capacityBytes?: number | undefined;
  /** Left out: the class of the volume's driver, if there is one. */
  readonly snapshotClassName?: string | undefined;
  /** Of the storage class that a backend makes for the image. */
  readonly classParameters?: Readonly<Record<string, string>> | undefined;
}
