// What images, volumes and exports have in common: an object whose bytes come by attempts, and the state that its status keeps.
import type { ObjectRef } from '#shared/api/object.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import type { TransferProgress } from '#shared/transfer/progress.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { CloneStrategy } from '#shared/populate/clone/strategy.ts';

/** Phases in order, of an image's life and an export's; the last three may follow any. A dialect maps them to its kind's own words. */
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

/** What images and volumes have alike: an object whose volume is filled by attempts. Derived from `spec` and metadata alone. */
export interface Filled {
  readonly ref: ObjectRef;
  readonly generation: number;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  /** What in the spec cannot be carried out, and why. Admission refuses these; an object that slipped past it fails with them. */
  readonly faults: readonly Fault[];
  /** Failed attempts tolerated: attempts are at most `retries + 1`. */
  readonly retries: number;
  /** Value of the retry annotation; a change starts a failed object again. */
  readonly retryToken?: string | undefined;
  /** What earlier passes wrote down. */
  readonly state: ImageState;
  /**
   * A first look: children that status does not know of need not be looked for, since making them finds out what is there, and the next look is
   * at everything. Left out: everything is looked for.
   */
  readonly trustsStatus?: boolean | undefined;
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
  /** Attempts of the present transfer that have begun. */
  readonly attempts: number;
  /** Attempts of the present transfer that failed. */
  readonly attemptsFailed: number;
  /** Attempts that failed, over the life of the object. */
  readonly failures: number;
  /** RFC 3339; stays after a success. */
  readonly lastFailureTime?: string | undefined;
  /** How the newest failed attempt of the present transfer ended. */
  readonly lastFailure?: { readonly reason: string; readonly message: string } | undefined;
  /** RFC 3339: when the next attempt starts, while one is due. */
  readonly nextAttemptTime?: string | undefined;
  /** RFC 3339: after this time the present wait counts as stuck, and the object fails with the reason of the wait. */
  readonly deadline?: string | undefined;
  /** Retry annotation value that was acted on. */
  readonly handledRetryToken?: string | undefined;
  readonly inspection?: Inspection | undefined;
  /** Digests of the published file, by algorithm. */
  readonly digests?: Readonly<Record<string, string>> | undefined;
  /** Those of what it held until that was lost, where no checksum in spec says what it must hold. */
  readonly lostDigests?: Readonly<Record<string, string>> | undefined;
  /** Storage class the golden volume was made with, found out when the user left it out. */
  readonly storageClassName?: string | undefined;
  readonly children?: ImageChildren | undefined;
  /** Why the bytes were fetched although others of the namespace have or had the same; left out: nobody else had, or they were cloned. */
  readonly fetchReason?: string | undefined;
  /** Volumes only. */
  readonly clone?: CloneState | undefined;
  /** The newest report of the transfer. */
  readonly transfer?: TransferState | undefined;
  /** The final transition that was announced (`announcementOf`). */
  readonly announced?: string | undefined;
}

/** A report as status keeps it; what it found out about the source is kept in `inspection`. */
export type TransferState = Omit<TransferProgress, 'inspection'> & {
  /** RFC 3339 with milliseconds: when it was written down. */
  readonly reportedAt: string;
};

/** How a volume is made from another one. */
export interface CloneState {
  readonly strategy: CloneStrategy;
  readonly because: string;
}

export interface ImageChildren {
  readonly volume?: string | undefined;
  readonly snapshot?: string | undefined;
  readonly job?: string | undefined;
  readonly backingImage?: string | undefined;
  /** Made for this image alone. */
  readonly storageClass?: string | undefined;
}

/** The state of an image nobody has looked at yet. */
export const initialState: ImageState = {
  phase: 'Pending',
  reason: 'Pending',
  message: 'waiting to be processed',
  progress: 0,
  attempts: 0,
  attemptsFailed: 0,
  failures: 0,
};

/** Whether nothing more happens by itself. */
export const isFinal = ({ phase }: Pick<ImageState, 'phase'>): boolean => phase === 'Available' || phase === 'Failed';

/** Whether the user asked to start again and nobody has acted on it yet. */
export const isRetryDue = ({ retryToken, state }: Pick<Filled, 'retryToken' | 'state'>): boolean =>
  retryToken !== undefined && retryToken !== state.handledRetryToken;
