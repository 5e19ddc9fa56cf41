// The DataVolume of an image is one that an installed CDI takes as it is: valid by its own definition, and without a field that it would drop unread. That
// definition is next to the repository during development, never in it.
import { describe, expect, it } from 'vitest';
import { type JsonSchema, pruneObject, validateObject } from '#local-cluster/api-server/schema/structural.ts';
import { type Shape, buildDataVolume } from '#shared/backends/cdi/manifests.ts';
import { aStorageClass, anImage } from '#test/support/builders.ts';
import { readUpstreamCrds } from '#test/support/shared-folder.ts';

const original = readUpstreamCrds('cdi').find(({ spec }) => spec.names.kind === 'DataVolume');
const gib = 2 ** 30;
const storageClass = aStorageClass('late', { volumeBindingMode: 'WaitForFirstConsumer' });
const inspected = { format: 'qcow2', compression: 'none', virtualSize: gib } as const;
const cloned = { is: 'ready', namespace: 'golden', name: 'leap' } as const;

describe.skipIf(original === undefined)('a DataVolume of Bullion is valid for CDI', () => {
  it.each<[what: string, image: Parameters<typeof anImage>[0], shape: Partial<Shape>]>([
    ['a download', {}, { diskBytes: gib, inspected }],
    [
      'a download with a checksum',
      { checksum: { algorithm: 'sha512', hex: 'ab'.repeat(64) } },
      { diskBytes: gib, inspected },
    ],
    ['a download from whom an administrator trusts', {}, { diskBytes: gib, bundleName: 'ca-1' }],
    ['an upload', { source: { type: 'upload' } }, { diskBytes: gib, inspected }],
    ['a claim of another namespace', { source: { type: 'export-from-volume', namespace: 'a', claimName: 'b' } }, {}],
    ['a copy of another image', { source: { type: 'clone', namespace: 'golden', imageName: 'leap' } }, { cloned }],
    [
      'a download into modes of its own',
      { storage: { className: 'late', volumeMode: 'Filesystem', accessModes: ['ReadWriteMany'] } },
      { diskBytes: gib },
    ],
  ])('when it is made for %s', (_what, image, shape) => {
    const built = buildDataVolume(anImage({ backend: 'cdi', ...image }), { storageClass, ...shape });
    const object = JSON.parse(JSON.stringify(built)) as Parameters<typeof validateObject>[1];
    const schema = original!.spec.versions.find(({ name }) => name === 'v1beta1')!.schema.openAPIV3Schema as JsonSchema;
    expect(validateObject(schema, object)).toEqual([]);
    expect(pruneObject(schema, object).unknown).toEqual([]);
  });
});
