// Moves one image one step on: read it, look at its children, plan, act, write status once. Every event function comes here.
import { refOf } from '#shared/api/object.ts';
import { finalizers } from '#shared/api/names.ts';
import type { Backend, Plan, PlanContext } from '#shared/backends/backend.ts';
import { type Image, type ImageState, initialState, isFinal } from '#shared/backends/image.ts';
import type { BackendRegistry } from '#shared/backends/registry.ts';
import { failedState, isoTime, waitingState } from '#shared/backends/state.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import type { Announce } from '#shared/resources/announcer.ts';
import type { ImageDialect, ImageObject } from '#shared/resources/dialect.ts';
import { execute } from '#shared/resources/execute.ts';
import { dialectOf } from '#shared/resources/registry.ts';
import { announcementOf, isSettled } from '#shared/resources/transitions.ts';
import { announceFinal, sayNotes, writeStatus } from '#shared/resources/write.ts';
import { AppError, isConflict, isNotFound, messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { type Outcome, done, failed, retry, waiting } from '#shared/runtime/outcome.ts';

export interface DriverDeps {
  readonly kube: KubeClient;
  readonly backends: BackendRegistry;
  readonly settings: PopulateSettings;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Logger;
  /** Left out: nobody is told. */
  readonly announce?: Announce | undefined;
}

/** The image to drive. With a UID, a namesake made later is left alone. */
export interface Target {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid?: string | undefined;
}

export interface DriveOptions {
  /** Look at the children of a settled image, too: one of them has changed. */
  readonly verify?: boolean;
}

/** Passes over one image that others keep changing under us. */
const maxRounds = 5;

/** Safe to call at any time, any number of times, from any number of places at once. Throws Unavailable when the API is. */
export const driveImage = async (deps: DriverDeps, target: Target, options: DriveOptions = {}): Promise<Outcome> => {
  const dialect = dialectOf(target);
  if (dialect === undefined) return done;
  for (let round = 0; round < maxRounds; round += 1) {
    try {
      // Rounds follow each other: each begins with a fresh read.
      // oxlint-disable-next-line no-await-in-loop
      return await driveOnce(deps, dialect, target, options);
    } catch (error) {
      // Not found: the image went away while it was looked at.
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  }
  return retry(2, `${target.kind} ${target.name} keeps being changed by others`);
};

/** One object under the hand of one pass. */
export interface Pass {
  readonly deps: DriverDeps;
  readonly dialect: ImageDialect;
  readonly object: ImageObject;
  readonly image: Image;
}

const driveOnce = async (
  deps: DriverDeps,
  dialect: ImageDialect,
  target: Target,
  { verify = false }: DriveOptions,
): Promise<Outcome> => {
  const object = await deps.kube.get(dialect.kind.type, target);
  if (object === undefined) return done;
  const image = dialect.toImage(object);
  if (target.uid !== undefined && target.uid !== image.ref.uid) return done;
  const pass = { deps, dialect, object, image };
  if (image.deleting) return removeImage(pass);
  if (isSettled(image) && !verify) return outcomeOf(image.state);
  return advanceImage(pass);
};

const contextOf = ({ now, settings }: DriverDeps): PlanContext => ({ now: now(), settings });

const advanceImage = async (pass: Pass): Promise<Outcome> => {
  const registration = pass.deps.backends[pass.image.backend];
  const refusal = registration.served ? describeFaults(pass.image) : registration.because;
  if (refusal !== undefined || !registration.served) {
    const reason = registration.served ? refusals.spec : refusals.backend;
    const state = failedState(pass.image.state, reason, refusal ?? '');
    return conclude(pass, { ...state, handledRetryToken: pass.image.retryToken });
  }
  const held = await holdImage(reviveImage(pass));
  return conclude(held, await stepOf(held, registration.backend));
};

/** What an image failed with before anything was made for it. */
const refusals = { spec: 'InvalidSpec', backend: 'BackendUnavailable' } as const;

/** Once the spec is fine and the backend is there, an image that was refused for them begins like a new one. */
const reviveImage = (pass: Pass): Pass => {
  const { phase, reason, failures, handledRetryToken } = pass.image.state;
  const wasRefused = phase === 'Failed' && Object.values<string>(refusals).includes(reason);
  if (!wasRefused) return pass;
  return { ...pass, image: { ...pass.image, state: { ...initialState, failures, handledRetryToken } } };
};

const describeFaults = ({ faults }: Image): string | undefined =>
  faults.length === 0 ? undefined : faults.map(({ field, message }) => `${field} ${message}`).join('; ');

/** Plans and acts; gives the state to write down. What the API refuses for good is told the user, not the sender of the event. */
const stepOf = async ({ deps, image }: Pass, backend: Backend): Promise<ImageState> => {
  const context = contextOf(deps);
  try {
    const seen = await backend.check(deps.kube, image);
    const known = { ...image, state: backend.updateVirtualSize(image, seen) ?? image.state };
    const plan = backend.initialize(known, seen, context);
    await act(deps, plan);
    return plan.state;
  } catch (error) {
    if (!(error instanceof AppError) || error.retryable) throw error;
    return refusedState(image, error, context);
  }
};

const act = async ({ kube, log }: DriverDeps, { actions }: Plan): Promise<void> => {
  for (const action of actions) {
    const name = action.do === 'create' ? action.object.metadata.name : action.key.name;
    log.info('acting', { action: action.do, child: `${action.type.kind} ${name}` });
  }
  await execute(kube, actions);
};

/** A quota, a missing right, an admission rule: worth waiting for, not for ever. */
const refusedState = (image: Image, error: AppError, context: PlanContext): ImageState => {
  const phase = isFinal(image.state) ? 'Pending' : image.state.phase;
  const message = `the Kubernetes API refused: ${messageOf(error)}`;
  return waitingState(image, image.state, { phase, reason: `Api${error.code}`, message }, context);
};

/** Takes hold of the image before its first child is made, so that none can outlive it. */
const holdImage = async (pass: Pass): Promise<Pass> => {
  const { deps, dialect, image } = pass;
  if (image.finalizers.includes(finalizers.image)) return pass;
  const held = await writeFinalizers(pass, [...image.finalizers, finalizers.image]);
  return { deps, dialect, object: held, image: { ...dialect.toImage(held), state: image.state } };
};

const writeFinalizers = ({ deps, dialect, object }: Pass, names: readonly string[]): Promise<ImageObject> =>
  deps.kube.mergePatch(dialect.kind.type, refOf(object), {
    metadata: { resourceVersion: object.metadata.resourceVersion, finalizers: names },
  });

const removeImage = async (pass: Pass): Promise<Outcome> => {
  const { deps, image } = pass;
  if (!image.finalizers.includes(finalizers.image)) return done;
  const registration = deps.backends[image.backend];
  const { removed, state } = registration.served
    ? await removalOf(pass, registration.backend)
    : { removed: true, state: image.state };
  if (!removed) {
    await writeStatus(pass, state, isoTime(deps.now()));
    return waiting(state.message);
  }
  const others = image.finalizers.filter((name) => name !== finalizers.image);
  await writeFinalizers(pass, others);
  return done;
};

const removalOf = async (
  { deps, image }: Pass,
  backend: Backend,
): Promise<{ readonly removed: boolean; readonly state: ImageState }> => {
  try {
    const seen = await backend.check(deps.kube, image);
    const plan = backend.delete(image, seen, contextOf(deps));
    await act(deps, plan);
    return plan;
  } catch (error) {
    if (!(error instanceof AppError) || error.retryable) throw error;
    const message = `the Kubernetes API refused: ${messageOf(error)}`;
    return { removed: false, state: { ...image.state, phase: 'Terminating', reason: `Api${error.code}`, message } };
  }
};

/**
 * Tells whom it concerns and writes the new state down. Events come first: they can be said twice without harm, but a step whose state is
 * written is not taken again, so what was not said before a crash would never be.
 */
const conclude = async (pass: Pass, state: ImageState): Promise<Outcome> => {
  const { deps, image } = pass;
  const isQuiet = deps.announce === undefined;
  const told = isQuiet ? { ...state, announced: announcementOf(image, state) } : state;
  const now = isoTime(deps.now());
  await sayNotes(pass, told);
  const written = await writeStatus(pass, told, now);
  const isTold = isQuiet || (await announceFinal({ ...pass, object: written }, told, now));
  return isTold ? outcomeOf(state) : retry(10, 'the event sink does not take events');
};

const outcomeOf = ({ phase, reason, message }: ImageState): Outcome => {
  if (phase === 'Available') return done;
  return phase === 'Failed' ? failed(reason, message) : waiting(message);
};
