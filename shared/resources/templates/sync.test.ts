import { beforeEach, describe, expect, it } from 'vitest';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { type HyperConverged, type Ssp, hyperConvergeds, ssps, sspVersions } from '#shared/api/foreign/boot-sources.ts';
import { kubeEvents, namespaces, nodes, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import { selects } from '#shared/golden/rollout/policies.ts';
import { holdsTemplates } from '#shared/resources/templates/observed.ts';
import { syncTemplates } from '#shared/resources/templates/sync.ts';
import { Denied, NotFound } from '#shared/runtime/errors.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import type { TemplateSettings } from '#shared/resources/templates/ask.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

const namespace = 'kubevirt-os-images';
const settings: TemplateSettings = { mode: 'auto', namespace, architecture: 'amd64' };
let deps: ReconcileDeps;
let kube: MemoryKube;

beforeEach(() => {
  const driver = createTestReconciler();
  kube = driver.kube;
  deps = { ...driver, templates: settings };
});

const template = (name: string, dataSource: string, over: object = {}, url = `docker://r.example/${name}`) => ({
  metadata: { name, ...over },
  spec: {
    managedDataSource: dataSource,
    schedule: '0 */12 * * *',
    template: { spec: { source: { registry: { url } }, storage: {} } },
  },
});

const anSsp = (templates: readonly ReturnType<typeof template>[], over: object = {}, at = 'kubevirt'): Ssp =>
  kube.seed(ssps, {
    apiVersion: 'ssp.kubevirt.io/v1beta3',
    kind: 'SSP',
    metadata: { name: 'ssp', namespace: at },
    spec: { commonTemplates: { dataImportCronTemplates: templates }, ...over },
  });

const editSsp = (templates: readonly ReturnType<typeof template>[], over: object = {}) =>
  kube.edit(ssps, { name: 'ssp', namespace: 'kubevirt' }, (ssp) => {
    ssp.spec = { commonTemplates: { dataImportCronTemplates: templates }, ...over } as never;
  });

const volume = (name: string) =>
  kube.seed(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace },
    spec: {},
    status: { phase: 'Bound' },
  });

const sync = async () => {
  await syncTemplates(deps);
  await syncTemplates(deps);
};
const crons = () =>
  kube
    .all(dataImportCronKind.type)
    .map(({ metadata }) => metadata.name)
    .sort();
const source = (name: string): DataSource | undefined =>
  kube.all(dataSourceKind.type).find(({ metadata }) => metadata.name === name);
const labelOf = (name: string) => source(name)?.metadata.labels?.[cdiLabels.cron];
const eventsNow = () => kube.all(kubeEvents).map(({ reason }) => reason);
const fedora = template('fedora-cron', 'fedora');
const dangling = { pvc: { namespace, name: 'fedora' } };

describe('templates of an SSP', () => {
  it('reaches a policy of golden images by the labels of a template', async () => {
    anSsp([template('fedora', 'fedora', { labels: { os: 'fedora' } }), template('centos', 'centos')]);
    await sync();
    const policy = { spec: { dataImportCrons: { matchLabels: { os: 'fedora' } } } } as never;
    const selected = kube.all(dataImportCronKind.type).filter((one) => selects(policy, one));
    expect(selected.map(({ metadata }) => metadata.name)).toEqual(['fedora']);
  });

  it('become crons, and every boot source has a DataSource', async () => {
    anSsp([fedora]);
    await sync();
    expect(crons()).toEqual(['fedora-cron']);
    expect(labelOf('fedora')).toBe('fedora-cron');
    expect(source('win11')?.spec.source).toEqual({ pvc: { namespace, name: 'win11' } });
    expect(source('fedora')?.metadata.annotations).toMatchObject({
      [annotations.autoUpdate]: 'on: there is no golden volume of its name',
    });
    expect(kube.all(namespaces).map(({ metadata }) => metadata.name)).toEqual([namespace]);
    expect(eventsNow()).toContain('AutoUpdateDecided');
  });

  it('are settled afterwards: a pass reads and writes nothing', async () => {
    anSsp([fedora, template('mine', 'mine', { namespace: 'elsewhere' })]);
    await sync();
    const before = kube.calls.length;
    await sync();
    expect(kube.calls.slice(before).filter(({ verb }) => verb !== 'get' && verb !== 'list')).toEqual([]);
  });

  it('do not change the golden volume of a user, until it is deleted or its DataSource is labelled', async () => {
    volume('fedora');
    anSsp([fedora]);
    await sync();
    expect(crons()).toEqual([]);
    expect(source('fedora')?.spec.source).toEqual(dangling);
    expect(labelOf('fedora')).toBe(undefined);
    const key = { namespace, name: 'fedora' };
    await kube.mergePatch(dataSourceKind.type, key, { metadata: { labels: { [cdiLabels.cron]: '' } } });
    await sync();
    expect([crons(), labelOf('fedora')]).toEqual([['fedora-cron'], 'fedora-cron']);
    await kube.mergePatch(dataSourceKind.type, key, {
      metadata: { labels: { [cdiLabels.cron]: null } },
      spec: { source: { pvc: { name: 'fedora-0123456789ab' } } },
    });
    await sync();
    expect([crons(), labelOf('fedora')]).toEqual([[], undefined]);
    expect(source('fedora')?.spec.source).toEqual(dangling);
    await kube.delete(persistentVolumeClaims, key);
    await sync();
    expect([crons(), labelOf('fedora')]).toEqual([['fedora-cron'], 'fedora-cron']);
  });

  it('restore the label when there is no golden volume, and leave the source to the cron', async () => {
    anSsp([fedora]);
    await sync();
    const imported = { pvc: { namespace, name: 'fedora-0123456789ab' } };
    await kube.mergePatch(
      dataSourceKind.type,
      { namespace, name: 'fedora' },
      { metadata: { labels: { [cdiLabels.cron]: null } }, spec: { source: imported } },
    );
    await sync();
    expect(labelOf('fedora')).toBe('fedora-cron');
    expect(source('fedora')?.spec.source).toEqual(imported);
  });

  it('that are removed delete their cron, and restore their DataSource', async () => {
    anSsp([fedora, template('mine', 'mine')]);
    await sync();
    editSsp([]);
    await sync();
    expect(crons()).toEqual([]);
    expect(source('fedora')?.spec.source).toEqual(dangling);
    expect(labelOf('fedora')).toBe(undefined);
    expect(source('mine')).toBe(undefined);
  });

  it('are not reconciled while their object is paused', async () => {
    anSsp([fedora]);
    await sync();
    kube.edit(ssps, { name: 'ssp', namespace: 'kubevirt' }, (ssp) => {
      ssp.metadata.annotations = { 'kubevirt.io/operator.paused': 'true' };
    });
    editSsp([]);
    await sync();
    expect(crons()).toEqual(['fedora-cron']);
    kube.edit(ssps, { name: 'ssp', namespace: 'kubevirt' }, (ssp) => {
      ssp.metadata.annotations = {};
    });
    await sync();
    expect(crons()).toEqual([]);
  });

  it('that change recreate their cron', async () => {
    anSsp([fedora]);
    await sync();
    const { uid } = kube.all(dataImportCronKind.type)[0]!.metadata;
    editSsp([template('fedora-cron', 'fedora', {}, 'docker://r.example/other')]);
    await sync();
    expect(kube.all(dataImportCronKind.type)).toMatchObject([
      { spec: { template: { spec: { source: { registry: { url: 'docker://r.example/other' } } } } } },
    ]);
    expect(kube.all(dataImportCronKind.type)[0]?.metadata.uid).not.toBe(uid);
  });

  it('do not change a cron of another owner, and report it once', async () => {
    kube.seed(dataImportCronKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataImportCron',
      metadata: { name: 'fedora-cron', namespace },
      spec: { schedule: '', managedDataSource: 'theirs' },
    });
    anSsp([fedora]);
    await sync();
    expect(kube.all(dataImportCronKind.type)[0]?.spec.managedDataSource).toBe('theirs');
    expect(eventsNow().filter((reason) => reason === 'CronNotOwned')).toEqual(['CronNotOwned']);
  });

  it('are reverted when it is deleted; a DataSource that a user created stays', async () => {
    kube.seed(dataSourceKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: { name: 'ubuntu', namespace },
      spec: { source: { pvc: { name: 'ubuntu', namespace } } },
    });
    anSsp([fedora]);
    await sync();
    await kube.delete(ssps, { name: 'ssp', namespace: 'kubevirt' });
    await sync();
    await sync();
    expect(crons()).toEqual([]);
    expect(kube.all(dataSourceKind.type).map(({ metadata }) => metadata.name)).toEqual(['ubuntu']);
    expect(source('ubuntu')?.metadata.annotations).toEqual({});
  });

  it('own what they create in their own namespace, whether created or adopted', async () => {
    kube.seed(dataSourceKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: { name: 'ubuntu', namespace },
      spec: { source: {} },
    });
    const { metadata } = anSsp([fedora], {}, namespace);
    await sync();
    const owner = { kind: 'SSP', uid: metadata.uid, blockOwnerDeletion: false };
    expect(source('fedora')?.metadata.ownerReferences).toMatchObject([{ ...owner, controller: true }]);
    expect(source('ubuntu')?.metadata.ownerReferences).toMatchObject([{ ...owner, controller: false }]);
  });

  it('have one of each per architecture, and change back to one', async () => {
    const many = template('fedora-cron', 'fedora', {
      annotations: { 'ssp.kubevirt.io/dict.architectures': 'amd64,arm64' },
    });
    const cluster = { controlPlaneArchitectures: ['amd64'], workloadArchitectures: ['arm64'] };
    anSsp([many], { enableMultipleArchitectures: true, cluster });
    await sync();
    expect(crons()).toEqual(['fedora-cron-amd64', 'fedora-cron-arm64']);
    expect(source('fedora')?.spec.source).toEqual({ dataSource: { name: 'fedora-amd64' } });
    expect(labelOf('fedora-arm64')).toBe('fedora-cron-arm64');
    editSsp([many], { cluster });
    await sync();
    await sync();
    expect(crons()).toEqual(['fedora-cron']);
    expect(source('fedora')?.spec.source).toEqual(dangling);
    expect([source('fedora-amd64'), source('fedora-arm64')]).toEqual([undefined, undefined]);
  });

  it('are created again when their cron or their DataSource is deleted', async () => {
    anSsp([fedora]);
    await sync();
    await kube.delete(dataSourceKind.type, { namespace, name: 'fedora' });
    await kube.delete(dataSourceKind.type, { namespace, name: 'win11' });
    await kube.delete(dataImportCronKind.type, { namespace, name: 'fedora-cron' });
    await sync();
    expect([crons(), labelOf('fedora')]).toEqual([['fedora-cron'], 'fedora-cron']);
    expect(source('win11')?.spec.source).toEqual({ pvc: { namespace, name: 'win11' } });
  });

  it('delete what belongs to an architecture that left the cluster, and ignore unknown architectures', async () => {
    const many = template('fedora-cron', 'fedora', {
      annotations: { 'ssp.kubevirt.io/dict.architectures': 'arm64,amd64,vax' },
    });
    const at = (...workloadArchitectures: string[]) => ({
      enableMultipleArchitectures: true,
      cluster: { controlPlaneArchitectures: ['amd64'], workloadArchitectures },
    });
    anSsp([many], at('amd64', 'arm64'));
    await sync();
    expect(crons()).toEqual(['fedora-cron-amd64', 'fedora-cron-arm64']);
    editSsp([many], at('amd64'));
    await sync();
    await sync();
    expect([crons(), source('fedora-arm64')]).toEqual([['fedora-cron-amd64'], undefined]);
    expect(source('fedora')?.spec.source).toEqual({ dataSource: { name: 'fedora-amd64' } });
  });

  it('refer to the former golden volume as long as their DataSource does, reconciled or not', async () => {
    const many = template('fedora-cron', 'fedora', {
      annotations: { 'ssp.kubevirt.io/dict.architectures': 'amd64' },
    });
    const cluster = { workloadArchitectures: ['amd64'] };
    volume('fedora');
    volume('fedora-amd64');
    const former = { pvc: { namespace, name: 'fedora' } };
    kube.seed(dataSourceKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: { name: 'fedora-amd64', namespace },
      spec: { source: former },
    });
    anSsp([many], { enableMultipleArchitectures: true, cluster });
    await sync();
    expect(crons()).toEqual([]);
    kube.edit(dataSourceKind.type, { name: 'fedora-amd64', namespace }, (object) => {
      object.status = { source: former, conditions: [{ type: 'Ready', status: 'True' }] } as never;
    });
    await sync();
    expect([crons(), labelOf('fedora-amd64')]).toEqual([[], undefined]);
  });

  it('keep using the golden volume from before there were architectures', async () => {
    volume('fedora');
    const many = template('fedora-cron', 'fedora', {
      annotations: { 'ssp.kubevirt.io/dict.architectures': 'amd64,arm64' },
    });
    anSsp([many], { enableMultipleArchitectures: true, cluster: { workloadArchitectures: ['amd64', 'arm64'] } });
    await sync();
    expect(crons()).toEqual(['fedora-cron-arm64']);
    expect(source('fedora-amd64')?.spec.source).toEqual(dangling);
  });
});

const aHco = (spec: HyperConverged['spec'], status?: HyperConverged['status']) =>
  kube.seed(hyperConvergeds, {
    apiVersion: 'hco.kubevirt.io/v1beta1',
    kind: 'HyperConverged',
    metadata: { name: 'hco', namespace: 'kubevirt-hyperconverged' },
    ...(spec === undefined ? {} : { spec }),
    ...(status === undefined ? {} : { status }),
  });

describe('a HyperConverged', () => {
  it('contains the common images, and custom ones next to them', async () => {
    aHco({ dataImportCronTemplates: [template('own', 'own')] });
    await sync();
    expect(crons()).toEqual(['centos-stream10-image-cron', 'centos-stream9-image-cron', 'fedora-image-cron', 'own']);
  });

  it('is not written while it is paused', async () => {
    aHco({});
    const at = { name: 'hco', namespace: 'kubevirt-hyperconverged' };
    kube.edit(hyperConvergeds, at, (object) => {
      object.metadata.annotations = { 'kubevirt.io/operator.paused': 'true' };
    });
    await sync();
    expect(kube.all(hyperConvergeds)[0]?.status?.dataImportSchedule).toBeUndefined();
    kube.edit(hyperConvergeds, at, (object) => {
      object.metadata.annotations = {};
    });
    await sync();
    expect(kube.all(hyperConvergeds)[0]?.status?.dataImportSchedule).toBeDefined();
  });

  it('chooses a random schedule for the common images once, and keeps it in its status', async () => {
    const hco = () => kube.all(hyperConvergeds)[0]!;
    const schedules = () =>
      new Map(kube.all(dataImportCronKind.type).map(({ metadata, spec }) => [metadata.name, spec.schedule]));
    aHco({ dataImportCronTemplates: [template('own', 'own')] });
    await sync();
    const drawn = hco().status?.dataImportSchedule ?? '';
    expect(drawn).toMatch(/^[0-5]?\d ([0-9]|1[01])\/12 \* \* \*$/);
    expect([schedules().get('fedora-image-cron'), schedules().get('own')]).toEqual([drawn, '0 */12 * * *']);
    // Another process, after a restart, a crash or scaling to zero: no new random schedule, and no write.
    const before = kube.calls.length;
    await syncTemplates({ ...deps });
    expect(kube.calls.slice(before).filter(({ verb }) => verb !== 'get' && verb !== 'list')).toEqual([]);
    // Restored from a backup, with another UID.
    const { metadata, ...kept } = hco();
    await kube.delete(hyperConvergeds, metadata);
    kube.seed(hyperConvergeds, { ...kept, metadata: { name: metadata.name, namespace: metadata.namespace! } });
    await sync();
    expect([hco().status?.dataImportSchedule, schedules().get('fedora-image-cron')]).toEqual([drawn, drawn]);
    kube.edit(hyperConvergeds, { name: 'hco', namespace: 'kubevirt-hyperconverged' }, (object) => {
      object.status = { dataImportSchedule: '7 3/12 * * *' };
    });
    await sync();
    expect(schedules().get('fedora-image-cron')).toBe('7 3/12 * * *');
  });

  it('leaves the schedule to its operator, and reports when it cannot be stored', async () => {
    const operated = { conditions: [{ type: 'Available', status: 'True' as const }] };
    aHco({}, operated);
    await sync();
    expect(kube.all(hyperConvergeds)[0]?.status).toEqual(operated);
    kube.edit(hyperConvergeds, { name: 'hco', namespace: 'kubevirt-hyperconverged' }, (object) => {
      object.status = {};
    });
    kube.failNext(
      { verb: 'patch', resource: 'hyperconvergeds/status' },
      { error: new Denied('no right'), when: 'before' },
    );
    await syncTemplates(deps);
    expect(eventsNow()).toContain('ScheduleNotKept');
    expect(crons().length).toBe(3);
  });

  it('reads the architectures of the nodes', async () => {
    for (const [name, architecture] of [
      ['a', 'amd64'],
      ['b', 'arm64'],
    ] as const) {
      const status = { nodeInfo: { architecture } };
      kube.seed(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name }, status });
    }
    aHco({ enableMultiArchBootImageImport: true });
    await sync();
    expect(crons()).toContain('fedora-image-cron-arm64');
  });

  it('uses the architectures of nodes that run machines, not those of the control plane', async () => {
    const nodeInfo = { controlPlaneArchitectures: ['amd64'], workloadsArchitectures: ['arm64'] };
    aHco({ enableMultiArchBootImageImport: true }, { nodeInfo });
    await sync();
    expect(crons().filter((name) => name.startsWith('fedora'))).toEqual(['fedora-image-cron-arm64']);
  });

  it('is left to its operator when there is one, unless configured otherwise', async () => {
    aHco({}, { conditions: [{ type: 'Available', status: 'True' }] });
    await sync();
    expect(crons()).toEqual([]);
    expect(eventsNow()).toEqual(['LeftToOperator']);
    deps = { ...deps, templates: { ...settings, mode: 'serve' } };
    await sync();
    expect(crons().length).toBe(3);
    deps = { ...deps, templates: settings };
    await sync();
    // The operator is now responsible for the created objects.
    expect(crons().length).toBe(3);
  });

  it('changes nothing while its list is contradictory', async () => {
    aHco({ dataImportCronTemplates: [template('own', 'own')] });
    await sync();
    kube.edit(hyperConvergeds, { name: 'hco', namespace: 'kubevirt-hyperconverged' }, (hco) => {
      hco.spec = { dataImportCronTemplates: [template('own', 'own'), template('own', 'own')] } as never;
    });
    await sync();
    expect(crons()).toContain('own');
    expect(eventsNow()).toContain('DuplicateTemplate');
  });

  it('leaves to an SSP what both request', async () => {
    anSsp([fedora]);
    aHco({});
    await sync();
    expect(crons()).toEqual(['centos-stream10-image-cron', 'centos-stream9-image-cron', 'fedora-cron']);
    expect(eventsNow()).toContain('DuplicateDataSource');
  });

  it('has no conflict when one requests the source and the other its cron', async () => {
    anSsp([fedora]);
    aHco({});
    await sync();
    const cronLabel = 'cdi.kubevirt.io/dataImportCron';
    expect(source('centos-stream9')?.metadata.labels?.[cronLabel]).toBe('centos-stream9-image-cron');
    const before = kube.calls.length;
    await sync();
    const writes = kube.calls.slice(before).filter(({ verb }) => verb === 'patch' || verb === 'create');
    expect(writes).toEqual([]);
  });
});

describe('a cluster without these kinds', () => {
  const lacks = (resource: string) =>
    kube.failNext({ verb: 'list', resource }, { error: new NotFound('no such kind'), when: 'before' });

  it('is checked once for each API version', async () => {
    for (const resource of ['hyperconvergeds', ...sspVersions.map(() => 'ssps')]) lacks(resource);
    expect((await syncTemplates(deps)).kind).toBe('done');
    expect(kube.calls.length).toBe(1 + sspVersions.length);
  });

  it.each([1, 2])('or with an SSP of an older version (%i before) creates crons from its templates', async (newer) => {
    anSsp([template('fedora-cron', 'fedora')]);
    for (let count = 0; count < newer; count++) lacks('ssps');
    await syncTemplates(deps);
    expect(crons()).toContain('fedora-cron');
  });

  it('receives the events of an SSP in each of its versions', () => {
    const isKnown = (version: string) => holdsTemplates({ apiVersion: `ssp.kubevirt.io/${version}`, kind: 'SSP' });
    expect([...sspVersions, 'v1'].map(isKnown)).toEqual([true, true, true, false]);
  });
});
