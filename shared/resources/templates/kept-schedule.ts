// When common images are asked for, drawn once for a cluster and kept in the status of its HyperConverged, where its operator keeps it too: whoever
// writes it there decides. Called by sync.ts.
import { type HyperConverged, hyperConvergeds } from '#shared/api/foreign/boot-sources.ts';
import { refOf } from '#shared/api/object.ts';
import { scheduleOf } from '#shared/golden/templates/operators.ts';
import type { ReconcileDeps } from '#shared/resources/reconcile.ts';
import { isLeft, isPaused } from '#shared/resources/templates/operator.ts';
import type { TemplateSettings, TemplatesProblem } from '#shared/resources/templates/sync.ts';
import { AppError, isConflict, isNotFound, messageOf } from '#shared/runtime/errors.ts';

/** The draw needs nobody to keep it for as long as the object is there; kept, it can be observed, and outlives that. */
export const keepSchedules = async (
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
      // oxlint-disable-next-line no-await-in-loop
      await kube.mergePatch(
        hyperConvergeds,
        refOf(object),
        { metadata: { resourceVersion }, status },
        { subresource: 'status' },
      );
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) continue;
      if (!(error instanceof AppError) || error.retryable) throw error;
      const message = `the schedule ${status.dataImportSchedule} cannot be kept in status.dataImportSchedule: ${messageOf(error)}`;
      problems.push({ about: refOf(object), problem: { reason: 'ScheduleNotKept', message } });
    }
  }
  return problems;
};
