// Common parts of images, volumes and exports: an object that is filled by attempts, and the state recorded in its status.
import type { ObjectRef } from '#shared/api/object.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import type { Inspection, TransferProgress } from '#shared/transfer/report.ts';
import type { CloneStrategy } from '#shared/populate/clone/strategy.ts';

/** Phases in order, of images and exports; the last three may follow any other. A dialect maps them to the phases of its kind. */
export const imagePhases = [
  'Pending',
  'Cloning',
  'Downloading',
  'Converting',
  'Verifying',
  'Snapshotting',
  'Exporting',
  'Available',
  'Failed',
  'Terminating',
] as const;
export type ImagePhase = (typeof imagePhases)[number];

/** Common parts of images and volumes: an object whose volume is filled by attempts. Derived from `spec` and metadata only. */
export interface Filled {
  readonly ref: ObjectRef;
  readonly generation: number;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  /** Invalid parts of the spec. Admission rejects them; an object that bypassed admission fails with them. */
  readonly faults: readonly Fault[];
  /** Failed attempts tolerated: there are at most `retries + 1` attempts. */
  readonly retries: number;
  /** A client sends its bytes. */
  readonly isUpload?: boolean;
  /** Value of the retry annotation; a change restarts a failed object. */
  readonly retryToken?: string | undefined;
  /** Deadline of the pause of an upload that its client has ended. */
  readonly resumedPause?: string | undefined;
  /** The state that earlier passes recorded. */
  readonly state: ImageState;
  /**
   * First pass over the object: children that status does not list are not read, since creating them reports a conflict, and the next pass
   * reads everything. Default: all children are read.
   */
  readonly trustsStatus?: boolean | undefined;
  /** Usable, according to a status that only its original controller has written. Bullion's first status ends this, so that no later claim is believed. */
  readonly comesFromOriginal?: boolean | undefined;
}

/** The recorded status: written by one pass, read by the next. All of it may be shown to the user. */
export interface ImageState {
  readonly phase: ImagePhase;
  /** CamelCase, stable. */
  readonly reason: string;
  /** A sentence that tells a user what to do. */
  readonly message: string;
  /** 0..100, 100 only when available; never falls within an attempt. */
  readonly progress: number;
  /** Started attempts of the current transfer. */
  readonly attempts: number;
  /** Failed attempts of the current transfer. */
  readonly attemptsFailed: number;
  /** Failed attempts over the lifetime of the object. */
  readonly failures: number;
  /** RFC 3339; kept after a success. */
  readonly lastFailureTime?: string | undefined;
  /** The error of the latest failed attempt of the current transfer. */
  readonly lastFailure?: { readonly reason: string; readonly message: string } | undefined;
  /** RFC 3339: when the next attempt starts, while one is due. */
  readonly nextAttemptTime?: string | undefined;
  /** RFC 3339: after this time the object is stuck and fails with the reason of the wait. */
  readonly deadline?: string | undefined;
  /** Value of the retry annotation that was handled. */
  readonly handledRetryToken?: string | undefined;
  readonly inspection?: Inspection | undefined;
  /** Digests of the published file, by algorithm. */
  readonly digests?: Readonly<Record<string, string>> | undefined;
  /** Digests of the lost content, if spec has no checksum for it. */
  readonly lostDigests?: Readonly<Record<string, string>> | undefined;
  /** Storage class of the golden volume, resolved if the user named none. */
  readonly storageClassName?: string | undefined;
  readonly children?: ImageChildren | undefined;
  /**
   * Why the bytes were fetched although another volume of the namespace has or had the same. Default: there was no other volume, or they were
   * cloned.
   */
  readonly fetchReason?: string | undefined;
  /** Where the bytes came from, if mirrors were configured for the source. Default: they were not, or nothing was fetched. */
  readonly servedFrom?: string | undefined;
  /** Volumes only. */
  readonly clone?: CloneState | undefined;
  /** Latest report of the transfer. */
  readonly transfer?: TransferState | undefined;
  /** The final transition for which an announcement was sent (`announcementOf`). */
  readonly announced?: string | undefined;
}

/** A report as recorded in status; its inspection is stored in `inspection`. */
export type TransferState = Omit<TransferProgress, 'inspection'> & {
  /** RFC 3339 with milliseconds: time of the record. */
  readonly reportedAt: string;
};

/** How a volume is copied from another one. */
export interface CloneState {
  readonly strategy: CloneStrategy;
  readonly because: string;
}

export interface ImageChildren {
  readonly volume?: string | undefined;
  readonly snapshot?: string | undefined;
  readonly job?: string | undefined;
  readonly backingImage?: string | undefined;
  /** Created for this image only. */
  readonly storageClass?: string | undefined;
}

/** The state of an image before its first reconciliation. */
export const initialState: ImageState = {
  phase: 'Pending',
  reason: 'Pending',
  message: 'waiting to be processed',
  progress: 0,
  attempts: 0,
  attemptsFailed: 0,
  failures: 0,
};

/** Whether no further transition happens without a user. */
export const isFinal = ({ phase }: Pick<ImageState, 'phase'>): boolean => phase === 'Available' || phase === 'Failed';

/** Whether the user requested a retry that was not handled yet. */
export const isRetryDue = ({ retryToken, state }: Pick<Filled, 'retryToken' | 'state'>): boolean =>
  retryToken !== undefined && retryToken !== state.handledRetryToken;
