// Exports of volumes for unit tests, and Jobs and pods with their results.
import type { Job, Pod } from '#shared/api/foreign/core.ts';
import type { VirtualMachineVolumeExport } from '#shared/api/hypercloud/volume-export.ts';
import { initialState } from '#shared/populate/filled.ts';
import { toExport } from '#shared/resources/volume-export/dialect.ts';
import type { ExportState, VolumeExport } from '#shared/resources/volume-export/rules.ts';
import type { ObservedExport } from '#shared/resources/volume-export/observed.ts';
import { testSettings, testTime } from '#test/support/builders.ts';

const store = { endpoint: 'https://store.example', region: 'us-east-1', pathStyle: true, secretName: 'object-store' };
export const exportContext = { now: testTime, settings: { ...testSettings, objectStore: store } };
/** Seconds after the time of tests. */
export const iso = (seconds: number): string => new Date(testTime + seconds * 1000).toISOString();
const objectStore = { bucketName: 'vmimage', objectName: 'mydisk' };

export const anExportObject = (spec: VirtualMachineVolumeExport['spec'] = { pvcName: 'root', objectStore }) =>
  ({
    apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
    kind: 'VirtualMachineVolumeExport',
    metadata: { name: 'export', namespace: 'ns', uid: 'uid-1', generation: 1 },
    spec,
  }) satisfies VirtualMachineVolumeExport;

export const anExport = (
  state: Partial<ExportState> = {},
  spec?: VirtualMachineVolumeExport['spec'],
): VolumeExport => ({
  ...toExport(anExportObject(spec)),
  state: { ...initialState, ...state },
});

export const observedWith = (over: Partial<ObservedExport>): ObservedExport => ({ pods: [], foreign: [], ...over });

/** Started at 0 s, ended at 60 s. */
export const anExportJob = (name: string, condition?: 'Complete' | 'Failed'): Job =>
  ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: 'ns', uid: `job-${name}`, creationTimestamp: iso(0) },
    spec: { backoffLimit: 3, template: { spec: { containers: [] } } },
    status: {
      startTime: iso(0),
      completionTime: iso(60),
      ...(condition === undefined
        ? {}
        : { conditions: [{ type: condition, status: 'True', lastTransitionTime: iso(60) }] }),
    },
  }) as unknown as Job;

export const exportPodOf = (job: Job, report: object | undefined, phase: 'Succeeded' | 'Failed'): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `${job.metadata.name}-a`, ownerReferences: [{ uid: job.metadata.uid, kind: 'Job' }] },
    spec: { containers: [] },
    status: {
      phase,
      containerStatuses: [
        {
          name: 'transfer',
          state: {
            terminated: {
              exitCode: phase === 'Failed' ? 137 : 0,
              finishedAt: iso(60),
              message: JSON.stringify(report),
            },
          },
        },
      ],
    },
  }) as unknown as Pod;

export const exportSuccess = {
  outcome: 'succeeded',
  inspection: { format: 'qcow2', compression: 'none', size: 700, virtualSize: 2 ** 30 },
  digests: { crc32: 'cafe0001', 'guest-sha256': 'ab' },
  receivedBytes: 0,
  writtenBytes: 600,
  seconds: 1,
  object: { size: 700, etag: '"e"', isConfirmed: true },
};
