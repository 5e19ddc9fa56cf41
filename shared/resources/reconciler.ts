// The interface of a kind for the reconciler: how to read it, its next step, how to write its status. One line per kind in registry.ts;
// `fillable.ts` is shared by kinds whose volume is filled.
import type { CloudEvent } from '#events/event.ts';
import type { ServedKind } from '#shared/api/kind.ts';
import type { KubeObject, ObjectRef, Owner, ResourceType } from '#shared/api/object.ts';
import type { Action, PlanContext } from '#shared/populate/actions.ts';
import type { BackendRegistry } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import type { Note } from '#shared/resources/transitions.ts';
import { type AppError, type Fault, messageOf } from '#shared/runtime/errors.ts';
import { type Outcome, done, waiting } from '#shared/runtime/outcome.ts';
import type { VerifySignature, WhyUnusable } from '#shared/golden/signature/outcome.ts';
import type { LookAtFile } from '#shared/transfer/file-look.ts';
import type { TransferProgress } from '#shared/transfer/report.ts';
import type { WatchedChild } from '#shared/populate/watched-child.ts';

/** Status fields that all kinds share. */
export interface ReconciledState {
  readonly phase: string;
  /** CamelCase, stable. */
  readonly reason: string;
  /** A sentence that tells a user what to do. */
  readonly message: string;
  /** Failed attempts over the lifetime of the object. */
  readonly failures?: number | undefined;
  /** The final transition that was announced. */
  readonly announced?: string | undefined;
}

/** An object, as read by its kind. */
export interface Resource<State extends ReconciledState = ReconciledState> {
  readonly ref: ObjectRef;
  readonly generation: number;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly state: State;
  /** First read of the object in a pass (`Filled.trustsStatus`). */
  readonly trustsStatus?: boolean | undefined;
}

/** Why nothing can be planned for an object until it is changed. */
export interface Refusal {
  readonly reason: string;
  readonly message: string;
}

/** A unique name, and the failure of the second object with it. */
export interface UniqueName {
  /** Whether nothing was created for the object yet: then the name has to be claimed first. */
  readonly isDue: boolean;
  /** Default: unique in its namespace. */
  readonly isEverywhere?: true;
  readonly name: string;
  /** For messages. */
  readonly what: string;
  readonly reason: string;
}

/** An action that the cluster may refuse for good without harm to the rest of the step. */
export interface Start<State> {
  readonly action: Action;
  /** The state that says so. */
  refused(state: State, error: unknown): State;
}

export interface PlannedStep<State> {
  readonly actions: readonly Action[];
  /** Carried out last. */
  readonly starts?: readonly Start<State>[];
  readonly state: State;
}

/** Observations beyond the API server. Absent where a function cannot make them. */
export interface Probes {
  /** Inspects a file on a web server. */
  readonly look?: LookAtFile | undefined;
  /** Verifies who signed a version of a golden image. */
  readonly verify?: VerifySignature | undefined;
  /** Reads the keys of a rule for signatures. */
  readonly whyUnusable?: WhyUnusable | undefined;
  /** Milliseconds since the epoch. */
  readonly now?: (() => number) | undefined;
}

/** `check` reads and decides nothing; the others decide and are pure. Safe to repeat at any moment. */
export interface Planner<S extends Resource, Observed = unknown> {
  check(kube: KubeClient, resource: S, probes?: Probes): Promise<Observed>;
  plan(resource: S, observed: Observed, context: PlanContext): PlannedStep<S['state']>;
  /** The next step of removal; `removed` once only dependents are left that garbage collection removes. */
  remove(
    resource: S,
    observed: Observed,
    context: PlanContext,
  ): PlannedStep<S['state']> & { readonly removed: boolean };
}

/** How objects wait for each other without polling. */
export interface Links<S extends Resource> {
  /** Kinds, as `<kind>.<group>`, whose objects it may wait for. */
  readonly waitsFor: readonly string[];
  /** The object it waits for and takes its content from; found by the source label, which is written before that object is first read. */
  sourceOf(resource: S): Omit<Owner, 'uid'> | undefined;
  /** Objects that others may wait for, and that become ready or fail with it. */
  offersOf(resource: S): readonly Omit<Owner, 'uid'>[];
}

export interface Reconciler<T extends KubeObject = KubeObject, S extends Resource = Resource> {
  readonly kind: ServedKind<T>;
  /** Kinds of children that are watched, and kinds that are only read: routing, Triggers and RBAC are generated from them. */
  watchedChildren(backends: BackendRegistry): readonly WatchedChild[];
  reads(backends: BackendRegistry): readonly ResourceType[];
  /** Kinds that are created but not watched, with their verbs. Default: none. */
  readonly makes?: readonly Pick<WatchedChild, 'type' | 'verbs'>[];
  /** Never throws: an invalid object becomes a refusal. */
  read(object: T): S;
  /** The complete status for `state`; `read` reads the same state back. `now` is RFC 3339. */
  toStatus(object: T, resource: S, state: S['state'], now: string): object;
  refusalOf(resource: S, backends: BackendRegistry, settings: PopulateSettings): Refusal | undefined;
  /**
   * Whether others may use it in this state. A rule that is stricter than when it was made, or a setting that is gone, then takes nothing away from them:
   * what is refused is only what would have to be made again. Default: never.
   */
  isUsable?(state: S['state']): boolean;
  /** A name that must be unique in the kind (name-claim.ts); `undefined` if there is none. */
  uniqueNameOf?(resource: S): UniqueName | undefined;
  /** Detaches what is to outlive the object, which is being deleted, from it: whether it did, so that its children are read again. Default: nothing is. */
  keep?(kube: KubeClient, object: T, resource: S, now: number): Promise<boolean>;
  /** The object with what a deleted one of its name left for it. Default: nothing. */
  takeBack?(kube: KubeClient, object: T, resource: S): Promise<S | Refusal>;
  plannerOf(resource: S, backends: BackendRegistry): Planner<S> | undefined;
  /** Whether a change of a watched child can affect this owner. Default: each can. */
  isMovedBy?(resource: S, child: KubeObject): boolean;
  /** Whether it may fetch from a server whose certificate must be verified. Default: never. */
  fetches?(resource: S): boolean;
  /** Set before the first child is created; `undefined` if garbage collection is enough. */
  finalizerOf(resource: S): string | undefined;
  /** Default: no objects wait for each other. */
  readonly links?: Links<S> | undefined;
  /** Whether nothing is left to do until its children or its spec change. `now` (ms since the epoch): nor is there by that time. */
  isSettled(resource: S, now?: number): boolean;
  /** Whether the user requested a retry that was not handled yet. */
  isRetryDue(resource: S): boolean;
  /** Whether a client announced an upload for which nothing was created yet. Default: no announcements. */
  isOfferDue?(resource: S): boolean;
  outcomeOf(state: S['state']): Outcome;
  /** Events of a step for users. */
  notesOf(before: S['state'], after: S['state'], resource: S): readonly Note[];
  /** Identifies the final transition to announce; `undefined` if there is none. */
  announcementOf(resource: S, state: S['state']): string | undefined;
  /** The event of that transition. Default: that of an image. */
  endingOf?(resource: S, state: S['state']): CloudEvent | undefined;
  /** An object that was rejected before anything was created for it starts like a new one once it is valid; others keep their state. */
  revived(resource: S): S['state'];
  failed(resource: S, refusal: Refusal): S['state'];
  /** Held back by a limit of its namespace until somebody changes something. Default: limits are not about it. */
  limited?(resource: S, refusal: Refusal): S['state'];
  /** A permanent error of the API: worth waiting for, with a deadline. */
  refused(resource: S, error: AppError, context: PlanContext): S['state'];
  /** The state with the report of a transfer; `undefined` if there is no change. `now` is ms since the epoch. */
  fold(resource: S, report: TransferProgress, now: number): S['state'] | undefined;
  /** Whether a report with this result requires a pass at once, because clients wait for it. Default: never. */
  isPassDue?(resource: S, state: S['state']): boolean;
}

/** A permanent error of the API. */
export const apiRefusal = (error: AppError): Refusal => ({
  reason: `Api${error.code}`,
  message: `refused: ${messageOf(error)}`,
});

/** Faults of a spec that bypassed admission, with the same messages. */
export const refusalOfFaults = ({ faults }: { readonly faults: readonly Fault[] }): Refusal | undefined =>
  faults.length === 0
    ? undefined
    : { reason: 'InvalidSpec', message: faults.map(({ field, message }) => `${field} ${message}`).join('; ') };

/** What kinds share whose objects are filled by nobody: they are done in the phase `ready`, and in trouble until something changes. */
export const plainReconciler = <S extends Resource>(
  ready: S['state']['phase'],
  inTrouble: (resource: S, refusal: Refusal) => S['state'],
) => ({
  finalizerOf: () => undefined,
  isRetryDue: () => false,
  outcomeOf: ({ phase, message }: S['state']) => (phase === ready ? done : waiting(message)),
  notesOf: () => [],
  announcementOf: () => undefined,
  revived: ({ state }: S): S['state'] => state,
  failed: inTrouble,
  refused: (resource: S, error: AppError) => inTrouble(resource, apiRefusal(error)),
  fold: () => undefined,
});
