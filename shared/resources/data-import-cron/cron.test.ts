import type { Delivery } from '#events/delivery.ts';
import type { CloudEvent } from '#events/event.ts';
import type { Send } from '#events/sender.ts';
import { createAnnouncer } from '#shared/resources/announcer.ts';
import { beforeEach, describe, expect, it } from 'vitest';
import { type DataImportCron, type DataImportCronSpec, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { kubeEvents, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import { refOf } from '#shared/api/object.ts';
import type { Observation } from '#shared/golden/poll/observation.ts';
import type { ObserveRequest } from '#shared/golden/poll/observe.ts';
import { createValidator } from '#shared/resources/admission.ts';
import { cronMetricsOf } from '#shared/resources/data-import-cron/metrics.ts';
import { pollIfDue, recordObservation } from '#shared/resources/data-import-cron/poll.ts';
import { type DriverDeps, drive } from '#shared/resources/driver.ts';
import { tick } from '#shared/resources/tick.ts';
import { aStorageClass } from '#test/support/builders.ts';
import { createTestDriver } from '#test/support/driver.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';

const namespace = 'golden-images';
const digestOf = (char: string): string => `sha256:${char.repeat(64)}`;
const nameOf = (char: string): string => `fedora-${char.repeat(12)}`;
const minute = 60_000;

let deps: DriverDeps & { readonly kube: MemoryKube };
let kube: MemoryKube;
let time: number;
let asked: ObserveRequest[];
let answer: (request: ObserveRequest) => Observation;

beforeEach(() => {
  time = Date.parse('2026-03-01T00:00:00Z');
  asked = [];
  answer = () => found('a');
  const observe = (request: ObserveRequest): Promise<Observation> => {
    asked.push(request);
    return Promise.resolve(answer(request));
  };
  deps = { ...createTestDriver(), now: () => time, observe };
  kube = deps.kube;
  kube.edit(storageClasses, { name: 'local' }, ({ metadata }) => {
    metadata.annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  });
});

const found = (char: string): Observation => ({
  is: 'found',
  digest: digestOf(char),
  message: `it is ${char}`,
  memory: { sourceDigest: digestOf(char) },
});

const released: DataImportCronSpec = {
  schedule: '0 */12 * * *',
  managedDataSource: 'fedora',
  importsToKeep: 1,
  template: {
    spec: {
      source: { registry: { url: 'docker://quay.io/containerdisks/fedora:latest', secretRef: 'login' } },
      storage: { resources: { requests: { storage: '5Gi' } } },
    },
  },
};

const aCron = (over: Partial<DataImportCronSpec> = {}, metadata: object = {}): DataImportCron =>
  kube.seed(dataImportCronKind.type, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataImportCron',
    metadata: { namespace, name: 'cron', ...metadata },
    spec: { ...released, ...over },
  });

const cronNow = (name = 'cron'): DataImportCron =>
  kube.all(dataImportCronKind.type).find(({ metadata }) => metadata.name === name)!;
const sourceNow = (): DataSource => kube.all(dataSourceKind.type)[0]!;
const importNow = () => kube.all(dataVolumes).at(-1)!;
const conditionsOf = (cron = cronNow()) =>
  Object.fromEntries((cron.status?.conditions ?? []).map(({ type, status, reason }) => [type, `${status}/${reason}`]));
const eventsNow = () => kube.all(kubeEvents).map(({ reason }) => reason);
const all = () => ({
  imports: kube
    .all(dataVolumes)
    .map(({ metadata }) => metadata.name)
    .sort(),
  volumes: kube
    .all(persistentVolumeClaims)
    .map(({ metadata }) => metadata.name)
    .sort(),
});

const driveCron = (name = 'cron') => drive(deps, refOf(cronNow(name)), { which: 'all' });
const poll = async (char: string) => {
  time += 2 * minute;
  await recordObservation(deps, refOf(cronNow()), found(char));
};

/** What the data volumes' own driver does: a volume of its name, filled, as the label says. */
const finishImport = async (name: string, phase = 'Succeeded', className = 'local') => {
  const dataVolume = kube.all(dataVolumes).find(({ metadata }) => metadata.name === name)!;
  const isThere = kube.all(persistentVolumeClaims).some(({ metadata }) => metadata.name === name);
  if (!isThere) {
    kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        namespace,
        name,
        labels: { [cdiLabels.cron]: dataVolume.metadata.labels?.[cdiLabels.cron] ?? '' },
        ownerReferences: [
          { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', name, uid: dataVolume.metadata.uid! },
        ],
      },
      spec: { storageClassName: className, resources: { requests: { storage: '5Gi' } } },
      status: { phase: phase === 'Pending' ? 'Pending' : 'Bound' },
    });
  }
  kube.edit(dataVolumes, { namespace, name }, (object) => {
    object.status = { phase, conditions: [{ type: 'Running', status: 'False', message: 'the registry said no' }] };
  });
  await driveCron();
  await driveCron();
  kube.collectGarbage();
};

const importVersion = async (char: string) => {
  await poll(char);
  await finishImport(nameOf(char));
};

describe('a DataImportCron', () => {
  it('polls as soon as it is seen, imports what it finds, and points its data source to it', async () => {
    const cron = aCron({}, { labels: { 'instancetype.kubevirt.io/default-preference': 'fedora', invalid: 'x' } });
    await drive(deps, refOf(cron));
    expect(conditionsOf()).toMatchObject({ UpToDate: 'False/NoDigest', Progressing: 'False/NoImport' });
    expect(sourceNow().spec.source).toEqual({});
    await pollIfDue(deps, cronNow());
    expect(importNow()).toMatchObject({
      metadata: {
        name: nameOf('a'),
        labels: { [cdiLabels.cron]: 'cron', 'instancetype.kubevirt.io/default-preference': 'fedora' },
        annotations: { [cdiAnnotations.immediateBinding]: 'true' },
      },
      spec: {
        source: { registry: { url: `docker://quay.io/containerdisks/fedora@${digestOf('a')}`, secretRef: 'login' } },
        storage: { resources: { requests: { storage: '5Gi' } } },
      },
    });
    expect(importNow().metadata.ownerReferences).toBe(undefined);
    await finishImport(nameOf('a'), 'ImportInProgress');
    expect(conditionsOf()).toMatchObject({
      Progressing: 'True/ImportProgressing',
      UpToDate: 'False/ImportProgressing',
    });
    await finishImport(nameOf('a'));
    expect(conditionsOf()).toEqual({
      Progressing: 'False/NoImport',
      UpToDate: 'True/UpToDate',
      Ready: 'True/Ready',
      Degraded: 'False/AsExpected',
    });
    expect(cronNow().status).toMatchObject({
      currentImports: [{ DataVolumeName: nameOf('a'), Digest: digestOf('a') }],
      lastImportedPVC: { namespace, name: nameOf('a') },
      sourceFormat: 'pvc',
      importsToKeep: 1,
      lastPoll: { outcome: 'Changed', message: 'it is a' },
      nextExecutionTimestamp: expect.stringMatching(/^2026-03-01T12:0/),
    });
    expect(sourceNow().spec.source).toEqual({ pvc: { namespace, name: nameOf('a') } });
    expect(sourceNow().metadata.labels).toMatchObject({ [cdiLabels.cron]: 'cron' });
    expect(sourceNow().metadata.labels).not.toHaveProperty('invalid');
    expect(eventsNow()).toEqual(['SourcePolled', 'SourceChanged', 'ImportStarted', 'VersionImported']);
  });

  it('is settled then: a tick costs a page a kind and writes nothing', async () => {
    aCron();
    await importVersion('a');
    kube.edit(dataSourceKind.type, { namespace, name: 'fedora' }, (source) => {
      source.status = { conditions: [{ type: 'Ready', status: 'True' }] };
    });
    // Classes are described once.
    await tick(deps);
    await tick(deps);
    kube.calls.length = 0;
    await tick(deps);
    expect(new Set(kube.calls.map(({ verb }) => verb))).toEqual(new Set(['list']));
  });

  it('keeps the old version in use until the new one is ready, then collects it', async () => {
    aCron();
    await importVersion('a');
    await poll('b');
    expect(sourceNow().spec.source).toEqual({ pvc: { namespace, name: nameOf('a') } });
    expect(conditionsOf()).toMatchObject({ UpToDate: 'False/Outdated', Ready: 'True/Ready' });
    await finishImport(nameOf('b'));
    expect(sourceNow().spec.source).toEqual({ pvc: { namespace, name: nameOf('b') } });
    expect(all()).toEqual({ imports: [nameOf('b')], volumes: [nameOf('b')] });
    expect(eventsNow()).toContain('VersionCollected');
  });

  it('supersedes an import that runs or failed, at once', async () => {
    aCron();
    await poll('a');
    await poll('b');
    expect(all().imports).toEqual([nameOf('b')]);
    await finishImport(nameOf('b'), 'Failed');
    expect(conditionsOf()).toMatchObject({ Degraded: 'True/ImportFailed', Progressing: 'False/Failed' });
    expect(cronNow().status?.conditions?.at(-1)?.message).toContain('the registry said no');
    await importVersion('c');
    expect(all().imports).toEqual([nameOf('c')]);
    expect(conditionsOf()).toMatchObject({ UpToDate: 'True/UpToDate', Degraded: 'False/AsExpected' });
  });

  it('fails an import for good, keeps the old version, and tries again when asked to', async () => {
    aCron();
    await importVersion('a');
    await poll('b');
    await finishImport(nameOf('b'), 'Failed');
    const failed = importNow().metadata.uid;
    await tick(deps);
    await driveCron();
    expect(importNow().metadata.uid).toBe(failed);
    expect(sourceNow().spec.source).toEqual({ pvc: { namespace, name: nameOf('a') } });
    await kube.mergePatch(
      dataImportCronKind.type,
      { namespace, name: 'cron' },
      { metadata: { annotations: { [annotations.retry]: '1' } } },
    );
    await driveCron();
    await driveCron();
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
    kube.collectGarbage();
    await driveCron();
    expect(importNow().metadata.uid).not.toBe(failed);
    await finishImport(nameOf('b'));
    expect(conditionsOf()).toMatchObject({ UpToDate: 'True/UpToDate' });
  });

  it('imports again, under the same name, what was removed by hand', async () => {
    aCron();
    await importVersion('a');
    const { uid } = importNow().metadata;
    await kube.delete(dataVolumes, { namespace, name: nameOf('a') });
    kube.collectGarbage();
    await driveCron();
    expect(importNow().metadata.uid).not.toBe(uid);
    await finishImport(nameOf('a'));
    const second = importNow().metadata.uid;
    await kube.delete(persistentVolumeClaims, { namespace, name: nameOf('a') });
    await driveCron();
    await driveCron();
    expect(importNow().metadata.uid).not.toBe(second);
  });

  it('puts its data source right again, and makes a new one', async () => {
    aCron();
    await importVersion('a');
    await kube.mergePatch(
      dataSourceKind.type,
      { namespace, name: 'fedora' },
      { spec: { source: { pvc: { name: 'dummy' } } } },
    );
    await driveCron();
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
    await kube.delete(dataSourceKind.type, { namespace, name: 'fedora' });
    await driveCron();
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
  });

  it('takes a digest from whoever writes it, also without a schedule', async () => {
    const cron = aCron({ schedule: '' }, { annotations: { [cdiAnnotations.desiredDigest]: digestOf('d') } });
    await drive(deps, refOf(cron));
    await tick(deps);
    expect(asked).toEqual([]);
    await finishImport(nameOf('d'));
    expect(conditionsOf()).toMatchObject({ UpToDate: 'True/UpToDate' });
  });

  it.each([
    ['sha234:abababababab', 'Digest has no supported prefix'],
    ['sha256:01234567890', 'Digest is too short'],
  ])('says what is wrong with the digest %s', async (digest, problem) => {
    aCron({}, { annotations: { [cdiAnnotations.desiredDigest]: digest } });
    await driveCron();
    expect(cronNow().status?.conditions?.at(-1)).toMatchObject({
      reason: 'InvalidDigest',
      message: expect.stringContaining(problem),
    });
  });

  it('says what is wrong with its spec', async () => {
    aCron({ schedule: 'daily', template: { spec: { source: { registry: { url: 'fedora' } } } } });
    await driveCron();
    const message = cronNow().status?.conditions?.at(-1)?.message;
    expect(message).toContain('spec.template.spec.source.registry.url must name a registry');
    expect(message).toContain('spec.schedule must have five fields');
    await pollIfDue(deps, cronNow());
    expect(asked).toEqual([]);
  });

  it('leaves the data source of another cron alone until that one is gone', async () => {
    aCron({}, { name: 'first' });
    await driveCron('first');
    aCron();
    await driveCron();
    expect(conditionsOf()).toMatchObject({ Degraded: 'True/DataSourceAlreadyManaged' });
    expect(eventsNow()).toContain('ErrDataSourceAlreadyManaged');
    kube.edit(dataImportCronKind.type, { namespace, name: 'first' }, ({ metadata }) => {
      metadata.finalizers = [];
    });
    await kube.delete(dataImportCronKind.type, { namespace, name: 'first' });
    await importVersion('a');
    expect(sourceNow()).toMatchObject({
      metadata: { labels: { [cdiLabels.cron]: 'cron' } },
      spec: { source: { pvc: { name: nameOf('a') } } },
    });
  });

  it('takes no working data source from anybody, and says how to hand it over', async () => {
    const seeded = kube.seed(dataSourceKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: { namespace, name: 'fedora' },
      spec: { source: { pvc: { name: 'mine' } } },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    aCron();
    await importVersion('a');
    expect(sourceNow().spec).toEqual(seeded.spec);
    expect(conditionsOf()).toMatchObject({ Degraded: 'True/DataSourceUnmanaged' });
    await kube.mergePatch(
      dataSourceKind.type,
      { namespace, name: 'fedora' },
      { metadata: { labels: { [cdiLabels.cron]: 'cron' } } },
    );
    await driveCron();
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
  });

  it('uses a labelled volume of the right name, and touches no other', async () => {
    const volume = (labels: Record<string, string>) =>
      kube.seed(persistentVolumeClaims, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { namespace, name: nameOf('a'), labels },
        spec: { storageClassName: 'local' },
        status: { phase: 'Bound' },
      });
    volume({});
    aCron();
    await poll('a');
    expect(conditionsOf()).toMatchObject({ Degraded: 'True/NameTaken' });
    await kube.delete(persistentVolumeClaims, { namespace, name: nameOf('a') });
    volume({ [cdiLabels.cron]: 'cron' });
    await driveCron();
    expect(all().imports).toEqual([]);
    expect(conditionsOf()).toMatchObject({ UpToDate: 'True/UpToDate' });
  });

  it('keeps as many versions as it is told to, and every one that is in use', async () => {
    aCron({ importsToKeep: 2 });
    for (const char of ['a', 'b', 'c']) await importVersion(char);
    expect(all().volumes).toEqual([nameOf('b'), nameOf('c')]);
    kube.seed(dataSourceKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: { namespace: 'elsewhere', name: 'pinned' },
      spec: { source: { pvc: { namespace, name: nameOf('b') } } },
    });
    await importVersion('d');
    await importVersion('e');
    expect(all().volumes).toEqual([nameOf('b'), nameOf('d'), nameOf('e')].filter((name) => name !== nameOf('x')));
  });

  it('goes on with what its data source stands for, where a pass died before the status was written', async () => {
    aCron();
    await importVersion('a');
    await poll('b');
    const before = cronNow().status!;
    await finishImport(nameOf('b'));
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('b'));
    kube.edit(dataImportCronKind.type, { namespace, name: 'cron' }, (cron) => {
      cron.status = structuredClone(before) as never;
    });
    await poll('c');
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('b'));
    expect(cronNow().status?.lastImportedPVC?.name).toBe(nameOf('b'));
  });

  it('keeps what is backed up: what its user wants kept, and what somebody has a snapshot of', async () => {
    aCron({ importsToKeep: 1 });
    await importVersion('a');
    kube.edit(persistentVolumeClaims, { namespace, name: nameOf('a') }, ({ metadata }) => {
      metadata.annotations = { ...metadata.annotations, [annotations.backup]: 'true' };
    });
    await importVersion('b');
    const backup = {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: { namespace, name: 'nightly' },
      spec: { source: { persistentVolumeClaimName: nameOf('b') } },
      status: { readyToUse: true },
    };
    kube.seed(volumeSnapshots, backup);
    await importVersion('c');
    expect(all().volumes).toEqual([nameOf('a'), nameOf('b'), nameOf('c')]);
    await kube.delete(volumeSnapshots, backup.metadata);
    await importVersion('d');
    expect(all().volumes).toEqual([nameOf('a'), nameOf('d')]);
  });

  it('never collects what it offers, though it is told to keep none', async () => {
    aCron({ importsToKeep: 0 });
    await importVersion('a');
    await importVersion('b');
    expect(all().volumes).toEqual([nameOf('b')]);
    expect(cronNow().status?.importsToKeep).toBe(1);
  });

  it('collects nothing where it is told so', async () => {
    aCron({ garbageCollect: 'Never' });
    for (const char of ['a', 'b', 'c']) await importVersion(char);
    expect(all().volumes.length).toBe(3);
  });

  it('moves to the new default class without taking the old version out of use', async () => {
    aCron();
    await importVersion('a');
    expect(cronNow().metadata.annotations?.[cdiAnnotations.storageClass]).toBe('local');
    kube.seed(
      storageClasses,
      aStorageClass('fast', {
        metadata: { name: 'fast', annotations: { 'storageclass.kubevirt.io/is-default-virt-class': 'true' } },
      }),
    );
    await driveCron();
    const moved = importNow().metadata.name;
    expect(moved).toMatch(new RegExp(`^${nameOf('a')}-[0-9a-f]{8}$`));
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
    await finishImport(moved, 'Succeeded', 'fast');
    expect(sourceNow().spec.source.pvc?.name).toBe(moved);
    expect(all().volumes).toEqual([moved]);
    expect(cronNow().metadata.annotations?.[cdiAnnotations.storageClass]).toBe('fast');
    await driveCron();
    expect(all().imports).toEqual([moved]);
  });

  it('starts an import over that waits in a class that is no longer the default', async () => {
    aCron();
    await poll('a');
    await finishImport(nameOf('a'), 'Pending');
    const { uid } = importNow().metadata;
    kube.seed(
      storageClasses,
      aStorageClass('fast', {
        metadata: { name: 'fast', annotations: { 'storageclass.kubevirt.io/is-default-virt-class': 'true' } },
      }),
    );
    await driveCron();
    kube.collectGarbage();
    await driveCron();
    expect(importNow().metadata.name).toBe(nameOf('a'));
    expect(importNow().metadata.uid).not.toBe(uid);
  });

  it('keeps a snapshot where the class asks for it, and goes back to a volume', async () => {
    kube.seed(storageProfiles, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'StorageProfile',
      metadata: { name: 'local' },
      status: { dataImportCronSourceFormat: 'snapshot' },
    });
    aCron();
    await importVersion('a');
    expect(kube.all(volumeSnapshots)[0]).toMatchObject({
      metadata: {
        name: nameOf('a'),
        annotations: { [cdiAnnotations.advisedRestoreSize]: '5Gi', [cdiAnnotations.sourceVolumeMode]: 'Filesystem' },
      },
    });
    expect(sourceNow().spec.source).toEqual({});
    kube.edit(volumeSnapshots, { namespace, name: nameOf('a') }, (snapshot) => {
      snapshot.status = { readyToUse: true };
    });
    await driveCron();
    kube.collectGarbage();
    expect(sourceNow().spec.source).toEqual({ snapshot: { namespace, name: nameOf('a') } });
    expect(all()).toEqual({ imports: [], volumes: [] });
    expect(cronNow().status?.sourceFormat).toBe('snapshot');
    kube.edit(storageProfiles, { name: 'local' }, (profile) => {
      profile.status = { dataImportCronSourceFormat: 'pvc' };
    });
    await driveCron();
    expect(sourceNow().spec.source).toEqual({ snapshot: { namespace, name: nameOf('a') } });
    await finishImport(nameOf('a'));
    expect(sourceNow().spec.source).toEqual({ pvc: { namespace, name: nameOf('a') } });
    expect(kube.all(volumeSnapshots)).toEqual([]);
  });

  it('leaves everything behind when it goes, but for what was not finished', async () => {
    aCron();
    await importVersion('a');
    await poll('b');
    await kube.delete(dataImportCronKind.type, { namespace, name: 'cron' });
    await driveCron();
    await driveCron();
    expect(all()).toEqual({ imports: [nameOf('a')], volumes: [nameOf('a')] });
    expect(kube.all(dataImportCronKind.type)).toEqual([]);
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
  });

  it('goes at once though its source could never be asked and its import hangs', async () => {
    answer = () => ({ is: 'failed', reason: 'InvalidInput', message: 'ConfigMap golden-images/ca does not exist' });
    aCron();
    await tick(deps);
    expect(conditionsOf()).toMatchObject({ Degraded: 'True/PollFailed', UpToDate: 'False/NoDigest' });
    await poll('a');
    await finishImport(nameOf('a'), 'ImportInProgress');
    await kube.delete(dataImportCronKind.type, { namespace, name: 'cron' });
    await driveCron();
    kube.collectGarbage();
    await driveCron();
    expect(kube.all(dataImportCronKind.type)).toEqual([]);
    expect(all()).toEqual({ imports: [], volumes: [] });
  });

  it('takes everything with it where it is told to', async () => {
    aCron({ retentionPolicy: 'None' });
    await importVersion('a');
    expect(importNow().metadata.labels).toMatchObject({ [cdiLabels.cleanup]: 'true' });
    expect(sourceNow().metadata.ownerReferences).toMatchObject([
      { kind: 'DataImportCron', controller: true, blockOwnerDeletion: false },
    ]);
    await kube.delete(dataImportCronKind.type, { namespace, name: 'cron' });
    await driveCron();
    kube.collectGarbage();
    await driveCron();
    expect(all()).toEqual({ imports: [], volumes: [] });
    expect([...kube.all(dataSourceKind.type), ...kube.all(dataImportCronKind.type)]).toEqual([]);
  });
});

describe('machines', () => {
  const events: CloudEvent[] = [];
  let isTaking: boolean;
  beforeEach(() => {
    events.length = 0;
    isTaking = true;
    const send: Send = (event) => {
      if (isTaking) events.push(event);
      return Promise.resolve({ isDelivered: isTaking } as Delivery);
    };
    deps = { ...deps, send, announce: createAnnouncer(send) };
  });
  const typesNow = () => events.map(({ type }) => type.replace('dev.bullion.version.', ''));

  it('hear of each version that came into use, was given up, failed, or was removed', async () => {
    aCron();
    await importVersion('a');
    await poll('b');
    await poll('c');
    await finishImport(nameOf('c'), 'Failed');
    await poll('d');
    kube.collectGarbage();
    await finishImport(nameOf('d'));
    expect(typesNow()).toEqual(['imported', 'superseded', 'failed', 'superseded', 'collected', 'imported']);
    expect(events[0]).toMatchObject({
      subject: '/apis/cdi.kubevirt.io/v1beta1/namespaces/golden-images/dataimportcrons/cron',
      data: { cron: { name: 'cron' }, version: nameOf('a'), digest: digestOf('a') },
    });
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    expect(cronNow().status?.counts).toEqual({ polled: 4, imported: 2, superseded: 2, failed: 1, collected: 1 });
  });

  it('hear of every poll, also of the first one, and an answer heard of again changes nothing', async () => {
    const cron = aCron();
    await pollIfDue(deps, cron);
    const polled = events.find(({ type }) => type === 'dev.bullion.source.polled');
    expect(polled).toMatchObject({
      data: { cron: { name: 'cron' }, observation: { is: 'found', digest: digestOf('a') } },
    });
    const before = cronNow();
    time += 10;
    await recordObservation(deps, refOf(cron), found('a'), Date.parse(polled?.time ?? ''));
    expect({ ...cronNow(), metadata: undefined }).toEqual({ ...before, metadata: undefined });
  });

  it('hear it later where nobody took it', async () => {
    aCron();
    isTaking = false;
    await importVersion('a');
    expect(conditionsOf()).toMatchObject({ UpToDate: 'True/UpToDate' });
    isTaking = true;
    await tick(deps);
    await tick(deps);
    expect(typesNow().filter((type) => type === 'imported')).toEqual(['imported']);
  });
});

describe('where a CDI is installed', () => {
  beforeEach(() => {
    deps = { ...deps, cdi: () => Promise.resolve('use') };
  });
  const hooked = { annotations: { [annotations.schedule]: '0 */12 * * *' } };
  const digestNow = () => cronNow().metadata.annotations?.[cdiAnnotations.desiredDigest];

  it('writes the digest for it, and neither imports nor touches its status', async () => {
    aCron({ schedule: '' }, hooked);
    await tick(deps);
    expect(digestNow()).toBe(digestOf('a'));
    expect([kube.all(dataVolumes), kube.all(dataSourceKind.type), cronNow().status]).toEqual([[], [], undefined]);
    expect(kube.calls.filter(({ resource }) => resource.endsWith('/status'))).toEqual([]);
  });

  it('polls by the schedule in the annotation, with what it knows', async () => {
    aCron({ schedule: '' }, hooked);
    await tick(deps);
    time += 60 * minute;
    await tick(deps);
    expect(asked.length).toBe(1);
    answer = () => found('b');
    time += 13 * 60 * minute;
    await tick(deps);
    expect(asked[1]?.known).toMatchObject({ sourceDigest: digestOf('a') });
    expect(digestNow()).toBe(digestOf('b'));
    expect(JSON.parse(cronNow().metadata.annotations?.[annotations.poll] ?? '')).toMatchObject({ outcome: 'Changed' });
  });

  it('leaves alone what CDI polls itself, and what nobody asked for', async () => {
    aCron();
    aCron({ schedule: '' }, { name: 'other' });
    await tick(deps);
    await pollIfDue(deps, cronNow());
    expect(asked).toEqual([]);
  });
});

describe('what `kubectl get dic` shows', () => {
  const valueAt = (jsonPath: string): unknown =>
    jsonPath
      .slice(1)
      .split('.')
      .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], cronNow());

  it('is version, age, last and next poll, and what a poll decided', async () => {
    aCron();
    await importVersion('a');
    const shown = Object.fromEntries(
      (dataImportCronKind.columns ?? [])
        .filter(({ jsonPath }) => !jsonPath.includes('['))
        .map(({ name, jsonPath }) => [name, valueAt(jsonPath)]),
    );
    const time = expect.stringMatching(/^2026-03-01T/) as string;
    expect(shown).toMatchObject({
      Version: nameOf('a'),
      Format: 'pvc',
      Imported: time,
      LastPoll: time,
      NextPoll: time,
      Decision: 'Changed',
      Age: expect.any(String) as string,
    });
  });
});

describe('monitoring', () => {
  const outdated = () => {
    const [metric] = cronMetricsOf(cronNow());
    return [metric?.labels['pending'], metric?.value];
  };

  it('is told what is outdated, what only waits for a storage class, and nothing while an import runs', async () => {
    kube.edit(storageClasses, { name: 'local' }, ({ metadata }) => {
      metadata.annotations = {};
    });
    aCron();
    await poll('a');
    expect(outdated()).toEqual(['true', 1]);
    kube.edit(storageClasses, { name: 'local' }, ({ metadata }) => {
      metadata.annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
    });
    await finishImport(nameOf('a'));
    expect(outdated()).toEqual(['false', 0]);
    await poll('b');
    await finishImport(nameOf('b'), 'ImportScheduled');
    expect(outdated()).toEqual(['false', 0]);
    await finishImport(nameOf('b'), 'ImportInProgress');
    expect(outdated()).toEqual(['false', 0]);
    await finishImport(nameOf('b'), 'Failed');
    expect(outdated()).toEqual(['false', 1]);
  });

  it('is told when polls fail, and since when nothing was heard', async () => {
    aCron();
    await poll('a');
    const heard = Date.parse(cronNow().status?.lastPoll?.time ?? '') / 1000;
    const value = (name: string) => cronMetricsOf(cronNow()).find((metric) => metric.name.endsWith(name))?.value;
    expect([value('last_poll_seconds'), value('poll_failures')]).toEqual([heard, 0]);
    time += minute;
    await recordObservation(deps, refOf(cronNow()), { is: 'failed', reason: 'x', message: 'no' });
    expect(value('poll_failures')).toBe(1);
  });
});

describe('admission', () => {
  const review = (operation: 'CREATE' | 'UPDATE', object: DataImportCron, oldObject?: DataImportCron) =>
    createValidator(kube)({
      uid: '1',
      operation,
      kind: { group: 'cdi.kubevirt.io', version: 'v1beta1', kind: 'DataImportCron' },
      resource: { group: 'cdi.kubevirt.io', version: 'v1beta1', resource: 'dataimportcrons' },
      userInfo: { username: 'somebody' },
      object,
      oldObject,
    } as never);

  it('refuses what could never be polled, with every fault at once', async () => {
    const cron = aCron({ schedule: 'daily', template: { spec: { source: { blank: {} } } } });
    expect(await review('CREATE', cron)).toMatchObject({
      kind: 'refused',
      faults: [{ field: 'spec.template.spec.source' }, { field: 'spec.schedule' }],
    });
  });

  it('refuses a changed spec, down to fields of the template that only data volumes know', async () => {
    const before = aCron();
    expect(await review('CREATE', before)).toMatchObject({ kind: 'allowed' });
    const template = { spec: { ...released.template?.spec, preallocation: true } };
    const after = { ...before, spec: { ...before.spec, template } };
    expect(await review('UPDATE', after, before)).toMatchObject({ kind: 'refused', faults: [{ field: 'spec' }] });
  });
});

describe('polls', () => {
  it('ask each distinct source once a tick, whoever follows it', async () => {
    const registry = (url: string) => ({ template: { spec: { source: { registry: { url } } } } });
    for (let index = 0; index < 30; index += 1) {
      aCron(
        { ...registry(`docker://quay.io/a/b:${index % 5}`), managedDataSource: `d${index}` },
        { name: `c${index}`, namespace: `ns${index % 3}` },
      );
    }
    await tick(deps);
    expect(asked.length).toBe(5);
    expect(kube.all(dataVolumes).length).toBe(30);
    time += 5 * minute;
    await tick(deps);
    expect(asked.length).toBe(5);
  });

  it('ask once though crons know different things, and tell each what is new to it', async () => {
    aCron({}, { name: 'old' });
    await tick(deps);
    aCron({ managedDataSource: 'other' }, { name: 'new' });
    answer = () => found('b');
    time += 13 * 60 * minute;
    await tick(deps);
    expect(asked.length).toBe(2);
    expect(asked[1]?.known).toEqual({});
    expect(['old', 'new'].map((name) => cronNow(name).status?.lastPoll?.outcome)).toEqual(['Changed', 'Changed']);
  });

  it('share nothing between those who log in with a Secret of their own', async () => {
    aCron({}, { name: 'one', namespace: 'ns1' });
    aCron({}, { name: 'two', namespace: 'ns2' });
    await tick(deps);
    expect(asked.map((request) => request.namespace).sort()).toEqual(['ns1', 'ns2']);
  });

  it('remember what they saw, and forget it with the digest', async () => {
    aCron();
    await tick(deps);
    answer = () => ({ is: 'same', message: 'still' });
    time += 13 * 60 * minute;
    await tick(deps);
    expect(asked.at(-1)?.known).toMatchObject({ sourceDigest: digestOf('a') });
    expect(cronNow().status?.lastPoll).toMatchObject({
      outcome: 'Same',
      message: 'still',
      sourceDigest: digestOf('a'),
    });
    await kube.mergePatch(
      dataImportCronKind.type,
      { namespace, name: 'cron' },
      { metadata: { annotations: { [cdiAnnotations.desiredDigest]: '' } } },
    );
    answer = () => found('a');
    time += 13 * 60 * minute;
    await tick(deps);
    expect(asked.at(-1)?.known).toEqual({});
    expect(cronNow().metadata.annotations?.[cdiAnnotations.desiredDigest]).toBe(digestOf('a'));
  });

  it('catch up with one poll, however many were missed', async () => {
    aCron();
    await tick(deps);
    time += 10 * 24 * 60 * minute;
    await tick(deps);
    await tick(deps);
    expect(asked.length).toBe(2);
  });

  it('that are heard of late set nothing back: what they contradict is asked about again', async () => {
    aCron();
    const askedAt = time;
    await importVersion('a');
    await importVersion('b');
    const digestNow = () => cronNow().metadata.annotations?.[cdiAnnotations.desiredDigest];
    await recordObservation(deps, refOf(cronNow()), found('a'), askedAt);
    expect(digestNow()).toBe(digestOf('b'));
    answer = () => found('b');
    const before = asked.length;
    await tick(deps);
    expect([asked.length, digestNow()]).toEqual([before + 1, digestOf('b')]);
  });

  it('of a file, which has a tag in place of a digest, are held against each other too', async () => {
    aCron();
    const tagged = (which: string): Observation => ({
      is: 'found',
      digest: digestOf(which),
      message: which,
      memory: { etag: `"${which}"` },
    });
    const askedAt = time;
    time += minute;
    await recordObservation(deps, refOf(cronNow()), tagged('a'), time - 1);
    await recordObservation(deps, refOf(cronNow()), tagged('b'), askedAt);
    const before = asked.length;
    await tick(deps);
    expect(asked.length).toBe(before + 1);
  });

  it('that failed, and are heard of minutes later, leave the source alone for as long as it asked', async () => {
    aCron();
    const askedAt = time;
    time += 3 * minute;
    const refusal = { is: 'failed', reason: 'TooManyRequests', message: '429', retryAfterSeconds: 1800 } as const;
    await recordObservation(deps, refOf(cronNow()), refusal, askedAt);
    const before = asked.length;
    time += 29 * minute;
    await tick(deps);
    expect(asked.length).toBe(before);
    time += 2 * minute;
    await tick(deps);
    expect(asked.length).toBe(before + 1);
  });

  it('that are heard of minutes later are made again: somebody may have asked for one since', async () => {
    aCron();
    const askedAt = time;
    time += 3 * minute;
    await recordObservation(deps, refOf(cronNow()), found('a'), askedAt);
    answer = () => found('b');
    time += minute;
    await tick(deps);
    expect(cronNow().metadata.annotations?.[cdiAnnotations.desiredDigest]).toBe(digestOf('b'));
  });

  it('that are heard of twice leave alone what somebody wrote in between', async () => {
    aCron();
    const askedAt = time;
    await importVersion('a');
    const annotated = { metadata: { annotations: { [cdiAnnotations.desiredDigest]: digestOf('f') } } };
    await kube.mergePatch(dataImportCronKind.type, { namespace, name: 'cron' }, annotated);
    await recordObservation(deps, refOf(cronNow()), found('a'), askedAt);
    await tick(deps);
    expect(cronNow().metadata.annotations?.[cdiAnnotations.desiredDigest]).toBe(digestOf('f'));
  });

  it('are made at once when somebody writes a time that is past', async () => {
    aCron();
    await importVersion('a');
    await kube.mergePatch(
      dataImportCronKind.type,
      { namespace, name: 'cron' },
      { metadata: { annotations: { [cdiAnnotations.nextCronTime]: '2026-01-01T00:00:00Z' } } },
    );
    answer = () => found('b');
    time += minute;
    await pollIfDue(deps, cronNow());
    expect(all().imports).toContain(nameOf('b'));
  });

  it('that fail are a condition with the words of the source, are tried again sooner, and do no harm', async () => {
    aCron();
    await importVersion('a');
    answer = () => ({ is: 'failed', reason: 'Unauthorized', message: 'quay.io answered 401' });
    time += 13 * 60 * minute;
    await tick(deps);
    expect(conditionsOf()).toMatchObject({
      Degraded: 'True/PollFailed',
      UpToDate: 'True/UpToDate',
      Ready: 'True/Ready',
    });
    expect(cronNow().status?.conditions?.at(-1)?.message).toContain('quay.io answered 401');
    expect(eventsNow().filter((reason) => reason === 'PollFailed').length).toBe(1);
    const first = asked.length;
    time += minute;
    await tick(deps);
    expect(asked.length).toBe(first + 1);
    time += minute;
    await tick(deps);
    expect(asked.length).toBe(first + 1);
    expect(eventsNow().filter((reason) => reason === 'PollFailed').length).toBe(1);
  });

  it('are counted on one Event, which says what the newest decided', async () => {
    const polls = () => kube.all(kubeEvents).filter(({ reason }) => reason === 'SourcePolled');
    aCron();
    await importVersion('a');
    expect(polls()).toMatchObject([{ type: 'Normal', count: 1, message: 'changed: it is a' }]);
    answer = () => ({ is: 'same', message: 'still a' });
    for (let round = 2; round <= 3; round += 1) {
      time += 13 * 60 * minute;
      await tick(deps);
      expect(polls()).toMatchObject([
        { type: 'Normal', count: round, message: 'unchanged: still a', firstTimestamp: '2026-03-01T00:02:00Z' },
      ]);
    }
    answer = () => ({ is: 'failed', reason: 'Unauthorized', message: 'quay.io answered 401' });
    time += 13 * 60 * minute;
    await tick(deps);
    expect(polls()).toMatchObject([{ type: 'Warning', count: 4, message: 'not asked: quay.io answered 401' }]);
    // A poll writes digest and times, what it remembers, and the Event; one that is not due writes nothing.
    answer = () => ({ is: 'same', message: 'still a' });
    time += 13 * 60 * minute;
    kube.calls.length = 0;
    await tick(deps);
    const writes = kube.calls.filter(({ verb }) => !['get', 'list'].includes(verb));
    expect(writes.length).toBeLessThanOrEqual(4);
    kube.calls.length = 0;
    await tick(deps);
    expect(kube.calls.filter(({ verb }) => verb !== 'list')).toEqual([]);
  });

  it('wait as long as the source asks', async () => {
    aCron();
    answer = () => ({ is: 'failed', reason: 'RateLimited', message: 'enough', retryAfterSeconds: 7200 });
    await tick(deps);
    expect(cronNow().status?.nextExecutionTimestamp).toBe('2026-03-01T02:00:00Z');
    time += 119 * minute;
    await tick(deps);
    expect(asked.length).toBe(1);
    time += minute;
    await tick(deps);
    expect(asked.length).toBe(2);
  });
});
