// cdi.kubevirt.io DataSource: a name for a golden volume, a snapshot, or another DataSource.
import { z } from 'zod';
import { CdiCondition } from '#shared/api/conditions.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import { NamespaceName, ObjectName, Int64, type ServedKind } from '#shared/api/kind.ts';
import type { KubeObject } from '#shared/api/object.ts';

const Named = z.object({
  namespace: NamespaceName.optional().describe('default: the namespace of the DataSource'),
  name: ObjectName,
});

export const DataSourceSource = z
  .object({
    pvc: Named.optional().describe('a volume'),
    snapshot: Named.optional().describe('a snapshot of a volume'),
    dataSource: Named.optional().describe('another DataSource in the same namespace, which is not a pointer itself'),
  })
  .describe('what the name stands for: one of the fields; of several dataSource counts first, then pvc');
export type DataSourceSource = z.infer<typeof DataSourceSource>;

export const DataSourceSpec = z.object({ source: DataSourceSource });

export const DataSourceStatus = z.object({
  observedGeneration: Int64.optional().describe('the generation of spec this status was decided for'),
  source: DataSourceSource.optional().describe('what the name stands for in the end; set while it can be used'),
  conditions: z.array(CdiCondition).optional(),
});
export type DataSourceStatus = z.infer<typeof DataSourceStatus>;

export interface DataSource extends KubeObject {
  readonly spec: z.infer<typeof DataSourceSpec>;
  readonly status?: DataSourceStatus;
}

export const dataSourceKind: ServedKind<DataSource> = {
  type: { group: cdiGroup, version: 'v1beta1', kind: 'DataSource', plural: 'datasources', namespaced: true },
  singular: 'datasource',
  shortNames: ['das'],
  categories: ['all'],
  description: 'A stable name for the newest version of a golden image, to make virtual machine disks from.',
  spec: DataSourceSpec,
  status: DataSourceStatus,
  columns: [
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'PVC', type: 'string', jsonPath: '.status.source.pvc.name' },
    { name: 'Snapshot', type: 'string', jsonPath: '.status.source.snapshot.name' },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};
