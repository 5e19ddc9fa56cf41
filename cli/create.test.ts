import { expect, it } from 'vitest';
import { createNew } from '#cli/create.ts';
import { configMaps } from '#shared/api/foreign/core.ts';
import { Conflict } from '#shared/runtime/errors.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'vms', name: 'one' } };
const words = { what: 'a map one', otherwise: 'take another name' };

it('says what to do where the name is taken', async () => {
  const kube = createMemoryKube();
  expect((await createNew(kube, configMaps, object, words)).metadata.name).toBe('one');
  await expect(createNew(kube, configMaps, object, words)).rejects.toThrow(/^there is a map one already: take another/);
});

it('leaves the words of admission as they are', async () => {
  const refusing = { ...createMemoryKube(), create: () => Promise.reject(new Conflict('has this display name')) };
  await expect(createNew(refusing, configMaps, object, words)).rejects.toThrow(/^has this display name$/);
});
