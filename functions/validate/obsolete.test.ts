// Disks of versions that are at their end: each way to name one, as the API server asks about it.
import { describe, expect, it } from 'vitest';
import { createApp } from '#functions/validate/app.ts';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import {
  type Asked,
  type Draft,
  type Loose,
  ask,
  clusterOf,
  patched,
  rightOf,
  withAccess,
} from '#test/support/admission.ts';
import { aPolicy } from '#test/support/policy-rows.ts';
import { claim as claimOfImage, image, imageClass } from '#test/support/row-objects.ts';

const golden = 'golden';
const reason = 'support has ended';
const mark = (state: string, over: Loose = {}): Loose => ({
  'bullion.dev/deprecation': JSON.stringify({
    policy: 'fedora',
    version: 'fedora-1',
    state,
    since: '2026-01-01T00:00:00Z',
    message: reason,
    replacement: 'fedora-next',
    by: 'jane',
    ...over,
  }),
});

const named = (apiVersion: string, kind: string, name: string, annotations: Loose, spec: Loose): Draft => ({
  apiVersion,
  kind,
  metadata: { name, namespace: golden, annotations },
  spec,
});
const cdi = 'cdi.kubevirt.io/v1beta1';
const volume = (annotations: Loose): Draft => named('v1', 'PersistentVolumeClaim', 'fedora-1', annotations, {});
const snapshot = (annotations: Loose): Draft =>
  named('snapshot.storage.k8s.io/v1', 'VolumeSnapshot', 'fedora-1', annotations, {});
const source = (name: string, to: Loose, annotations: Loose = {}): Draft =>
  named(cdi, 'DataSource', name, annotations, { source: to });
const policy = aPolicy({}, { namespace: golden });

/** A cluster where the version, or only the DataSource, is marked. */
const clusterWith = (annotations: Loose, onSource: Loose = annotations): readonly Draft[] => [
  policy,
  volume(annotations),
  snapshot(annotations),
  source('fedora', { pvc: { namespace: golden, name: 'fedora-1' } }, onSource),
  source('theirs', { pvc: { namespace: golden, name: 'fedora-1' } }),
  source('pointer', { dataSource: { name: 'fedora' } }),
];

const storage = { resources: { requests: { storage: '1Gi' } } };
const dataVolume = (spec: Loose, namespace = golden): Draft => ({
  apiVersion: cdi,
  kind: 'DataVolume',
  metadata: { name: 'disk', namespace },
  spec: { storage, ...spec },
});
const ofSource = (name: string, namespace?: string): Draft =>
  dataVolume({ sourceRef: { kind: 'DataSource', name, namespace: golden } }, namespace);
const claim = (spec: Loose): Draft => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'disk', namespace: golden },
  spec: { accessModes: ['ReadWriteOnce'], ...storage, ...spec },
});
const restored = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'fedora-1' };
const machine = (...templates: readonly Loose[]): Draft => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'web', namespace: golden },
  spec: { dataVolumeTemplates: templates, template: { spec: { volumes: [] } } },
});
const template = { metadata: { name: 'root' }, spec: { storage, sourceRef: { kind: 'DataSource', name: 'fedora' } } };

const ways: Readonly<Record<string, Draft>> = {
  'a DataVolume of the DataSource': ofSource('fedora'),
  'a DataVolume of another DataSource to the version': ofSource('theirs'),
  'a DataVolume of a DataSource to the DataSource': ofSource('pointer'),
  'a DataVolume of the volume': dataVolume({ source: { pvc: { namespace: golden, name: 'fedora-1' } } }),
  'a DataVolume of the snapshot': dataVolume({ source: { snapshot: { namespace: golden, name: 'fedora-1' } } }),
  'a claim of the snapshot': claim({ dataSource: restored }),
  'a claim of the snapshot by reference': claim({ dataSourceRef: restored }),
  'a claim of the volume': claim({ dataSource: { kind: 'PersistentVolumeClaim', name: 'fedora-1' } }),
  'a template of a machine': machine(template),
};

const review = async (asked: Asked, given: readonly Draft[], mayDo: (right: string) => boolean = () => true) => {
  const kube = withAccess(clusterOf(...given), (question) => mayDo(rightOf(question)));
  const deps = { kube, log: silentLogger };
  const object = patched(asked.object!, await ask(createMutate(deps), '/mutate', asked));
  return ask(createApp(deps), '/validate', { ...asked, object });
};

const forced = (draft: Draft): Draft => {
  const annotations = { 'bullion.dev/allow-obsolete': 'true' };
  if (draft.kind !== 'VirtualMachine') return { ...draft, metadata: { ...draft.metadata, annotations } };
  return machine({ ...template, metadata: { ...template.metadata, annotations } });
};

describe.each(Object.entries(ways))('%s', (_what, object) => {
  it('is made without a word from a version that is good', async () => {
    const answer = await review({ object }, clusterWith({}));
    expect([answer.allowed, answer.warnings ?? []]).toEqual([true, []]);
  });

  it('is made with a warning from a deprecated version', async () => {
    const { allowed, warnings = [] } = await review({ object }, clusterWith(mark('Deprecated')));
    expect(allowed).toBe(true);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^fedora-1 of GoldenImagePolicy golden\/fedora is deprecated since \S+, by jane: support has ended; use DataSource fedora-next/,
      ),
    ]);
  });

  it('is refused from an obsolete version, unless somebody insists', async () => {
    const given = clusterWith(mark('Obsolete'));
    const answer = await review({ object }, given);
    expect([answer.allowed, answer.status?.message]).toEqual([
      false,
      expect.stringMatching(
        /is obsolete .* by jane: support has ended; use DataSource fedora-next.*allow-obsolete=true/,
      ),
    ]);
    const insisted = await review({ object: forced(object) }, given);
    expect([insisted.allowed, insisted.warnings?.length]).toEqual([true, 1]);
  });

  it('is made by Bullion itself whatever the version is', async () => {
    const username = 'system:serviceaccount:bullion-system:initialize';
    expect(await review({ object, username }, clusterWith(mark('Obsolete')))).toMatchObject({ allowed: true });
  });

  it('is made from what a policy left behind that is gone', async () => {
    const given = clusterWith(mark('Obsolete')).filter((one) => one !== policy);
    expect(await review({ object }, given)).toMatchObject({ allowed: true });
  });
});

describe('a disk', () => {
  it('of a channel that is obsolete as such is refused, but not of its version', async () => {
    const given = clusterWith({}, mark('Obsolete', { version: undefined }));
    expect((await review({ object: ofSource('fedora') }, given)).status?.message).toMatch(
      /what DataSource golden\/fedora stands for of GoldenImagePolicy golden\/fedora is obsolete/,
    );
    expect(await review({ object: ofSource('theirs') }, given)).toMatchObject({ allowed: true });
  });

  it('of a DataSource that is no channel any more is judged by its version', async () => {
    const given = clusterWith({}, mark('Obsolete')).map((one) =>
      one === policy ? aPolicy({ channels: [{ name: 'edge', dataSource: 'edge' }] }, { namespace: golden }) : one,
    );
    expect(await review({ object: ofSource('fedora') }, given)).toMatchObject({ allowed: true });
    const bad = given.map((one) => (one.kind === 'PersistentVolumeClaim' ? volume(mark('Obsolete')) : one));
    expect(await review({ object: ofSource('fedora') }, bad)).toMatchObject({ allowed: false });
  });

  it('is not mentioned to a user who may not use its source', async () => {
    const given = clusterWith(mark('Obsolete'));
    const { allowed, status, warnings } = await review({ object: ofSource('fedora', 'tenant') }, given, () => false);
    expect(allowed).toBe(false);
    expect(JSON.stringify([status, warnings])).not.toMatch(/obsolete|fedora-1|support has ended/);
  });

  it('that is refused by other rules gets their faults, deprecated or not', async () => {
    const object = { ...ofSource('fedora'), spec: { sourceRef: { kind: 'DataSource', name: 'fedora' } } };
    expect((await review({ object }, clusterWith(mark('Deprecated')))).status?.message).toMatch(/spec\.storage/);
  });

  it('is judged once: templates that a machine had before are not', async () => {
    const given = clusterWith(mark('Obsolete'));
    const object = { ...machine(template), metadata: { ...machine().metadata, labels: { a: 'b' } } };
    const before = { oldObject: machine(template) };
    expect(await review({ object, ...before }, given)).toMatchObject({ allowed: true });
    const more = machine(template, { ...template, metadata: { name: 'data' } });
    expect((await review({ object: more, ...before }, given)).status?.message).toMatch(/dataVolumeTemplates\[1\]/);
  });
});

describe('an image that no policy has', () => {
  const marked = (state: string): Draft => ({
    ...image,
    metadata: {
      ...image.metadata,
      annotations: { 'bullion.dev/deprecation': JSON.stringify({ state, message: 'too old', replacement: 'noble' }) },
    },
  });
  const says = (state: string): string => `image default/ubuntu is ${state}: too old; use image noble instead`;
  const ofImage = (kind: string, spec: Loose): Draft => ({
    apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
    kind,
    metadata: { name: 'disk', namespace: 'default' },
    spec,
  });
  const disks: readonly (readonly [string, Draft])[] = [
    ['a claim of its class', claimOfImage({ name: 'disk' }, { storageClassName: 'lh-uid-1' })],
    [
      'a claim made from its volume',
      claimOfImage({ name: 'disk' }, { dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'ubuntu-image-pvc' } }),
    ],
    ['a HyperCloud volume', ofImage('VirtualMachineVolume', { virtualMachineImage: { name: 'ubuntu' } })],
    ['its form in the design', ofImage('VirtualMachinePvc', { virtualMachineImageName: 'ubuntu' })],
  ];

  it.each(disks)('warns who makes %s, and refuses it once it is obsolete', async (_, object) => {
    const given = (state: string) => [marked(state), imageClass, claimOfImage()];
    const warned = await review({ object }, given('Deprecated'));
    expect(warned.warnings).toEqual([says('deprecated')]);
    const refused = await review({ object }, given('Obsolete'));
    expect([refused.allowed, refused.status?.message]).toEqual([false, expect.stringContaining(says('obsolete'))]);
    expect((await review({ object: forced(object) }, given('Obsolete'))).status?.message ?? '').not.toContain(
      'obsolete',
    );
  });
});
