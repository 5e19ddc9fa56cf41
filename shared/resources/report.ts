// A progress report of a transfer, written into the status of the object it belongs to. Called by sidecar-sync.
import { isInspection, isoTime } from '#shared/backends/state.ts';
import { type DriverDeps, type Target, drive } from '#shared/resources/driver.ts';
import { drivenOf } from '#shared/resources/registry.ts';
import { writeStatus } from '#shared/resources/write.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';
import type { TransferProgress } from '#shared/transfer/progress.ts';

const maxRounds = 3;

/** A report that finds the status contended is dropped: the next one is on its way. */
export const recordProgress = async (
  deps: DriverDeps,
  owner: Target & { readonly uid: string },
  report: TransferProgress,
): Promise<Outcome> => {
  // Status says so already, and what was found comes with the end of the Job, a moment later. What keeps it from its end is told.
  if (report.phase === 'Inspecting' && isInspection(report) && report.note === undefined) return done;
  for (let round = 0; round < maxRounds; round += 1) {
    try {
      // oxlint-disable-next-line no-await-in-loop
      await recordOnce(deps, owner, report);
      return done;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
  return done;
};

const recordOnce = async (
  deps: DriverDeps,
  owner: Target & { readonly uid: string },
  report: TransferProgress,
): Promise<void> => {
  const driven = drivenOf(owner);
  const object = driven && (await deps.kube.get(driven.kind.type, owner));
  if (driven === undefined || object === undefined || object.metadata.uid !== owner.uid) return;
  const subject = driven.read(object);
  const now = deps.now();
  const state = driven.fold(subject, report, now);
  if (state === undefined) return;
  await writeStatus({ deps, driven, object, subject }, state, isoTime(now));
  if (driven.isPassDue?.(subject, state) === true) await drive(deps, owner, { which: 'all' });
};
