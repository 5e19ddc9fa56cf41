// An object by the name that a person types: what is said where there is none.
import { expect, it } from 'vitest';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { findAny } from '#shared/catalogue/objects.ts';
import { Denied } from '#shared/runtime/errors.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const { type } = dataVolumeKind;
const memory = createMemoryKube();
memory.seed(type, {
  apiVersion: apiVersionOf(type),
  kind: type.kind,
  metadata: { namespace: 'vms', name: 'root' },
  spec: { source: { blank: {} } },
});
const forbidden: KubeClient = {
  ...memory,
  get: () => Promise.reject(new Denied('datasources "fedora" is forbidden')),
};

it.each(['root', 'dv/root', 'DataVolume/root', 'datavolumes.cdi.kubevirt.io/root'])('finds %s', async (wanted) => {
  expect((await findAny(memory, 'vms', wanted)).type.kind).toBe('DataVolume');
});

it.each<[string, KubeClient, RegExp]>([
  ['root2', memory, /no image root2 in namespace vms, and no other object with that name/],
  ['dv/root2', memory, /no DataVolume root2 in namespace vms: kubectl get datavolumes -A/],
  ['pvc/root', memory, /no PersistentVolumeClaim root in namespace vms/],
  ['harvester/root', memory, /no image harvester\/root/],
  ['tenantlimit/small', memory, /tenantlimit is not a kind that is known here: .*kubectl describe tenantlimit small/],
  ['das/fedora', forbidden, /^datasources "fedora" is forbidden/],
])('says what is wrong with %s', async (wanted, kube, says) => {
  await expect(findAny(kube, 'vms', wanted)).rejects.toThrow(says);
});
