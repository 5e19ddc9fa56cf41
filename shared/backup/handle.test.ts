// The effect of an event with only a reference to an object.
import { expect, it } from 'vitest';
import type { KnownEvent } from '#events/catalogue.ts';
import { virtualMachineBackups } from '#shared/api/foreign/backup.ts';
import { annotations } from '#shared/api/names.ts';
import { handleBackupEvent } from '#shared/backup/handle.ts';
import { done } from '#shared/runtime/outcome.ts';
import { createMemoryCluster } from '#test/support/backup-world.ts';
import { aHarvesterImage } from '#test/support/builders.ts';

const reference = {
  apiVersion: 'harvesterhci.io/v1beta1',
  kind: 'VirtualMachineBackup',
  namespace: 'default',
  name: 'vm',
};
const eventOf = (type: string) =>
  ({ id: '1', source: '/', type, extensions: {}, data: reference }) as unknown as KnownEvent;

it.each(['add', 'update'])('the backup of a machine is reconciled at the event type %s', async (verb) => {
  const { kube, deps, ready, image } = createMemoryCluster(new Map());
  const leap = ready(aHarvesterImage());
  const claim = { metadata: { annotations: { 'harvesterhci.io/imageId': 'default/image-leap' } } };
  const event = eventOf(`dev.knative.apiserver.ref.${verb}`);
  const { signal } = new AbortController();
  // Deleted again by the time it is read.
  expect(await handleBackupEvent(deps, event, signal)).toEqual(done);
  kube.seed(virtualMachineBackups, {
    ...reference,
    metadata: { name: 'vm', namespace: 'default' },
    status: { readyToUse: true, volumeBackups: [{ persistentVolumeClaim: claim }] },
  });
  expect(await handleBackupEvent(deps, event, signal)).toEqual(done);
  expect((await image(leap))?.metadata.annotations?.[annotations.backup]).toBe('true');
});
