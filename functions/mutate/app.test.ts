import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createApp } from './app.ts';
import { createApp as createValidate } from '#functions/validate/app.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import {
  type Asked,
  type Draft,
  aHarvesterImage,
  aHyperCloudImage,
  ask,
  clusterOf,
  patched,
} from '#test/support/admission.ts';

const aClass = (name: string, annotations: object = {}): Draft => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name, annotations, creationTimestamp: '2026-01-01T00:00:00Z' },
});
const byDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' };
const cluster = clusterOf(aClass('fast'), aClass('standard', byDefault));

const mutate = async (asked: Asked, kube: KubeClient = cluster): Promise<Draft> => {
  const response = await ask(createApp({ kube, log: silentLogger }), '/mutate', asked);
  expect(response.allowed).toBe(true);
  return patched(asked.object!, response);
};

const nameLabel = 'harvesterhci.io/imageDisplayName';
const classAnnotation = 'harvesterhci.io/storageClassName';
const settled = (name: string) => ({
  metadata: { annotations: { [classAnnotation]: name } },
  spec: { targetStorageClassName: name },
});

describe('a Harvester image gets', () => {
  const image = aHarvesterImage;

  it('its backend and retries when the CRD did not default them, and keeps values that were set (defaults/backend-and-retry)', async () => {
    const bare = image({ backend: undefined, retry: undefined });
    expect(await mutate({ object: bare })).toMatchObject({ spec: { backend: 'backingimage', retry: 3 } });
    expect(await mutate({ object: image({ retry: 0 }) })).toMatchObject({ spec: { backend: 'csi', retry: 0 } });
  });

  it('a label with its display name, whatever label the user set (defaults/display-name-label)', async () => {
    const forged = image({}, { labels: { [nameLabel]: 'other', mine: 'x' } });
    expect(await mutate({ object: forged })).toMatchObject({
      metadata: { labels: { [nameLabel]: 'leap', mine: 'x' } },
    });
  });

  it('a digest as label when the display name is not a valid label value (defaults/display-name-label)', async () => {
    const { metadata } = await mutate({ object: image({ displayName: 'Debian 12 (bookworm)' }) });
    expect((metadata['labels'] as Record<string, string>)[nameLabel]).toMatch(/^sha256-[0-9a-f]{48}$/);
  });

  it.each([
    ['its annotation', image({}, { annotations: { [classAnnotation]: 'fast' } }), 'fast'],
    ['its field', image({ targetStorageClassName: 'fast' }), 'fast'],
    ['the default of the cluster', image(), 'standard'],
  ])('its storage class from %s, in both places (defaults/one-storage-class)', async (_where, object, name) => {
    expect(await mutate({ object })).toMatchObject(settled(name));
  });

  it('no storage class when the cluster has no default (defaults/one-storage-class)', async () => {
    const { spec, metadata } = await mutate({ object: image() }, clusterOf(aClass('fast')));
    expect([spec?.['targetStorageClassName'], metadata['annotations']]).toEqual([undefined, undefined]);
  });

  it('no third storage class when it names two different ones, which validation rejects (defaults/one-storage-class)', async () => {
    const object = image({ targetStorageClassName: 'a' }, { annotations: { [classAnnotation]: 'b' } });
    expect(await mutate({ object })).toMatchObject({
      metadata: { annotations: { [classAnnotation]: 'b' } },
      spec: { targetStorageClassName: 'a' },
    });
  });

  it('its storage class back when a client applies a manifest without it (defaults/one-storage-class)', async () => {
    const oldObject = image({ targetStorageClassName: 'fast' }, { annotations: { [classAnnotation]: 'fast' } });
    expect(await mutate({ object: image({ description: 'new' }), oldObject })).toMatchObject(settled('fast'));
  });

  it('no storage class on update when it had none before (defaults/one-storage-class)', async () => {
    const { spec } = await mutate({ object: image({ description: 'new' }), oldObject: image() });
    expect(spec).not.toHaveProperty('targetStorageClassName');
  });
});

describe('no default is set', () => {
  const patchOf = async (asked: Asked): Promise<string | undefined> =>
    (await ask(createApp({ kube: cluster, log: silentLogger }), '/mutate', asked)).patch;

  it.each([
    ['a HyperCloud image, which leaves nothing open', { object: aHyperCloudImage() }],
    ['an object that the CRD will reject', { object: aHarvesterImage({ displayName: 5 }) }],
    ['an object on its way out', { object: aHarvesterImage({}, { deletionTimestamp: '2026-01-01T00:00:00Z' }) }],
    ['status', { object: aHarvesterImage(), oldObject: aHarvesterImage({ retry: 4 }), subResource: 'status' }],
    [
      'an update of neither spec nor labels',
      { object: aHarvesterImage({}, { finalizers: ['x'] }), oldObject: aHarvesterImage() },
    ],
    [
      'an object of another kind',
      { object: { ...aHyperCloudImage(), apiVersion: 'v1', kind: 'PersistentVolumeClaim' } },
    ],
  ] as const)('in %s', async (_what, asked) => {
    expect(await patchOf(asked)).toBeUndefined();
  });
});

describe('for any request', () => {
  const displayName = fc.string({ minLength: 1, maxLength: 80 });
  const names = fc.constantFrom('fast', 'standard', '');
  const drafts = fc
    .record(
      {
        displayName,
        annotation: names,
        target: names,
        retry: fc.integer({ min: 0, max: 10 }),
        checksum: fc.constantFrom('', `sha256:${'a'.repeat(64)}`),
        labels: fc.dictionary(fc.constantFrom(nameLabel, 'mine'), fc.string()),
      },
      { requiredKeys: [] },
    )
    .map(({ annotation, target, labels, ...spec }) =>
      aHarvesterImage(
        { ...spec, ...(target === undefined ? {} : { targetStorageClassName: target }) },
        {
          ...(annotation === undefined ? {} : { annotations: { [classAnnotation]: annotation } }),
          ...(labels === undefined ? {} : { labels }),
        },
      ),
    );

  it('mutation is idempotent', async () => {
    await fc.assert(
      fc.asyncProperty(drafts, async (object) => {
        const once = await mutate({ object });
        expect(await mutate({ object: once })).toEqual(once);
      }),
    );
  });

  it('an image that is valid without the defaults is valid with them', async () => {
    const app = createValidate({ kube: cluster, log: silentLogger });
    await fc.assert(
      fc.asyncProperty(drafts, async (object) => {
        const plain = await ask(app, '/validate', { object });
        const filled = await ask(app, '/validate', { object: await mutate({ object }) });
        expect(filled.allowed).toBe(plain.allowed);
      }),
    );
  });
});
