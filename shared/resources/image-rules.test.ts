import { describe, expect, it } from 'vitest';
import type { KubeObject } from '#shared/api/object.ts';
import type { Backend, Image } from '#shared/backends/backend.ts';
import { type BackendRegistry, backends } from '#shared/backends/registry.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import { imageRules } from '#shared/resources/image-rules.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import { aHarvesterImage, clusterOf } from '#test/support/admission.ts';

const fault = (message: string): Fault => ({ field: 'spec.x', message });

/** The csi backend, with something else in it. */
const registryWith = (change: Partial<Backend>): BackendRegistry => {
  const { csi } = backends as BackendRegistry;
  if (csi?.served !== true) throw new Error('csi is served');
  return { ...backends, csi: { served: true, backend: { ...csi.backend, ...change } } };
};

const imageOf = (spec: Record<string, unknown> = {}): Image =>
  harvesterImages.toImage(aHarvesterImage(spec) as unknown as Parameters<typeof harvesterImages.toImage>[0]);

interface Asked {
  readonly registry?: BackendRegistry;
  readonly image?: Image;
  readonly resourceBefore?: Image;
}

const askRule = async (id: string, { registry = backends, image = imageOf(), resourceBefore }: Asked) => {
  const rule = imageRules(registry, { backend: 'spec.backend', source: 'spec.sourceType' }).find((it) => it.id === id);
  const object = aHarvesterImage() as unknown as KubeObject;
  return rule!.check({ object, resource: image, before: undefined, resourceBefore, kube: clusterOf() });
};

const validator = {
  create: () => [fault('created')],
  update: ({ displayName }: Image, after: Image) => (displayName === after.displayName ? [] : [fault('updated')]),
  delete: () => [],
};
const strict = registryWith({ validator });

describe('rules of every image kind', () => {
  it.each([
    ['spec', { image: { ...imageOf(), faults: [fault('wrong')] } }, 'wrong'],
    ['backend-served', { image: imageOf({ backend: 'tape' }) }, 'write one of backingimage, cdi, csi'],
    [
      'backend-source',
      { registry: registryWith({ capabilities: { sources: [] } }) },
      'backend "csi" cannot take a http source',
    ],
    ['backend-create', { registry: strict }, 'created'],
    ['backend-update', { registry: strict, resourceBefore: imageOf({ displayName: 'other' }) }, 'updated'],
  ] as const)('%s accepts served values, and reports the error in others', async (id, denied, message) => {
    expect(await askRule(id, {})).toEqual([]);
    expect(await askRule(id, denied)).toEqual([expect.objectContaining({ message: expect.stringContaining(message) })]);
  });

  it.each([
    ['cdi', undefined, undefined],
    ['cdi', 'encrypt', /cannot encrypt/],
    ['cdi', 'decrypt', /cannot decrypt/],
    ['backingimage', 'encrypt', undefined],
    ['backingimage', 'decrypt', undefined],
  ])('reject a plain copy when an encrypted one is requested: %s, %s', async (backend, cryptoOperation, says) => {
    const securityParameters = { sourceImageNamespace: 'default', sourceImageName: 'leap', cryptoOperation };
    const image = imageOf({ backend, sourceType: 'clone', url: undefined, securityParameters });
    const faults = await askRule('backend-source', { image });
    expect(faults.map(({ message }) => message).join()).toMatch(says ?? /^$/);
  });

  it('do not call a backend that is not served', async () => {
    const image = imageOf({ backend: 'tape' });
    for (const id of ['backend-source', 'backend-create', 'backend-update']) {
      expect(await askRule(id, { registry: strict, image, resourceBefore: image })).toEqual([]);
    }
  });
});
