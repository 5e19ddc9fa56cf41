// An image as every backend sees it, whichever kind the user wrote. A kind's dialect translates to and from this.
import type { AccessMode, VolumeMode } from '#shared/api/foreign/core.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import type { BackendName } from '#shared/backends/names.ts';
import type { Checksum, TransferSource } from '#shared/transfer/spec.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { TransferProgress } from '#shared/transfer/progress.ts';

/** Phases of an image's life, in order; the last three may follow any. A dialect maps them to its kind's own words. */
export const imagePhases = [
  'Pending',
  'Downloading',
  'Converting',
  'Verifying',
  'Snapshotting',
  'Available',
  'Failed',
  'Terminating',
] as const;
export type ImagePhase = (typeof imagePhases)[number];

/** What the user asked for. Derived from `spec` and metadata alone. */
export interface Image {
  readonly ref: ObjectRef;
  readonly generation: number;
  /** RFC 3339, from the API server. */
  readonly createdAt: string;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly backend: BackendName;
  readonly displayName: string;
  readonly source: TransferSource;
  readonly checksum?: Checksum | undefined;
  readonly storage: ImageStorage;
  /** Names of children that clients of this kind look up by name. */
  readonly childNames: { readonly volume: string; readonly snapshot: string };
  /** Failed attempts tolerated: attempts are at most `retries + 1`. */
  readonly retries: number;
  /** Value of the retry annotation; a change starts a failed image again. */
  readonly retryToken?: string | undefined;
  /** What earlier passes wrote down. */
  readonly state: ImageState;
}

export interface ImageStorage {
  /** Left out: the cluster's default class. */
  readonly className?: string | undefined;
  readonly volumeMode?: VolumeMode | undefined;
  readonly accessModes?: readonly AccessMode[] | undefined;
  /** Bytes the user asked for; left out: found out from the image. */
  readonly capacityBytes?: number | undefined;
  /** Left out: the class of the volume's driver, if there is one. */
  readonly snapshotClassName?: string | undefined;
}

/** What status says: written by one pass, read by the next. Everything in it can be shown to the user. */
export interface ImageState {
  readonly phase: ImagePhase;
  /** CamelCase, stable. */
  readonly reason: string;
  /** A sentence a person can act on. */
  readonly message: string;
  /** 0..100, 100 only when available; never falls within an attempt. */
  readonly progress: number;
  /** Attempts begun since creation or since the last retry. */
  readonly attempts: number;
  /** Attempts that failed, over the life of the object. */
  readonly failures: number;
  /** RFC 3339. */
  readonly lastFailureTime?: string | undefined;
  /** RFC 3339: when the next attempt starts, while one is due. */
  readonly nextAttemptTime?: string | undefined;
  /** RFC 3339: when the present phase counts as stuck and the image fails with the reason it was stuck for. */
  readonly deadline?: string | undefined;
  /** Retry annotation value that was acted on. */
  readonly handledRetryToken?: string | undefined;
  readonly inspection?: Inspection | undefined;
  /** Digests of the published file, by algorithm. */
  readonly digests?: Readonly<Record<string, string>> | undefined;
  /** Storage class the golden volume was made with, found out when the user left it out. */
  readonly storageClassName?: string | undefined;
  readonly children?: ImageChildren | undefined;
  /** The newest report of the running transfer. */
  readonly transfer?: TransferProgress | undefined;
}

export interface ImageChildren {
  readonly volume?: string | undefined;
  readonly snapshot?: string | undefined;
  readonly job?: string | undefined;
}

/** The state of an image nobody has looked at yet. */
export const initialState: ImageState = {
  phase: 'Pending',
  reason: 'Pending',
  message: 'waiting to be processed',
  progress: 0,
  attempts: 0,
  failures: 0,
};
