// One step of one object: its settings and limits, the plan, and the actions of the plan. Called by reconcile.ts.
import type { Action, PlanContext } from '#shared/populate/actions.ts';
import { configuredSettings } from './cdi-config/look.ts';
import type { ReconcileDeps, Reconciliation } from '#shared/resources/deps.ts';
import { execute } from '#shared/resources/execute.ts';
import type { Planner, Probes, ReconciledState, Refusal, Resource, Start } from '#shared/resources/reconciler.ts';
import { type Gate, gateOf } from '#shared/resources/tenant-limit/gate.ts';
import { AppError, isConflict } from '#shared/runtime/errors.ts';
import { trustedSettings } from './network-settings.ts';

export const contextOf = ({ now, settings }: ReconcileDeps): PlanContext => ({ now: now(), settings });

/** Settings of administrators in objects of the cluster override those of the functions. */
const settingsFor = async ({ config, ...deps }: ReconcileDeps, isFetching: boolean | undefined) => {
  const settings = configuredSettings(deps.settings, await config());
  return trustedSettings({ ...deps, settings }, isFetching);
};

interface Stepped {
  /** State to record. */
  readonly state: ReconciledState;
  /** Whether something was created, which is valid only for the object as it was read. */
  readonly hasBegun: boolean;
}

/** `undefined`: no limit holds it back. */
const limitedBy = (
  { reconciler, resource }: Pick<Reconciliation, 'reconciler' | 'resource'>,
  refusal: Refusal | undefined,
): ReconciledState | undefined => refusal && reconciler.limited?.(resource, refusal);

const planOf = async (
  { deps, reconciler, resource }: Omit<Reconciliation, 'object'>,
  planner: Planner<Resource>,
  gate: Gate,
) => {
  const observed = await planner.check(deps.kube, resource, probesOf(deps, gate));
  const settings = { ...(await settingsFor(deps, reconciler.fetches?.(resource))), reach: gate.reach };
  return planner.plan(resource, observed, { ...contextOf(deps), settings });
};

/** `refusal`: why it could not be made again, of what is usable nevertheless. */
export const stepOf = async (
  reconciliation: Reconciliation,
  planner: Planner<Resource>,
  refusal: Refusal | undefined,
): Promise<Stepped> => {
  const { deps, reconciler, object, resource } = reconciliation;
  const gate = await gateOf(deps, object);
  const limited = limitedBy(reconciliation, gate.refusal);
  if (limited !== undefined) return { state: limited, hasBegun: false };
  try {
    return await carryOut(reconciliation, { planner, refusal, gate });
  } catch (error) {
    // A permanent error of the API is reported to the user, not to the sender of the event.
    if (!(error instanceof AppError) || error.retryable) throw error;
    if (refusal !== undefined) return { state: resource.state, hasBegun: false };
    return { state: reconciler.refused(resource, error, contextOf(deps)), hasBegun: false };
  }
};

interface Carried {
  readonly planner: Planner<Resource>;
  readonly refusal: Refusal | undefined;
  /** What limits of its namespace allow. */
  readonly gate: Gate;
}

const carryOut = async (
  { deps, reconciler, resource }: Reconciliation,
  { planner, refusal, gate }: Carried,
): Promise<Stepped> => {
  const { actions, starts = [], state } = await planOf({ deps, reconciler, resource }, planner, gate);
  if (refusal !== undefined && reconciler.isUsable?.(state) !== true)
    return { state: reconciler.failed(resource, refusal), hasBegun: false };
  // A plan that gives up may still contain the step that would start the work again: a failed object must not create anything.
  const wanted = state.phase === 'Failed' ? actions.filter((action) => !isBeginning(action)) : actions;
  const excess = limitedBy({ reconciler, resource }, await gate.refusalOf(wanted));
  if (excess !== undefined) return { state: excess, hasBegun: false };
  await act(deps, wanted);
  return { state: await startEach(deps, starts, state), hasBegun: starts.length > 0 || wanted.some(isBeginning) };
};

/** Files are looked at within the same limits. */
const probesOf = ({ look, ...deps }: ReconcileDeps, { reach }: Gate): Probes => ({
  ...deps,
  look: look && ((url) => look(url, reach)),
});

const startEach = async (
  deps: ReconcileDeps,
  starts: readonly Start<ReconciledState>[],
  before: ReconciledState,
): Promise<ReconciledState> => {
  let state = before;
  for (const start of starts) {
    try {
      await act(deps, [start.action]);
    } catch (error) {
      if (!(error instanceof AppError) || error.retryable || isConflict(error)) throw error;
      state = start.refused(state, error);
    }
  }
  return state;
};

const isBeginning = ({ do: what }: Action): boolean => what === 'create';

export const act = async ({ kube, log }: ReconcileDeps, actions: readonly Action[]): Promise<void> => {
  for (const action of actions) {
    const name = action.do === 'create' ? action.object.metadata.name : action.key.name;
    log.info('acting', { action: action.do, child: `${action.type.kind} ${name}` });
  }
  await execute(kube, actions);
};
