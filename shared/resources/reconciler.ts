// What the reconciler needs to know of a kind: how to read it, what its next step is, how to write down where it has come to. One line per
// kind in registry.ts; `fillable.ts` has what kinds have in common whose volume is filled.
import type { CloudEvent } from '#events/event.ts';
import type { ServedKind } from '#shared/api/kind.ts';
import type { KubeObject, ObjectRef, ResourceType } from '#shared/api/object.ts';
import type { Owner } from '#shared/api/owner.ts';
import type { Action, PlanContext } from '#shared/populate/actions.ts';
import type { BackendRegistry } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import type { Note } from '#shared/resources/transitions.ts';
import type { AppError } from '#shared/runtime/errors.ts';
import type { Outcome } from '#shared/runtime/outcome.ts';
import type { LookAtFile } from '#shared/transfer/file-look.ts';
import type { TransferProgress } from '#shared/transfer/progress.ts';
import type { WatchedChild } from '#shared/populate/watched-child.ts';

/** What status says, as far as all kinds are alike. */
export interface ReconciledState {
  readonly phase: string;
  /** CamelCase, stable. */
  readonly reason: string;
  /** A sentence a person can act on. */
  readonly message: string;
  /** Attempts that failed, over the life of the object. */
  readonly failures?: number | undefined;
  /** The final transition that was announced. */
  readonly announced?: string | undefined;
}

/** One object as its kind reads it. */
export interface Resource<State extends ReconciledState = ReconciledState> {
  readonly ref: ObjectRef;
  readonly generation: number;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly state: State;
  /** Where the reconciler looks for the first time in a pass (`Filled.trustsStatus`). */
  readonly trustsStatus?: boolean | undefined;
}

/** Why nothing can be planned for an object until somebody changes it. */
export interface Refusal {
  readonly reason: string;
  readonly message: string;
}

/** What only one object may have, and what the second one fails with. */
export interface UniqueName {
  /** Whether nothing was made for the object yet: then it has to be taken first. */
  readonly isDue: boolean;
  /** Left out: among those of its namespace. */
  readonly isEverywhere?: true;
  readonly name: string;
  /** For messages. */
  readonly what: string;
  readonly reason: string;
}

export interface PlannedStep<State> {
  readonly actions: readonly Action[];
  readonly state: State;
}

/** `check` reads and decides nothing; the others decide and talk to nobody. Safe to repeat at any moment. */
export interface Planner<S extends Resource, Observed = unknown> {
  check(kube: KubeClient, resource: S, look?: LookAtFile): Promise<Observed>;
  plan(resource: S, observed: Observed, context: PlanContext): PlannedStep<S['state']>;
  /** The next step of removal; `removed` once nothing is left that deletion by owner reference would not take in order. */
  remove(
    resource: S,
    observed: Observed,
    context: PlanContext,
  ): PlannedStep<S['state']> & { readonly removed: boolean };
}

/** How objects wait for each other without asking again and again. */
export interface Links<S extends Resource> {
  /** Kinds, as `<kind>.<group>`, whose objects it may wait for. */
  readonly waitsFor: readonly string[];
  /** What it waits for and takes its content from; it is found by the source label, written before that is first looked at. */
  sourceOf(resource: S): Omit<Owner, 'uid'> | undefined;
  /** What others may wait for, and becomes ready or fails with it. */
  offersOf(resource: S): readonly Omit<Owner, 'uid'>[];
}

export interface Reconciler<T extends KubeObject = KubeObject, S extends Resource = Resource> {
  readonly kind: ServedKind<T>;
  /** Child kinds that are followed, and kinds that are only read: routing, Triggers and RBAC are made from them. */
  watchedChildren(backends: BackendRegistry): readonly WatchedChild[];
  reads(backends: BackendRegistry): readonly ResourceType[];
  /** Kinds that are made and not followed, and what is done with them; left out: none. */
  readonly makes?: readonly Pick<WatchedChild, 'type' | 'verbs'>[];
  /** Total: what cannot be understood becomes a refusal. */
  read(object: T): S;
  /** The whole status that says `state`; `read` reads the same state back. `now` is RFC 3339. */
  toStatus(object: T, resource: S, state: S['state'], now: string): object;
  refusalOf(resource: S, backends: BackendRegistry, settings: PopulateSettings): Refusal | undefined;
  /** A name nobody else of the kind may have (name-claim.ts); `undefined` where it has none. */
  uniqueNameOf?(resource: S): UniqueName | undefined;
  plannerOf(resource: S, backends: BackendRegistry): Planner<S> | undefined;
  /** Whether a change of a child that is followed can move this owner on; left out: each can. */
  isMovedBy?(resource: S, child: KubeObject): boolean;
  /** Whether it may fetch from a server whose certificate has to be trusted; left out: never. */
  fetches?(resource: S): boolean;
  /** Held from before the first child is made; `undefined` where deletion by owner reference is enough. */
  finalizerOf(resource: S): string | undefined;
  /** Left out where nobody waits for anybody. */
  readonly links?: Links<S> | undefined;
  /** Whether nothing is left to do until its children or the user's mind change. */
  isSettled(resource: S): boolean;
  /** Whether the user asked to start again and nobody has acted on it yet. */
  isRetryDue(resource: S): boolean;
  /** Whether a client has told what it is about to upload and nothing was made for that yet; left out where nobody tells. */
  isOfferDue?(resource: S): boolean;
  outcomeOf(state: S['state']): Outcome;
  /** What a step is worth telling people. */
  notesOf(before: S['state'], after: S['state'], resource: S): readonly Note[];
  /** Names the final transition that machines are told of; `undefined` while there is none. */
  announcementOf(resource: S, state: S['state']): string | undefined;
  /** The event of that transition; left out where it is that of an image. */
  endingOf?(resource: S, state: S['state']): CloudEvent | undefined;
  /** An object that was refused before anything was made for it begins like a new one once it is refused no more; others keep their state. */
  revived(resource: S): S['state'];
  failed(resource: S, refusal: Refusal): S['state'];
  /** What the API refused for good: worth waiting for, not for ever. */
  refused(resource: S, error: AppError, context: PlanContext): S['state'];
  /** The state with the report of a transfer in it; `undefined` when it tells nothing new. `now` is ms since the epoch. */
  fold(resource: S, report: TransferProgress, now: number): S['state'] | undefined;
  /** Whether a report that made this of the state is followed by a pass at once, since others are to be told; left out: never. */
  isPassDue?(resource: S, state: S['state']): boolean;
}
