// Permissions for content of other namespaces: checked for the author, before any information about it is returned.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp } from '#functions/validate/app.ts';
import { annotations, ownAccountPrefix } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import {
  type Asked,
  type Draft,
  aHarvesterImage,
  ask,
  clusterOf,
  patched,
  rightOf,
  withAccess,
} from '#test/support/admission.ts';

const dataVolume = (spec: Record<string, unknown>, metadata: Record<string, unknown> = {}): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name: 'disk', namespace: 'tenant', ...metadata },
  spec: { storage: {}, ...spec },
});
const dataSource = (source: object, status?: object): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataSource',
  metadata: { name: 'fedora', namespace: 'golden' },
  spec: { source } as Record<string, unknown>,
  ...(status === undefined ? {} : { status: status as Record<string, unknown> }),
});
const claimSource = { source: { pvc: { namespace: 'golden', name: 'fedora' } } };
const snapshotSource = { source: { snapshot: { namespace: 'golden', name: 'fedora' } } };
const reference = { sourceRef: { kind: 'DataSource', namespace: 'golden', name: 'fedora' } };
const clone = 'create datavolumes/source golden/*';
const exported = (metadata: Record<string, unknown> = {}) =>
  aHarvesterImage(
    { sourceType: 'export-from-volume', url: undefined, pvcNamespace: 'golden', pvcName: 'fedora' },
    metadata,
  );
const cloned = aHarvesterImage({
  sourceType: 'clone',
  url: undefined,
  securityParameters: { cryptoOperation: 'encrypt', sourceImageNamespace: 'golden', sourceImageName: 'fedora' },
});

const having = (rights: readonly string[], ...objects: readonly Draft[]) =>
  withAccess(clusterOf(...objects), (question) => question.user === 'jane' && rights.includes(rightOf(question)));

const admit = async (asked: Asked, kube: KubeClient) => {
  const deps = { kube, log: silentLogger };
  const object = patched(asked.object!, await ask(createMutate(deps), '/mutate', asked));
  return { object, answer: await ask(createApp(deps), '/validate', { ...asked, object }) };
};
const grantsOf = ({ metadata }: Draft): unknown => {
  const text = (metadata['annotations'] as Record<string, string> | undefined)?.[annotations.granted];
  return text === undefined ? undefined : JSON.parse(text);
};

describe('an author who may not', () => {
  it.each<[what: string, object: Draft, field: string]>([
    ['clone a claim', dataVolume(claimSource), 'spec.source.pvc'],
    ['restore a snapshot', dataVolume(snapshotSource), 'spec.source.snapshot'],
    ['use what a DataSource leads to', dataVolume(reference), 'spec.sourceRef'],
    ['export a claim (harvester/claim-allowed)', exported(), 'spec.pvcName'],
    ['use an image (harvester/source-image-allowed)', cloned, 'spec.securityParameters.sourceImageName'],
  ])('%s learns nothing but that', async (_what, object, field) => {
    const { answer } = await admit({ object }, having([], dataSource({ pvc: { name: 'secret-claim' } })));
    expect(answer).toMatchObject({ allowed: false, status: { code: 403, reason: 'Forbidden' } });
    expect(answer.status?.details?.causes).toEqual([
      { reason: 'FieldValueForbidden', field, message: expect.stringContaining('user jane is not allowed to') },
    ]);
    expect(JSON.stringify(answer)).not.toContain('secret');
  });

  it('gets the same message whether or not the source exists', async () => {
    const there = await admit({ object: dataVolume(claimSource) }, having([], dataSource({ pvc: { name: 'fedora' } })));
    const missing = await admit({ object: dataVolume(claimSource) }, having([]));
    expect(there.answer).toEqual(missing.answer);
  });
});

describe('an author who may', () => {
  const grant = (use: string, name = '*') => ({ use, namespace: 'golden', name });
  it.each<
    [what: string, object: Draft, rights: readonly string[], grants: readonly object[], objects: readonly Draft[]]
  >([
    ['export a claim', exported(), ['get persistentvolumeclaims golden/fedora'], [grant('export-claim', 'fedora')], []],
    ['use an image', cloned, ['get virtualmachineimages golden/*'], [grant('use-image')], []],
    ['clone a claim', dataVolume(claimSource), [clone], [grant('clone-claim')], []],
    [
      'clone one claim',
      dataVolume(claimSource),
      ['create datavolumes/source golden/fedora'],
      [grant('clone-claim', 'fedora')],
      [],
    ],
    ['restore a snapshot', dataVolume(snapshotSource), [clone], [grant('clone-snapshot')], []],
    [
      'use a DataSource that is not there yet',
      dataVolume(reference),
      [clone],
      [grant('clone-claim'), grant('clone-snapshot')],
      [],
    ],
    [
      'use a DataSource, whatever its format is later',
      dataVolume(reference),
      [clone],
      [grant('clone-snapshot'), grant('clone-claim')],
      [dataSource({ snapshot: { name: 'fedora-1' } })],
    ],
    [
      'use one thing that a DataSource leads to, and no other later',
      dataVolume(reference),
      ['create datavolumes/source golden/fedora-1'],
      [grant('clone-claim', 'fedora-1')],
      [dataSource({ pvc: { name: 'old' } }, { source: { pvc: { name: 'fedora-1' } } })],
    ],
  ])('%s gets a grant recorded', async (_what, object, rights, ...[grants, objects]) => {
    const { object: stored, answer } = await admit({ object }, having(rights, ...objects));
    expect(grantsOf(stored)).toEqual(grants);
    expect(answer.status?.code).not.toBe(403);
  });

  it('needs no permission in its own namespace, for the kinds of CDI', async () => {
    const kube = having([]);
    const { object, answer } = await admit(
      { object: dataVolume({ source: { pvc: { namespace: 'tenant', name: 'a' } } }) },
      kube,
    );
    expect([answer.allowed, grantsOf(object), kube.questions]).toEqual([true, undefined, []]);
  });

  it('is checked against what a DataSource refers to, in whatever namespace that is', async () => {
    const elsewhere = dataSource({ pvc: { namespace: 'vault', name: 'x' } });
    const { answer } = await admit({ object: dataVolume(reference) }, having([clone], elsewhere));
    expect(answer.status?.code).toBe(403);
  });

  it('adopts a claim that is already populated, and clones nothing', async () => {
    const object = dataVolume(claimSource, { annotations: { 'cdi.kubevirt.io/storage.prePopulated': 'disk' } });
    const { object: stored } = await admit({ object }, having([]));
    expect(grantsOf(stored)).toBeUndefined();
  });
});

describe('Secrets that the class of an image refers to', () => {
  const stage = (name: string, namespace: string, prefix = 'node-publish') => ({
    [`csi.storage.k8s.io/${prefix}-secret-name`]: name,
    [`csi.storage.k8s.io/${prefix}-secret-namespace`]: namespace,
  });
  const imageWith = (storageClassParameters: Record<string, string>, spec: Record<string, unknown> = {}) =>
    aHarvesterImage({ backend: 'backingimage', storageClassParameters, ...spec }, { namespace: 'tenant' });
  const stagesOfDrivers = ['provisioner', 'node-stage', 'node-publish', 'node-expand'];
  const longhorn: Draft = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'vault' },
    provisioner: 'driver.longhorn.io',
    parameters: { encrypted: 'true', ...stage('key', 'bank') },
  };

  it('of another namespace are rejected by name for every stage, whatever the author may do', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.subarray(stagesOfDrivers, { minLength: 1 }),
        fc.constantFrom('key', '${pvc.name}', "${pvc.annotations['key']}", '${pv.name}'),
        fc.constantFrom('bank', 'ba${pvc.namespace}', '${pv.name}', 'kube-system'),
        async (stages, name, namespace) => {
          const object = imageWith(Object.assign({}, ...stages.map((one) => stage(name, namespace, one))));
          const { answer } = await admit({ object }, having([]));
          expect(answer.status?.code).toBe(403);
          expect(answer.status?.details?.causes?.[0]).toMatchObject({
            field: `spec.storageClassParameters[csi.storage.k8s.io/${stages[0]}-secret-name]`,
            message: expect.stringContaining('is not allowed to use the Secret') as string,
          });
        },
      ),
    );
  });

  it.each<[what: string, parameters: Record<string, string>, rights: readonly string[], grants: unknown]>([
    ['of its own namespace', stage('key', 'tenant'), [], undefined],
    ['of the namespace of each claim', stage('${pvc.name}', '${pvc.namespace}'), [], undefined],
    ['that its author may read', stage('key', 'bank'), ['get secrets bank/key'], [['bank', 'key']]],
    ['if its author may read all of them', stage('${pvc.name}', 'bank'), ['get secrets bank/*'], [['bank', '*']]],
    ['that are half named', { 'csi.storage.k8s.io/node-publish-secret-name': 'key' }, [], undefined],
  ])('%s are accepted', async (_what, parameters, rights, grants) => {
    const { object, answer } = await admit({ object: imageWith(parameters) }, having(rights));
    expect(answer).toMatchObject({ allowed: true });
    const written = (grantsOf(object) as { use: string; namespace: string; name: string }[] | undefined)?.map(
      ({ namespace, name }) => [namespace, name],
    );
    expect(written).toEqual(grants);
  });

  it('are rejected when the name is a template, even if the author may read one of them', async () => {
    const object = imageWith(stage('${pvc.name}', 'bank'));
    expect((await admit({ object }, having(['get secrets bank/key']))).answer.status?.code).toBe(403);
  });

  it('include those of the class that it is derived from', async () => {
    const object = imageWith({}, { targetStorageClassName: 'vault' });
    const on = (...rights: string[]) =>
      withAccess(clusterOf(longhorn), (question) => rights.includes(rightOf(question)));
    expect((await admit({ object }, on())).answer.status?.message).toContain('bank/key');
    expect((await admit({ object }, on('get secrets bank/key'))).answer.allowed).toBe(true);
  });

  it.each(['controller-publish', 'controller-expand', 'anything-else'])(
    'for %s, which no class of an image has, are rejected when mutation was bypassed',
    async (prefix) => {
      const object = imageWith({ numberOfReplicas: '1', ...stage('key', 'bank', prefix) });
      const deps = { kube: having([]), log: silentLogger };
      expect((await ask(createApp(deps), '/validate', { object })).status?.code).toBe(403);
    },
  );
});

describe('the backup that an image is restored from', () => {
  const nfs = { type: 'nfs', server: 'nas', path: '/backups', key: 'of/others' };
  const mark = JSON.stringify({ from: nfs, target: 'nfs://nas:/backups', object: 'o', uid: 'u' });
  const image = (text?: string) =>
    aHarvesterImage({}, text === undefined ? {} : { annotations: { [annotations.restore]: text } });
  const answerTo = (asked: Asked) => ask(createApp({ kube: having([]), log: silentLogger }), '/validate', asked);

  it.each<[what: string, asked: Asked]>([
    ['at its creation', { object: image(mark) }],
    ['later', { object: image(mark), oldObject: image() }],
    ['in place of another', { object: image(mark), oldObject: image(mark.replace('others', 'mine')) }],
  ])('cannot be set by its author %s', async (_, asked) => {
    expect(await answerTo(asked)).toMatchObject({
      allowed: false,
      status: { code: 403, message: expect.stringContaining('may be set only by backup-metadata') as string },
    });
  });

  it.each<[what: string, asked: Asked]>([
    [
      'stays',
      { object: { ...image(mark), metadata: { ...image(mark).metadata, labels: { a: 'b' } } }, oldObject: image(mark) },
    ],
    ['may be set by backup-metadata', { object: image(mark), username: `${ownAccountPrefix}backup-metadata` }],
  ])('%s', async (_, asked) => {
    expect((await answerTo(asked)).allowed).toBe(true);
  });
});

describe('a grant', () => {
  const forged = { annotations: { [annotations.granted]: '[{"use":"clone-claim","namespace":"golden","name":"*"}]' } };

  it('that was written by hand is removed by mutate', async () => {
    const { object } = await admit({ object: dataVolume({ source: { blank: {} } }, forged) }, having([]));
    expect(grantsOf(object)).toBeUndefined();
  });

  it.each<[what: string, object: Draft, kube: KubeClient]>([
    ['manually', dataVolume({ source: { blank: {} } }, forged), having([])],
    ['for a source that is not granted', dataVolume(claimSource, forged), having([])],
    ['for more than is granted', dataVolume(claimSource, forged), having(['create datavolumes/source golden/fedora'])],
  ])('that was written %s is rejected when mutate was bypassed', async (_what, object, kube) => {
    const answer = await ask(createApp({ kube, log: silentLogger }), '/validate', { object });
    expect(answer).toMatchObject({ allowed: false, status: { code: 403 } });
  });

  it('that mutate could not determine leads to a rejection by the failure policy, and the next request may succeed', async () => {
    const kube = having([clone]);
    const asked = ask(createApp({ kube, log: silentLogger }), '/validate', { object: dataVolume(claimSource) });
    await expect(asked).rejects.toThrow(/HTTP 500.*try again/);
  });

  it('is kept on update, however the object is written, without an access review', async () => {
    const kube = having([]);
    const oldObject = dataVolume(claimSource, forged);
    const { object, answer } = await admit(
      { object: dataVolume(claimSource, { labels: { a: 'b' } }), oldObject },
      kube,
    );
    expect([grantsOf(object), answer.allowed, kube.questions]).toEqual([grantsOf(oldObject), true, []]);
    const past = await ask(createApp({ kube, log: silentLogger }), '/validate', {
      object: dataVolume(claimSource, forged),
      oldObject: dataVolume(claimSource),
    });
    expect(past).toMatchObject({ allowed: false, status: { code: 403 } });
  });

  it('is set by functions of Bullion for the users they act for', async () => {
    const username = 'system:serviceaccount:bullion-system:initialize';
    const kube = having([]);
    const { object, answer } = await admit({ object: dataVolume(claimSource, forged), username }, kube);
    expect([grantsOf(object), answer.status?.code === 403, kube.questions]).toEqual([
      grantsOf(dataVolume({}, forged)),
      false,
      [],
    ]);
  });
});
