// What the steps of this folder share: one version on its way, and what is said and offered meanwhile. Pure.
import type { Action } from '#shared/backends/actions.ts';
import type { PlanContext } from '#shared/backends/backend.ts';
import { isKept, offer } from '#shared/resources/data-import-cron/offer.ts';
import type { ObservedCron, ObservedVersion } from '#shared/resources/data-import-cron/observed.ts';
import type { CronState, CronSubject } from '#shared/resources/data-import-cron/subject.ts';
import { type Verdict, conclude } from '#shared/resources/data-import-cron/verdict.ts';
import type { Step } from '#shared/resources/reconciler.ts';

export type CronStep = Step<CronState>;

/** One version on its way. */
export interface Work {
  readonly cron: CronSubject;
  readonly observed: ObservedCron;
  readonly state: CronState;
  readonly name: string;
  readonly version: ObservedVersion;
  readonly context: PlanContext;
}

/** The version in use stays so, whatever becomes of the next one. */
export const goOn = ({ cron, observed, state }: Work, actions: readonly Action[], verdict: Verdict): CronStep => ({
  actions: [...actions, ...offer(cron, observed, state)],
  state: conclude(cron, state, adviseKept(cron, observed, verdict)),
});

const adviseKept = (cron: CronSubject, { dataSource }: ObservedCron, verdict: Verdict): Verdict => {
  if (verdict.trouble !== undefined || dataSource === undefined || !isKept(cron, dataSource)) return verdict;
  const message = `DataSource ${cron.dataSource} is somebody else's and in use: label it cdi.kubevirt.io/dataImportCron=${cron.ref.name} to have it follow this cron`;
  return { ...verdict, trouble: { reason: 'DataSourceUnmanaged', message } };
};
