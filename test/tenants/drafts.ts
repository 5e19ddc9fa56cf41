// Objects that a tenant may write, one for each kind, to which marks are added.
import type { Draft, Loose } from '#test/support/admission.ts';
import { draft, loot, tenant } from '#test/tenants/row.ts';

export const gibibyte = { resources: { requests: { storage: '1Gi' } } };
export const claim = (metadata: Loose = {}, spec: Loose = {}): Draft =>
  draft(
    'PersistentVolumeClaim',
    'v1',
    { accessModes: ['ReadWriteOnce'], storageClassName: 'local', ...gibibyte, ...spec },
    metadata,
  );
export const dataVolume = (metadata: Loose = {}): Draft =>
  draft('DataVolume', 'cdi.kubevirt.io/v1beta1', { source: { blank: {} }, storage: gibibyte }, metadata);
export const snapshot = (metadata: Loose = {}): Draft =>
  draft('VolumeSnapshot', 'snapshot.storage.k8s.io/v1', { source: { persistentVolumeClaimName: 'mine' } }, metadata);
export const image = (metadata: Loose = {}): Draft =>
  draft(
    'VirtualMachineImage',
    'harvesterhci.io/v1beta1',
    { backend: 'csi', displayName: 'mine', sourceType: 'upload', retry: 0 },
    metadata,
  );
export const cron = (metadata: Loose = {}): Draft =>
  draft(
    'DataImportCron',
    'cdi.kubevirt.io/v1beta1',
    {
      schedule: '',
      managedDataSource: 'mine',
      template: { spec: { source: { registry: { url: 'docker://r.example/a:1' } }, storage: gibibyte } },
    },
    metadata,
  );
export const dataSource = (metadata: Loose = {}): Draft =>
  draft('DataSource', 'cdi.kubevirt.io/v1beta1', { source: { pvc: { namespace: tenant, name: 'mine' } } }, metadata);
export const job = (metadata: Loose = {}): Draft =>
  draft(
    'Job',
    'batch/v1',
    { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'a' }] } } },
    metadata,
  );
export const lease = (metadata: Loose = {}): Draft =>
  draft('Lease', 'coordination.k8s.io/v1', { holderIdentity: loot }, metadata);
export const machine = (metadata: Loose = {}): Draft =>
  draft('VirtualMachine', 'kubevirt.io/v1', { template: { spec: { volumes: [] } } }, metadata);
