// What `bullion doctor` finds, each fault alone in an installation that is otherwise sound.
import { describe, expect, it } from 'vitest';
import { doctorCommand } from '#cli/commands/doctor.ts';
import { exitCodes } from '#cli/command.ts';
import { type Installation, type KnativeObject, observeInstallation, troubleOf } from '#cli/doctor/observe.ts';
import { judgeInstallation } from '#cli/doctor/judge.ts';
import type { Deployment, WebhookConfiguration } from '#shared/api/foreign/kubernetes.ts';
import { type StorageClass, storageClasses } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshotClass } from '#shared/api/foreign/snapshot.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { imageTypes } from '#shared/catalogue/image.ts';
import { type Read, findAny } from '#shared/catalogue/objects.ts';
import { aHyperCloudImage, testTime } from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { runCommand } from '#test/support/command.ts';

const read = <T>(...items: readonly T[]): Read<T> => ({ is: 'read', items });
const denied = { is: 'denied', message: 'forbidden' } as const;

const webhook = (clientConfig: object): WebhookConfiguration => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'bullion' },
  webhooks: [{ name: 'images.validate.bullion.dev', clientConfig }],
});
const knative = (kind: string, name: string, status: string, message?: string): KnativeObject => ({
  apiVersion: 'eventing.knative.dev/v1',
  kind,
  metadata: { name, namespace: 'bullion-system' },
  status: { conditions: [{ type: 'Ready', status: status as 'True', message }] },
});
const deployment = (readyReplicas: number, replicas = 1): Deployment => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'validate', namespace: 'bullion-system' },
  spec: { replicas },
  status: { readyReplicas },
});
const storageClass = (annotations: Readonly<Record<string, string>> = {}): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'fast', annotations },
  provisioner: 'csi.example.com',
});
const isDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' };
const snapshotClass = { metadata: { name: 'fast' }, driver: 'csi.example.com' } as VolumeSnapshotClass;

const sound: Installation = {
  kinds: servedKinds.map(({ type }) => ({ type, troubles: read(), count: 1 })),
  mutating: read(webhook({ caBundle: 'ca' })),
  validating: read(webhook({ caBundle: 'ca' })),
  deployments: read(deployment(1), deployment(0, 0)),
  knative: [
    { kind: 'Service', objects: read(knative('Service', 'initialize', 'True')) },
    { kind: 'Broker', objects: read(knative('Broker', 'default', 'True')) },
  ],
  classes: read(storageClass(isDefault)),
  snapshotClasses: read(snapshotClass),
  configFaults: read(),
};
const [first] = sound.kinds;
const withKind = (over: Partial<Installation['kinds'][number]>): Partial<Installation> => ({
  kinds: [{ ...first!, ...over }, ...sound.kinds.slice(1)],
});
const notGood = (over: Partial<Installation>) =>
  judgeInstallation({ ...sound, ...over }).filter(({ is }) => is !== 'good');

describe('an installation', () => {
  it('is good in every part', () => {
    expect(notGood({})).toEqual([]);
  });

  it.each<[string, Partial<Installation>, object]>([
    [
      'lacks a kind',
      withKind({ troubles: { is: 'missing' } }),
      { is: 'problem', about: 'kinds', message: `not served: ${first!.type.kind}` },
    ],
    [
      'has no webhook',
      { validating: read() },
      { is: 'problem', about: 'validation', message: expect.stringMatching(/^not registered: /) },
    ],
    [
      'has a webhook without a certificate authority',
      { mutating: read(webhook({})) },
      { is: 'problem', about: 'mutation', remedy: expect.stringMatching(/cert-manager/) },
    ],
    [
      'has no Knative',
      { knative: [{ kind: 'Broker', objects: { is: 'missing' } }] },
      { is: 'problem', about: 'functions', message: expect.stringMatching(/does not serve Broker$/) },
    ],
    [
      'has a Broker that is not ready',
      { knative: [{ kind: 'Broker', objects: read(knative('Broker', 'default', 'False', 'no channel')) }] },
      { is: 'problem', about: 'functions', message: 'Broker default is not ready: no channel' },
    ],
    [
      'has a limit on transfers that cannot be read',
      { configFaults: read({ configMap: 'transfer-queue', message: 'running is "0"' }) },
      { is: 'warning', about: 'queue', remedy: 'kubectl edit configmap transfer-queue -n bullion-system' },
    ],
    [
      'has rules of registries that cannot be read',
      { configFaults: read({ configMap: 'registries', message: 'registries.conf is not valid' }) },
      { is: 'problem', about: 'registries', remedy: 'kubectl edit configmap registries -n bullion-system' },
    ],
    [
      'has a Deployment without a ready pod',
      { deployments: read(deployment(0)) },
      { is: 'problem', about: 'functions', message: 'Deployment validate is not ready: no pod of it is ready' },
    ],
    [
      'has nothing in its namespace',
      { deployments: read(), knative: [] },
      { is: 'problem', about: 'functions', message: 'none in namespace bullion-system' },
    ],
    ['has no StorageClass', { classes: read() }, { is: 'problem', about: 'storage' }],
    [
      'has no default StorageClass',
      { classes: read(storageClass()) },
      { is: 'warning', about: 'storage', message: expect.stringMatching(/^no StorageClass is the default/) },
    ],
    [
      'has a class without snapshots',
      { snapshotClasses: { is: 'missing' } },
      { is: 'warning', about: 'storage', message: expect.stringMatching(/fast \(csi\.example\.com\)/) },
    ],
    [
      'has failed objects',
      withKind({ troubles: read({ is: 'failed', object: 'datavolume/a -n ns', message: 'no such host' }) }),
      {
        is: 'warning',
        about: 'objects',
        message: expect.stringMatching(/^1 of \d+ failed:\n {2}datavolume\/a -n ns: no such host$/),
      },
    ],
    [
      'has objects that no function looks at',
      withKind({ troubles: read({ is: 'unobserved', object: 'datavolume/a -n ns', message: 'waits' }) }),
      { is: 'problem', about: 'objects', remedy: expect.stringMatching(/^functions receive no events: /) },
    ],
    [
      'has classes that may not be read',
      { classes: denied },
      { is: 'unknown', about: 'storage', message: 'you may not list storage classes' },
    ],
  ])('%s', (_what, over, finding) => {
    expect(notGood(over)).toEqual([expect.objectContaining(finding)]);
  });

  it('has kinds that may not be listed', () => {
    expect(notGood(withKind({ troubles: denied }))).toEqual([
      { is: 'unknown', about: 'kinds', message: `you may list ${servedKinds.length - 1} of ${servedKinds.length}` },
      expect.objectContaining({ is: 'unknown', about: 'objects' }),
    ]);
  });

  it('runs in one process where the API server calls webhooks by URL', () => {
    const laptop = { validating: read(webhook({ url: 'https://127.0.0.1:1', caBundle: 'ca' })), knative: [] };
    expect(notGood({ ...laptop, deployments: read() })).toEqual([]);
  });
});

const minutesAgo = (minutes: number) => new Date(testTime - minutes * 60_000).toISOString();

describe('an object', () => {
  it.each<[string, object, object, string | undefined]>([
    ['that was just created', { creationTimestamp: minutesAgo(2) }, {}, undefined],
    ['without a status after minutes', { creationTimestamp: minutesAgo(4) }, {}, 'unobserved'],
    ['that is being deleted', { deletionTimestamp: minutesAgo(9) }, {}, undefined],
    ['whose deletion does not end', { deletionTimestamp: minutesAgo(11), finalizers: ['a/b'] }, {}, 'deleting'],
    ['that failed', {}, { status: { phase: 'Failed' } }, 'failed'],
    ['that is degraded', {}, { status: { conditions: [{ type: 'Degraded', status: 'True' }] } }, 'failed'],
    ['that is on its way', { creationTimestamp: minutesAgo(90) }, { status: { phase: 'Downloading' } }, undefined],
  ])('%s', (_what, metadata, rest, is) => {
    const image = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a', namespace: 'ns', ...metadata }, ...rest };
    expect(troubleOf({ type: imageTypes.hypercloud, image }, testTime)?.is).toBe(is);
  });
});

describe('bullion doctor', () => {
  it('reads everything, changes nothing, and fails where something does not work', async () => {
    const kube = createMemoryKube();
    kube.seed(storageClasses, storageClass(isDefault) as never);
    const failed = aHyperCloudImage({ metadata: { namespace: 'ns', name: 'broken' } });
    kube.seed(hyperCloudImageKind.type, { ...failed, status: { phase: 'Failed' } } as never);
    const { code, out } = await runCommand(doctorCommand, { kube, now: new Date(testTime) });
    expect(code).toBe(exitCodes.failed);
    expect(out).toContain('PROBLEM  validation');
    expect(out).toMatch(/warning +objects +1 of 1 failed:\n +hypercloud\/broken -n ns: failed\n +To do: bullion why/);
    expect(kube.calls.filter(({ verb }) => !['list', 'get'].includes(verb))).toEqual([]);
    // What it names is what `bullion why` takes.
    expect((await findAny(kube, 'ns', 'hypercloud/broken')).image.metadata.name).toBe('broken');
    const there = await observeInstallation(kube, { namespace: 'elsewhere', now: testTime });
    expect(there.kinds.every(({ count }) => count === 0)).toBe(true);
  });
});
