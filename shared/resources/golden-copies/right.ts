// What the owners of a golden image allow of its copies. Reads, and decides nothing of a disk.
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { copyRuleOf } from '#shared/golden/copies.ts';
import type { ReadCopyRight } from '#shared/populate/volume/golden-copy.ts';
import { listIfServed } from '#shared/clients/kube/tolerant.ts';

/** Read only for disks of another class than that of their golden image. */
export const readCopyRight: ReadCopyRight = async (kube, { metadata }, className) => {
  const { namespace, labels = {} } = metadata;
  const cron: DataImportCron | undefined = await kube.get(dataImportCronKind.type, {
    namespace,
    name: labels[cdiLabels.cron] ?? '',
  });
  if (cron === undefined || cron.metadata.deletionTimestamp !== undefined) return 'use';
  const rule = copyRuleOf(cron, await listIfServed(kube, goldenImagePolicyKind.type, { namespace }));
  if (rule.isBad(metadata.name)) return 'never';
  return rule.onFirstUse || rule.prewarm.includes(className) ? 'make' : 'use';
};
