// Writes a progress report of a transfer into the status of its object. Called by sidecar-sync.
import type { CloudEvent } from '#events/event.ts';
import { isSignedBy } from '#events/signature.ts';
import { jobs, pods } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import { isOwnedBy } from '#shared/api/object.ts';
import { isInspection, isoTime } from '#shared/populate/state.ts';
import { isOver } from '#shared/populate/job/attempts.ts';
import { type ReconcileTarget, reconcile } from '#shared/resources/reconcile.ts';
import { reconcilerOf } from '#shared/resources/registry.ts';
import { writeStatus } from '#shared/resources/write.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';
import type { TransferProgress } from '#shared/transfer/report.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { tolerate, retryConflicts } from '#shared/clients/kube/tolerant.ts';

const maxRounds = 3;

interface Reported {
  readonly owner: ReconcileTarget & { readonly uid: string };
  readonly progress: TransferProgress;
}

/** A report that conflicts with other writes is dropped: the next one follows soon. */
export const recordProgress = async (
  deps: ReconcileDeps,
  event: CloudEvent,
  { owner, progress: report }: Reported,
): Promise<Outcome> => {
  // Status already reports this, and the result is reported at the end of the Job, a moment later. A problem is reported at once.
  if (report.phase === 'Inspecting' && isInspection(report) && report.note === undefined) return done;
  const record = () => recordOnce(deps, event, { owner, progress: report });
  await tolerate(retryConflicts(maxRounds, record), isConflict);
  return done;
};

/**
 * Whether the report comes from a running pod of ours: without authentication anyone may send events. It must be signed with the key of that
 * Job, by a pod that exists and has not ended, so that old reports cannot be replayed.
 */
const isGenuine = async (
  { kube }: ReconcileDeps,
  event: CloudEvent,
  { owner, progress }: Reported,
): Promise<boolean> => {
  const { namespace, uid } = owner;
  const pod = await kube.get(pods, { namespace, name: progress.run });
  if (pod === undefined || isOver(pod)) return false;
  const controller = pod.metadata.ownerReferences?.find((owner) => owner.kind === 'Job' && owner.controller === true);
  const job = controller && (await kube.get(jobs, { namespace, name: controller.name }));
  if (job === undefined || job.metadata.uid !== controller?.uid || !isOwnedBy(job, uid)) return false;
  return isSignedBy(event, job.metadata.annotations?.[annotations.reportKey]);
};

const recordOnce = async (deps: ReconcileDeps, event: CloudEvent, reported: Reported): Promise<void> => {
  const { owner, progress: report } = reported;
  const reconciler = reconcilerOf(owner);
  const object = reconciler && (await deps.kube.get(reconciler.kind.type, owner));
  if (reconciler === undefined || object === undefined || object.metadata.uid !== owner.uid) return;
  const resource = reconciler.read(object);
  const now = deps.now();
  const state = reconciler.fold(resource, report, now);
  if (state === undefined) return;
  if (!(await isGenuine(deps, event, reported))) {
    deps.log.warn('progress report rejected: it is not signed by a running pod of the transfer', { run: report.run });
    return;
  }
  await writeStatus({ deps, reconciler, object, resource }, state, isoTime(now));
  if (reconciler.isPassDue?.(resource, state) === true) await reconcile(deps, owner, { which: 'all' });
};
