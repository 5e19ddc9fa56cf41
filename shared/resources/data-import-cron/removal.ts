// What goes with a cron: everything it manages where its policy says so, else imports that did not end. Pure.
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { type Action, patch, remove } from '#shared/backends/actions.ts';
import { removeVersion } from '#shared/resources/data-import-cron/collect.ts';
import type { ObservedCron } from '#shared/resources/data-import-cron/observed.ts';
import type { CronState, CronSubject } from '#shared/resources/data-import-cron/subject.ts';
import { isUsable } from '#shared/resources/data-import-cron/version.ts';
import type { Step } from '#shared/resources/reconciler.ts';

/** Others who own it decide when it goes. */
const removeDataSource = (cron: CronSubject, { dataSource }: ObservedCron): readonly Action[] => {
  if (dataSource === undefined || dataSource.metadata.labels?.[cdiLabels.cron] !== cron.ref.name) return [];
  const owners = dataSource.metadata.ownerReferences ?? [];
  const others = owners.filter(({ uid }) => uid !== cron.ref.uid);
  if (others.length === 0) return remove(dataSourceKind.type, dataSource);
  return others.length === owners.length
    ? []
    : [patch(dataSourceKind.type, dataSource, { metadata: { ownerReferences: others } })];
};

export const planRemoval = (
  cron: CronSubject,
  observed: ObservedCron,
): Step<CronState> & { readonly removed: boolean } => {
  const versions = [...observed.versions.values()];
  const going = cron.retains
    ? versions.filter((version) => version.dataVolume !== undefined && !isUsable(version))
    : versions;
  const actions = [...(cron.retains ? [] : removeDataSource(cron, observed)), ...going.flatMap(removeVersion)];
  const message = 'removing what goes with this cron';
  return {
    actions,
    state: { ...cron.state, reason: 'Terminating', message },
    removed: going.length === 0 && actions.length === 0,
  };
};
