// Creates crons and DataSources from the templates in HyperConverged and SSP objects that no operator handles. Called by the tick, and when
// such an object changes.
import { type HyperConverged, type Ssp, hyperConvergeds } from '#shared/api/foreign/boot-sources.ts';
import { kubeEvents } from '#shared/api/foreign/core.ts';
import { type ObjectRef, refOf } from '#shared/api/object.ts';
import type { Action } from '#shared/populate/actions.ts';
import { isoTime } from '#shared/populate/state.ts';
import { commonTemplates } from '#shared/golden/templates/common-images.ts';
import { expand } from '#shared/golden/templates/expand.ts';
import {
  type TemplateList,
  effectiveTemplates,
  clusterArchitectures,
  sspTemplates,
  scheduleOf,
} from '#shared/golden/templates/operators.ts';
import type { Problem } from '#shared/golden/templates/template.ts';
import { execute } from '#shared/resources/execute.ts';
import { type TemplateRequest, isLeft, isPaused, type TemplateSettings } from '#shared/resources/templates/ask.ts';
import { type TemplatesPlan, planTemplates } from '#shared/resources/templates/plan.ts';
import {
  type TemplateHolders,
  readHolders,
  readNodeArchitectures,
  readObservedTemplates,
} from '#shared/resources/templates/observed.ts';
import { toKubeEvent } from '#shared/resources/transitions.ts';
import { recordNote } from '#shared/resources/write.ts';
import { AppError, messageOf } from '#shared/runtime/errors.ts';
import { type Outcome, done, waiting } from '#shared/runtime/outcome.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { isChangedMeanwhile, ensureNamespace } from '#shared/clients/kube/tolerant.ts';

/** Never repeats a write: a pass over settled templates only reads. */
export const syncTemplates = async (deps: ReconcileDeps): Promise<Outcome> => {
  const { templates, kube } = deps;
  if (templates.mode === 'off') return done;
  const holders = await readHolders(kube);
  if (holders === undefined) return done;
  const kept = await keepSchedules(deps, templates, holders.hyperConvergeds);
  const { asks, problems } = await readAsks(deps, templates, holders);
  const observed = await readObservedTemplates(kube, templates.namespace, asks);
  const plan = planTemplates(asks, observed);
  const isWanted = asks.some(({ wanted }) => (wanted?.sources.length ?? 0) > 0);
  if (isWanted && observed.sources.size === 0) await ensureNamespace(deps.kube, templates.namespace);
  const refused = await carryOut(deps, asks, plan);
  const reported = [...kept, ...problems, ...plan.problems, ...refused];
  for (const { about, problem } of reported) {
    await recordProblem(deps, about, problem);
  }
  return reported.length === 0 ? done : waiting(reported.map(({ problem }) => problem.message).join('; '));
};

export type TemplatesProblem = TemplatesPlan['problems'][number];
type Reported = TemplatesProblem;

const readAsks = async (
  deps: ReconcileDeps,
  settings: TemplateSettings,
  holders: TemplateHolders,
): Promise<{ readonly asks: readonly TemplateRequest[]; readonly problems: readonly Reported[] }> => {
  const problems: Reported[] = [];
  const { all: nodeArchitectures, workloads } = await architecturesFor(deps, settings, holders.hyperConvergeds);
  const toAsk = (
    object: HyperConverged | Ssp,
    list: () => TemplateList | Problem,
    architectures: readonly string[],
  ): TemplateRequest => {
    const owner = refOf(object);
    const report = (problem: Problem): TemplateRequest => {
      problems.push({ about: owner, problem });
      return { owner, wanted: undefined };
    };
    if (isLeft(settings, object)) return report(leftToOperator);
    // As in its operator: existing objects are not changed.
    if (isPaused(object)) return { owner, wanted: undefined };
    const read = list();
    if (!('templates' in read)) return report(read);
    const cluster = { namespace: settings.namespace, architectures, isMultiArch: read.isMultiArch };
    const wanted = expand(read.templates, cluster);
    return { owner, wanted: { ...wanted, problems: [...read.problems, ...wanted.problems] } };
  };
  // SSP first: if both exist, it owns the DataSources.
  const own = holders.ssps.map((ssp) => {
    const named = clusterArchitectures(ssp);
    return toAsk(ssp, () => sspTemplates(ssp), named.length === 0 ? [settings.architecture] : named);
  });
  const hyper = holders.hyperConvergeds.map((hco) =>
    toAsk(hco, () => effectiveTemplates(hco, commonTemplates, workloads), nodeArchitectures),
  );
  return { asks: [...own, ...hyper], problems };
};

const leftToOperator: Problem = {
  reason: 'LeftToOperator',
  message: 'its operator works on this object, so its templates are left to it; TEMPLATES=serve takes them over',
};

/** Architectures according to a HyperConverged, or else to the nodes. */
const architecturesFor = async (
  { kube }: ReconcileDeps,
  { architecture }: TemplateSettings,
  [first]: readonly HyperConverged[],
): Promise<{ readonly all: readonly string[]; readonly workloads: readonly string[] }> => {
  if (first === undefined) return { all: [architecture], workloads: [architecture] };
  const { controlPlaneArchitectures = [], workloadsArchitectures = [] } = first.status?.nodeInfo ?? {};
  const configured = [...new Set([...controlPlaneArchitectures, ...workloadsArchitectures])];
  const known = configured.length > 0 ? configured : await readNodeArchitectures(kube);
  const all = known.length > 0 ? known : [architecture];
  return { all, workloads: workloadsArchitectures.length > 0 ? workloadsArchitectures : all };
};

/** A failure of one template must not affect the others. */
const carryOut = async (
  deps: ReconcileDeps,
  asks: readonly TemplateRequest[],
  plan: TemplatesPlan,
): Promise<readonly Reported[]> => {
  const refused: Reported[] = [];
  for (const action of plan.actions) {
    try {
      await execute(deps.kube, [action]);
    } catch (error) {
      // The next pass handles concurrent changes.
      if (isChangedMeanwhile(error)) continue;
      if (!(error instanceof AppError) || error.retryable) throw error;
      const problem = { reason: 'TemplateRefused', message: `${nameOf(action)}: ${messageOf(error)}` };
      refused.push(...asks.slice(0, 1).map(({ owner }) => ({ about: owner, problem })));
    }
  }
  for (const { about, note } of plan.notes) {
    await recordNote(deps, about, note);
  }
  return refused;
};

const nameOf = (action: Action): string =>
  `${action.type.kind} ${action.do === 'create' ? action.object.metadata.name : action.key.name}`;

/** Once for the lifetime of the Event: a pass must not write if nothing has changed. */
const recordProblem = async (deps: ReconcileDeps, about: ObjectRef, { reason, message }: Problem): Promise<void> => {
  const note = { type: 'Warning', reason, message, occurrence: message } as const;
  const { metadata } = toKubeEvent(about, note, isoTime(deps.now()));
  if ((await deps.kube.get(kubeEvents, metadata)) === undefined) await recordNote(deps, about, note);
};

// The schedule of common images, generated once per cluster and stored in the status of its HyperConverged, as by its operator: a value that is
// already stored there is used.

/** The schedule is deterministic while the object exists; stored, it is visible, and survives the object. */
const keepSchedules = async (
  { kube }: ReconcileDeps,
  settings: TemplateSettings,
  objects: readonly HyperConverged[],
): Promise<readonly TemplatesProblem[]> => {
  const problems: TemplatesProblem[] = [];
  for (const object of objects) {
    if (isLeft(settings, object) || isPaused(object) || (object.status?.dataImportSchedule ?? '') !== '') continue;
    const status = { dataImportSchedule: scheduleOf(object) };
    const { resourceVersion } = object.metadata;
    try {
      await kube.mergePatch(
        hyperConvergeds,
        refOf(object),
        { metadata: { resourceVersion }, status },
        { subresource: 'status' },
      );
    } catch (error) {
      if (isChangedMeanwhile(error)) continue;
      if (!(error instanceof AppError) || error.retryable) throw error;
      const message = `the schedule ${status.dataImportSchedule} cannot be stored in status.dataImportSchedule: ${messageOf(error)}`;
      problems.push({ about: refOf(object), problem: { reason: 'ScheduleNotKept', message } });
    }
  }
  return problems;
};
