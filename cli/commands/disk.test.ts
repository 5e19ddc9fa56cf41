// What `bullion disk` asks the cluster for, by what the disk is made from.
import { describe, expect, it } from 'vitest';
import { diskCommand, diskOf } from '#cli/commands/disk.ts';
import { imageTypes } from '#shared/catalogue/image.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { virtualMachineVolumeKind } from '#shared/api/hypercloud/volume.ts';
import { type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Denied } from '#shared/runtime/errors.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { runCommand } from '#test/support/command.ts';

const found = (type: ResourceType, spec: object, status: object = {}) => ({
  type,
  image: {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: { name: 'fedora', namespace: 'golden' },
    spec,
    status,
  },
});
const wanted = { name: 'root', namespace: 'vms', size: undefined, className: undefined };
const at = { namespace: 'golden', name: 'fedora' };

const aCron = {
  schedule: '',
  managedDataSource: 'fedora',
  template: { spec: { source: { registry: { url: 'docker://registry/fedora' } } } },
};

describe('a disk', () => {
  it.each<[string, ReturnType<typeof found>, object]>([
    ['of a DataSource', found(dataSourceKind.type, { source: {} }), { sourceRef: { kind: 'DataSource', ...at } }],
    ['of a claim', found(persistentVolumeClaims, {}), { source: { pvc: at } }],
    ['of a DataVolume', found(dataVolumeKind.type, { source: { blank: {} }, storage: {} }), { source: { pvc: at } }],
    [
      'of a VirtualMachineVolume',
      found(virtualMachineVolumeKind.type, { virtualMachineImage: { name: 'x' } }),
      { source: { pvc: { namespace: 'golden', name: 'fedora-vmv-pvc' } } },
    ],
  ])('%s', (_what, source, from) => {
    expect(diskOf(wanted, source)).toEqual({
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { name: 'root', namespace: 'vms' },
      spec: { ...from, storage: {} },
    });
  });

  it('has the size and class that were asked for', () => {
    const sized = diskOf({ ...wanted, size: '40Gi', className: 'fast' }, found(persistentVolumeClaims, {}));
    expect(sized).toHaveProperty('spec.storage', {
      storageClassName: 'fast',
      resources: { requests: { storage: '40Gi' } },
    });
  });

  it.each<[string, ReturnType<typeof found>, RegExp]>([
    [
      'an image that is not ready',
      found(imageTypes.harvester, { displayName: 'x', sourceType: 'download', url: 'http://a/b', backend: 'csi' }),
      /image fedora cannot be used yet: waiting to be processed/,
    ],
    ['what holds no disk', found(dataImportCronKind.type, aCron), /dataimportcron\/fedora holds no disk/],
  ])('is refused of %s', (_what, source, message) => {
    expect(() => diskOf(wanted, source)).toThrow(message);
  });
});

const from = async (source: string) => {
  const memory = createMemoryKube();
  const kube: KubeClient = { ...memory, get: () => Promise.reject(new Denied('forbidden')) };
  await runCommand(diskCommand, { kube, namespace: 'vms', positionals: ['root', source], values: { from: 'golden' } });
  return memory.all(dataVolumeKind.type)[0]?.spec;
};

it('is made from a DataSource that is offered, and cannot be read', async () => {
  expect(await from('datasource/fedora')).toMatchObject({ sourceRef: { kind: 'DataSource', ...at } });
});

it('says which option names the namespace of a source that is not there', async () => {
  const positionals = ['root', 'datasource/fedora'];
  const run = runCommand(diskCommand, { kube: createMemoryKube(), namespace: 'vms', positionals });
  await expect(run).rejects.toThrow(
    /no DataSource fedora in namespace vms: .*, --from names that of the source alone$/,
  );
});

it('is not made from another source that cannot be read', async () => {
  await expect(from('pvc/fedora')).rejects.toThrow('forbidden');
});
