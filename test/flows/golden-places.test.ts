// Conformance scenarios of DataImportCrons about the form and storage class of versions (13, 14, 16, 20), and about metrics (21). From a real registry.
// The numbers are those of the table in shared/resources/data-import-cron/README.md.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { volumeSnapshotClasses, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { runBullion } from '#test/support/bullion.ts';
import { noise } from '#test/support/disk.ts';
import { conditionOf, isUpToDate, pointsTo, untilOffered, versionOf } from '#test/support/golden.ts';
import { type GoldenRegistry, startGoldenRegistry } from '#test/support/golden-registry.ts';
import { until } from '#test/support/until.ts';
import { hasRegistry } from '#test/support/registry/server.ts';

const namespace = 'golden-images';
const crons = dataImportCronKind.type;
const bytes = 64 * 1024;

describe.skipIf(!hasRegistry())('storage classes of golden images', { timeout: 600_000 }, () => {
  let golden: GoldenRegistry;
  let cluster: GoldenRegistry['cluster'];
  let flow: GoldenRegistry['flow'];
  let push: GoldenRegistry['push'];
  let aCron: GoldenRegistry['aCron'];
  let contentOf: GoldenRegistry['contentOf'];
  beforeAll(async () => {
    golden = await startGoldenRegistry(namespace);
    ({ cluster, flow, push, aCron, contentOf } = golden);
  }, 300_000);
  afterAll(() => golden?.close());

  const isGone = (object: unknown) => object === undefined;

  it('13, 14: a version becomes a snapshot of the class in the profile, is cloned the same, and becomes a volume again', async () => {
    const { provisioner } = (await cluster.kube.get(storageClasses, { name: 'local' }))!;
    await cluster.kube.create(storageClasses, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'formed' },
      provisioner,
      allowVolumeExpansion: true,
      volumeBindingMode: 'Immediate',
    });
    const { apiVersion, kind, driver, deletionPolicy } = (await cluster.kube.get(volumeSnapshotClasses, {
      name: 'local',
    }))!;
    await cluster.kube.create(volumeSnapshotClasses, {
      apiVersion,
      kind,
      metadata: { name: 'images' },
      driver,
      deletionPolicy,
    });
    const { digest } = await push('formed', 'formed');
    const version = versionOf('formed', digest);
    await aCron('formed', { importsToKeep: 2 }, { storageClassName: 'formed' });
    await untilOffered(flow, 'formed', version);
    const clone = async (name: string): Promise<void> => {
      await cluster.kube.create(dataVolumeKind.type, {
        apiVersion: 'cdi.kubevirt.io/v1beta1',
        kind: 'DataVolume',
        metadata: { namespace, name, annotations: { [cdiAnnotations.immediateBinding]: 'true' } },
        spec: { sourceRef: { kind: 'DataSource', name: 'formed' }, storage: { storageClassName: 'formed' } },
      });
      await flow.until(dataVolumes, name, (object) => object?.status?.phase === 'Succeeded');
      expect(await contentOf(name)).toEqual(noise('formed', bytes));
    };
    await clone('of-the-volume');
    const ask = (format: string) =>
      cluster.kube.mergePatch(
        storageProfiles,
        { name: 'formed' },
        {
          metadata: { annotations: { [cdiAnnotations.snapshotClass]: 'images' } },
          spec: { dataImportCronSourceFormat: format },
        },
      );
    await flow.until(crons, 'formed', isUpToDate);
    await flow.untilCluster(storageProfiles, 'formed', (profile) => profile !== undefined);
    await ask('snapshot');
    const source = await flow.until(dataSourceKind.type, 'formed', pointsTo(version, 'snapshot'));
    expect(source.spec.source).toEqual({ snapshot: { namespace, name: version } });
    await flow.until(persistentVolumeClaims, version, isGone);
    expect(await flow.get(volumeSnapshots, version)).toMatchObject({
      metadata: {
        labels: { [cdiLabels.cron]: 'formed' },
        annotations: {
          [cdiAnnotations.advisedRestoreSize]: expect.any(String),
          [cdiAnnotations.sourceVolumeMode]: expect.stringMatching(/^(Block|Filesystem)$/),
        },
      },
      spec: { volumeSnapshotClassName: 'images' },
    });
    await clone('of-the-snapshot');
    await flow.until(crons, 'formed', isUpToDate);
    await ask('pvc');
    const again = await flow.until(dataSourceKind.type, 'formed', pointsTo(version));
    expect(again.spec.source).toEqual({ pvc: { namespace, name: version } });
    await flow.until(volumeSnapshots, version, isGone);
  });

  const defaultMark = 'storageclass.kubernetes.io/is-default-class';
  const markDefault = (name: string, isDefault: boolean) =>
    cluster.kube.mergePatch(
      storageClasses,
      { name },
      { metadata: { annotations: { [defaultMark]: isDefault ? 'true' : null } } },
    );
  const aClass = (name: string, provisioner: string) =>
    cluster.kube.create(storageClasses, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name },
      provisioner,
      volumeBindingMode: 'Immediate',
    });
  const metrics = async (): Promise<string> => (await fetch(cluster.metricsUrl)).text();
  const outdatedOf = (name: string, pending: string, value: number): string =>
    `kubevirt_cdi_dataimportcron_outdated{ns="${namespace}",cron_name="${name}",namespace="${namespace}",pending="${pending}"} ${value}`;
  const placeOf = async (version: string) => (await flow.get(persistentVolumeClaims, version))?.spec.storageClassName;

  it('lists disks of an earlier version as outdated, and what uses each image', async () => {
    const before = await flow.get(dataSourceKind.type, 'formed');
    const { digest } = await push('formed', 'newer');
    await flow.pollNow('formed');
    await untilOffered(flow, 'formed', versionOf('formed', digest));
    const bullion = async (...args: readonly string[]) =>
      (await runBullion([...args, '--kubeconfig', cluster.kubeconfigPath])).out;
    const { pvc } = before!.spec.source;
    const row = `datavolume/of-the-volume +- +${namespace}/formed +${pvc?.name} +${versionOf('formed', digest)} +1 `;
    expect(await bullion('outdated', '-A')).toMatch(new RegExp(row));
    expect(await bullion('outdated', '-n', 'default')).toBe('');
    expect(await bullion('consumers', 'datasource/formed', '-n', namespace, '-o', 'name')).toContain(
      'datavolume.cdi.kubevirt.io/of-the-volume\n',
    );
  });

  it('copies a version once into the class of its disks, where they are cloned, also for another namespace', async () => {
    const { digest } = await push('copied', 'copied');
    const version = versionOf('copied', digest);
    const block = { volumeMode: 'Block', accessModes: ['ReadWriteOnce'] };
    const fed = golden.fed(
      { registry: { url: golden.urlOf('copied') } },
      { storageClassName: 'local-plain', ...block },
    );
    await flow.aCron(
      'copied',
      { importsToKeep: 1, retentionPolicy: 'None', ...fed },
      { annotations: { [annotations.copyOnFirstUse]: 'true' } },
    );
    await untilOffered(flow, 'copied', version);
    const make = (name: string, place: string) =>
      cluster.kube.create(dataVolumeKind.type, {
        apiVersion: 'cdi.kubevirt.io/v1beta1',
        kind: 'DataVolume',
        metadata: { namespace: place, name },
        spec: {
          sourceRef: { kind: 'DataSource', name: 'copied', namespace },
          storage: { storageClassName: 'local', volumeMode: 'Block', resources: { requests: { storage: '32Mi' } } },
        },
      });
    const copies = async () => (await cluster.kube.list(dataVolumes, { labelSelector: labels.copyOf })).items;
    for (const [name, place] of [
      ['copied-first', 'elsewhere'],
      ['copied-second', namespace],
    ] as const) {
      await make(name, place);
      const disk = await until(
        cluster.kube,
        dataVolumes,
        { namespace: place, name },
        (one) => one?.status?.phase === 'Succeeded',
      );
      expect(disk?.status?.detail?.cloneStrategy).toBe('snapshot');
      expect(await contentOf(name, place)).toEqual(noise('copied', bytes));
    }
    const [copy, ...others] = await copies();
    expect({ namespace: copy?.metadata.namespace, others }).toEqual({ namespace, others: [] });
    expect(copy?.status?.detail?.cloneStrategy).toBe('copy');
    await flow.remove(crons, 'copied');
    await flow.until(dataVolumes, copy!.metadata.name, isGone);
    await flow.until(persistentVolumeClaims, copy!.metadata.name, isGone);
    expect(await contentOf('copied-first', 'elsewhere')).toEqual(noise('copied', bytes));
  });

  it('16: versions use the default class: they move with it, wait for one, and leave one that provisions no volumes', async () => {
    const { provisioner } = (await cluster.kube.get(storageClasses, { name: 'local' }))!;
    await aClass('second', provisioner);
    // A well-known driver that is not installed here.
    await aClass('idle', 'ebs.csi.aws.com');
    const moved = versionOf('moved', (await push('moved', 'moved')).digest);
    await aCron('moved');
    await untilOffered(flow, 'moved', moved);
    expect(await placeOf(moved)).toBe('local');
    // Another default: the version stays in use until the new one is ready, and is then deleted.
    await markDefault('local', false);
    await markDefault('second', true);
    const source = await flow.until(
      dataSourceKind.type,
      'moved',
      (object) => object?.spec.source.pvc !== undefined && object.spec.source.pvc.name !== moved,
    );
    expect(await placeOf(source.spec.source.pvc?.name ?? '')).toBe('second');
    expect(await contentOf(source.spec.source.pvc?.name ?? '')).toEqual(noise('moved', bytes));
    await flow.until(persistentVolumeClaims, moved, isGone);
    // No default at all: the claim is created without a class.
    await markDefault('second', false);
    const waiting = versionOf('waiting', (await push('waiting', 'waiting')).digest);
    await aCron('waiting');
    const claim = await flow.until(persistentVolumeClaims, waiting, (object) => object !== undefined);
    expect([claim.spec.storageClassName, claim.status?.phase]).toEqual([undefined, 'Pending']);
    await flow.until(
      dataVolumes,
      waiting,
      (object) => object?.status?.conditions?.some(({ reason }) => reason === 'ErrClaimNotValid') === true,
    );
    await flow.until(crons, 'waiting', (cron) => conditionOf(cron, 'Degraded')?.reason === 'StorageClassNotFound');
    expect(await metrics()).toContain(outdatedOf('waiting', 'true', 1));
    // First a class that provisions no volumes, and then one that does: the claim that waits in the wrong one is deleted.
    await markDefault('idle', true);
    await flow.until(
      persistentVolumeClaims,
      waiting,
      (object) => object?.spec.storageClassName === 'idle' && object.status?.phase === 'Pending',
    );
    await markDefault('idle', false);
    await markDefault('local', true);
    await untilOffered(flow, 'waiting', waiting);
    expect(await placeOf(waiting)).toBe('local');
    for (const name of ['moved', 'waiting']) await flow.remove(crons, name);
  });

  it('20: a class has the access mode ReadWriteOnce when its profile says so, unless the template sets another', async () => {
    const { provisioner } = (await cluster.kube.get(storageClasses, { name: 'local' }))!;
    await aClass('single', provisioner);
    await flow.untilCluster(storageProfiles, 'single', (profile) => profile !== undefined);
    await cluster.kube.mergePatch(
      storageProfiles,
      { name: 'single' },
      {
        metadata: { annotations: { [cdiAnnotations.singleWriter]: 'true' } },
        spec: { claimPropertySets: [{ volumeMode: 'Filesystem', accessModes: ['ReadWriteMany'] }] },
      },
    );
    const modesOf = async (name: string, storage: object) => {
      const version = versionOf(name, (await push(name, name)).digest);
      await aCron(name, {}, { storageClassName: 'single', ...storage });
      return (await flow.until(persistentVolumeClaims, version, (object) => object !== undefined)).spec.accessModes;
    };
    expect(await modesOf('one-writer', {})).toEqual(['ReadWriteOnce']);
    expect(await modesOf('many-writers', { accessModes: ['ReadWriteMany'] })).toEqual(['ReadWriteMany']);
  });

  it('21: metrics report what is outdated and what happened, and nothing about a deleted cron', async () => {
    const { digest } = await push('watched', 'watched');
    const outdated = (pending: string, value: number) => outdatedOf('watched', pending, value);
    await aCron('watched', { schedule: '' });
    await flow.until(crons, 'watched', (cron) => cron?.status?.conditions !== undefined);
    expect(await metrics()).toContain(outdated('true', 1));
    await flow.annotate('watched', { [cdiAnnotations.desiredDigest]: digest });
    await untilOffered(flow, 'watched', versionOf('watched', digest));
    await flow.until(crons, 'watched', isUpToDate);
    const told = await metrics();
    expect(told).toContain(outdated('false', 0));
    expect(told).toContain(`bullion_golden_image_events{ns="${namespace}",cron_name="watched",event="imported"} 1`);
    await flow.annotate('watched', { [cdiAnnotations.desiredDigest]: `sha256:${'0'.repeat(64)}` });
    await flow.until(crons, 'watched', (cron) => conditionOf(cron, 'Degraded')?.reason === 'ImportFailed');
    expect(await metrics()).toContain(outdated('false', 1));
    await flow.remove(crons, 'watched');
    await flow.until(crons, 'watched', isGone);
    expect(await metrics()).not.toContain(`dataimportcron_outdated{ns="${namespace}",cron_name="watched"`);
  });
});
