// Crons as they are at rest between two polls. Called by the benchmark of golden images.
import type { DataImportCron, DataImportCronStatus } from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { readCron } from '#shared/resources/data-import-cron/cron.ts';
import { endNameOf } from '#shared/resources/data-import-cron/verdict.ts';

/** When all of them are due, in ms since the epoch. */
export const dueTime = Date.parse('2026-03-01T12:00:00Z');
const lastPoll = '2026-03-01T00:00:00Z';

interface CronRequest {
  readonly namespace: string;
  readonly index: number;
  readonly url: string;
  readonly digest: string;
}

export const aGoldenCron = ({ namespace, index, url, digest }: CronRequest): DataImportCron => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataImportCron',
  metadata: {
    namespace,
    name: `cron-${index}`,
    annotations: {
      [cdiAnnotations.desiredDigest]: digest,
      [cdiAnnotations.lastCronTime]: lastPoll,
      [cdiAnnotations.nextCronTime]: new Date(dueTime).toISOString(),
    },
  },
  spec: {
    schedule: '0 */12 * * *',
    managedDataSource: `disk-${index}`,
    template: {
      spec: { source: { registry: { url } }, storage: { resources: { requests: { storage: '1Gi' } } } },
    },
  },
});

const condition = (type: string, status: 'True' | 'False', reason: string) => ({
  type,
  status,
  reason,
  message: reason,
});

export const settledStatus = ({ metadata, spec }: DataImportCron, digest: string): DataImportCronStatus => {
  const name = `${spec.managedDataSource}-${digest.slice(7, 19)}`;
  const status: DataImportCronStatus = {
    observedGeneration: 1,
    currentImports: [{ DataVolumeName: name, Digest: digest }],
    lastImportedPVC: { namespace: metadata.namespace ?? '', name },
    lastImportTimestamp: lastPoll,
    lastExecutionTimestamp: lastPoll,
    nextExecutionTimestamp: metadata.annotations?.[cdiAnnotations.nextCronTime],
    sourceFormat: 'pvc',
    lastPoll: { time: lastPoll, outcome: 'Same', message: 'still', failures: 0, sourceDigest: digest },
    conditions: [
      condition('Progressing', 'False', 'NoImport'),
      condition('UpToDate', 'True', 'UpToDate'),
      condition('Ready', 'True', 'Ready'),
      condition('Degraded', 'False', 'AsExpected'),
    ],
  };
  const object: DataImportCron = { apiVersion: '', kind: '', metadata, spec, status };
  return { ...status, announced: endNameOf(readCron(object).state) };
};
