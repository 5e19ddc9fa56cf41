// A golden image whose versions come to their end: warnings and refusals as kubectl shows them, and what nothing keeps any more.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { namespaces, persistentVolumeClaims, persistentVolumes, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { kubectlWith } from '#test/support/admission-server.ts';
import { runBullion } from '#test/support/bullion.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { type GoldenRegistry, startGoldenRegistry } from '#test/support/golden-registry.ts';
import { conditionOf, isUpToDate, pointsTo, untilOffered, versionOf } from '#test/support/golden.ts';
import { until as untilObject } from '#test/support/until.ts';
import { hasRegistry } from '#test/support/registry/server.ts';

const namespace = 'golden-images';
const { type } = goldenImagePolicyKind;
const reason = 'support has ended';

describe.skipIf(!hasRegistry())('a golden image at its end', { timeout: 600_000 }, () => {
  let golden: GoldenRegistry;
  let kubectl: ReturnType<typeof kubectlWith>;
  const directory = temporaryDirectory();
  beforeAll(async () => {
    golden = await startGoldenRegistry(namespace);
    kubectl = kubectlWith(golden.cluster.kubeconfigPath, directory);
  }, 300_000);
  afterAll(() => golden?.close());

  const bullion = async (...args: readonly string[]) => {
    const to = ['--kubeconfig', golden.cluster.kubeconfigPath, '-n', namespace];
    const { code, out, err } = await runBullion([...args, ...to]);
    return { code, text: out + err };
  };
  const until = (isSo: (policy: GoldenImagePolicy) => boolean) =>
    golden.flow.until(type, 'fedora', (policy) => policy !== undefined && isSo(policy));
  const publish = async (seed: string): Promise<string> => {
    const { digest } = await golden.push('fedora', seed);
    await golden.flow.pollNow('fedora');
    const version = versionOf('fedora', digest);
    await golden.flow.until(
      dataImportCronKind.type,
      'fedora',
      (cron) => isUpToDate(cron) && cron?.status?.lastImportedPVC?.name === version,
    );
    await untilOffered(golden.flow, 'fedora', version);
    return version;
  };
  const aDisk = (name: string, annotations: Readonly<Record<string, string>> = {}) => ({
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { namespace, name, annotations },
    spec: {
      sourceRef: { kind: 'DataSource', name: 'fedora' },
      storage: { storageClassName: 'local', resources: { requests: { storage: '16Mi' } } },
    },
  });
  const plan = (...objects: readonly object[]) => {
    const path = join(directory, 'plan.json');
    writeFileSync(path, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
    return bullion('plan', '-f', path, '--plain-registry', golden.registry.host);
  };
  /** As a person applies it: what kubectl says. */
  const apply = async (name: string, annotations: Readonly<Record<string, string>> = {}) => {
    const disk = aDisk(name, annotations);
    const { stdout, stderr } = await kubectl(['apply', '-f', '-'], disk);
    return { isMade: stdout.includes('created'), text: stdout + stderr };
  };
  const isFilled = (name: string) =>
    golden.flow.until(dataVolumes, name, (disk) => disk?.status?.phase === 'Succeeded');

  it('warns, refuses, takes who insists, and collects what nothing keeps', async () => {
    await golden.push('fedora', 'v1');
    await golden.aCron('fedora', { importsToKeep: 9 });
    const aPolicy = {
      apiVersion: 'bullion.dev/v1alpha1',
      kind: 'GoldenImagePolicy',
      metadata: { namespace, name: 'fedora' },
      spec: { dataImportCrons: { names: ['fedora'] }, channels: [{ name: 'stable', dataSource: 'fedora' }] },
    };
    const aCron = {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataImportCron',
      metadata: { namespace, name: 'other' },
      spec: { schedule: '', managedDataSource: 'other', ...golden.fed({ registry: { url: golden.urlOf('fedora') } }) },
    };
    await golden.cluster.kube.create(type, aPolicy);
    const one = await publish('v1');
    const two = await publish('v2');
    const three = await publish('v3');
    const foreseen = await plan(aDisk('good'), aCron, {
      ...aPolicy,
      spec: { ...aPolicy.spec, retention: { keep: 1 } },
    });
    expect(foreseen.code).toBe(0);
    expect(foreseen.text).toMatch(
      /datavolume\/good would be created\n(?:\s+makes\s+VolumeSnapshot .*\n)?\s+makes\s+PersistentVolumeClaim good: .* of class local, .*\n\s+clone\s+\S+: /,
    );
    expect(foreseen.text).toMatch(/dataimportcron\/other would be created\n\s+source\s+reached from here: .*sha256:/);
    expect(foreseen.text).toMatch(/makes\s+DataVolume other-/);
    expect(foreseen.text).toMatch(/goldenimagepolicy\/fedora would be changed/);
    expect((await apply('good')).text).not.toMatch(/Warning/);

    expect((await bullion('deprecate', three, '--replacement', 'fedora-42', '--reason', reason)).code).toBe(0);
    await golden.flow.until(dataSourceKind.type, 'fedora', (source) => conditionOf(source, 'Deprecated') !== undefined);
    const warned = await apply('warned');
    expect(warned.isMade).toBe(true);
    expect(warned.text).toMatch(/Warning:.*is deprecated.*support has ended; use DataSource fedora-42 instead/);
    expect((await bullion('why', 'datasource/fedora')).text).toMatch(/Deprecated\s+True, Deprecated/);
    expect((await bullion('get', 'das')).text).toMatch(/1 deprecated or obsolete not listed/);
    expect((await bullion('get', 'das', '--deprecated')).text).toMatch(/datasource\/fedora/);

    expect((await bullion('deprecate', 'stable', '--obsolete', '--reason', reason)).code).toBe(0);
    await until(({ status }) => status?.lifecycle === 'Obsolete');
    await golden.flow.until(
      dataSourceKind.type,
      'fedora',
      (source) => conditionOf(source, 'Deprecated')?.reason === 'Obsolete',
    );
    const stopped = await plan(aDisk('refused'));
    expect([stopped.code, stopped.text]).toEqual([
      1,
      expect.stringMatching(/would be refused\n\s+because\s+.*obsolete/),
    ]);
    const refused = await apply('refused');
    expect([refused.isMade, refused.text]).toEqual([
      false,
      expect.stringMatching(/is obsolete since .*support has ended.*bullion\.dev\/allow-obsolete=true/),
    ]);
    const forced = await apply('forced', { 'bullion.dev/allow-obsolete': 'true' });
    expect([forced.isMade, forced.text]).toEqual([true, expect.stringMatching(/Warning:.*is obsolete/)]);
    for (const name of ['good', 'warned', 'forced']) await isFilled(name);

    expect((await bullion('deprecate', 'stable', '--undo')).code).toBe(0);
    expect((await bullion('deprecate', three, '--undo')).code).toBe(0);
    await golden.flow.until(dataSourceKind.type, 'fedora', (source) => conditionOf(source, 'Deprecated') === undefined);
    expect((await apply('again')).text).not.toMatch(/Warning/);
    await isFilled('again');

    const retention = { keep: 1, undeleteFor: '1h' };
    await golden.cluster.kube.mergePatch(type, { namespace, name: 'fedora' }, { spec: { retention } });
    const preview = (await bullion('prune', 'fedora', '--dry-run')).text;
    expect(preview).toMatch(new RegExp(`${one}.*(would be|is) removed`));
    expect(preview).toMatch(new RegExp(`${two}.*stays: channel stable would go back to it`));
    expect(preview).toMatch(/1 of 3 versions can be removed/);
    expect((await bullion('prune', 'fedora')).code).toBe(1);
    expect((await bullion('prune', 'fedora', '--yes')).code).toBe(0);
    await golden.flow.until(persistentVolumeClaims, one, (claim) => claim === undefined);
    const left = await golden.cluster.kube.list(persistentVolumeClaims, { namespace, limit: 50 });
    expect(left.items.map(({ metadata }) => metadata.name)).toEqual(expect.arrayContaining([two, three, 'good']));
    expect((await bullion('undelete')).text).toMatch(new RegExp(one));
    expect((await bullion('events', 'fedora', '-o', 'json')).text).toContain('dev.bullion.version.deprecated');
  });

  it('gives back a version that is kept as a snapshot, with its bytes', async () => {
    const { cluster, flow } = golden;
    const { kube } = cluster;
    const { provisioner } = (await kube.get(storageClasses, { name: 'local' }))!;
    await kube.create(storageClasses, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'snapshots' },
      provisioner,
      volumeBindingMode: 'Immediate',
    });
    await flow.untilCluster(storageProfiles, 'snapshots', (profile) => profile !== undefined);
    await kube.mergePatch(storageProfiles, { name: 'snapshots' }, { spec: { dataImportCronSourceFormat: 'snapshot' } });
    const { digest } = await golden.push('debian', 'debian');
    const version = versionOf('debian', digest);
    await golden.aCron('debian', {}, { storageClassName: 'snapshots' });
    await kube.create(type, {
      apiVersion: 'bullion.dev/v1alpha1',
      kind: 'GoldenImagePolicy',
      metadata: { namespace, name: 'debian' },
      spec: {
        dataImportCrons: { names: ['debian'] },
        channels: [{ name: 'stable', dataSource: 'debian' }],
        retention: { keep: 9, undeleteFor: '1h' },
      },
    });
    await flow.until(dataSourceKind.type, 'debian', pointsTo(version, 'snapshot'));
    const snapshot = await flow.until(volumeSnapshots, version, (one) => one?.status?.readyToUse === true);
    const content = snapshot.status?.boundVolumeSnapshotContentName ?? '';
    const kept = (policy: string) =>
      flow.untilCluster(volumeSnapshotContents, content, (one) => one?.spec.deletionPolicy === policy);
    await kept('Retain');

    expect((await kubectl(['delete', 'volumesnapshot', version, '-n', namespace])).stdout).toContain('deleted');
    await flow.until(dataImportCronKind.type, 'debian', (cron) =>
      (cron?.status?.deleted ?? []).some(({ name }) => name === version),
    );
    expect(await kube.get(volumeSnapshotContents, { name: content })).toBeDefined();
    expect((await bullion('undelete')).text).toMatch(new RegExp(`${version} .* in (?:59|1h)`));
    expect((await bullion('undelete', version)).code).toBe(0);
    const back = await flow.until(volumeSnapshots, version, (one) => one?.status?.readyToUse === true);
    expect(back.metadata.uid).not.toBe(snapshot.metadata.uid);
    await flow.until(dataSourceKind.type, 'debian', pointsTo(version, 'snapshot'));
    await kube.create(dataVolumes, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { namespace, name: 'of-the-snapshot' },
      spec: {
        sourceRef: { kind: 'DataSource', name: 'debian' },
        storage: { storageClassName: 'snapshots', resources: { requests: { storage: '16Mi' } } },
      },
    });
    await isFilled('of-the-snapshot');
    const bytes = noise('debian', 64 * 1024);
    expect((await golden.contentOf('of-the-snapshot')).equals(bytes)).toBe(true);
  });

  it('gives back what somebody deleted, with its bytes, and holds no namespace for it', async () => {
    const { kube } = golden.cluster;
    const name =
      (await golden.cluster.kube.get(dataSourceKind.type, { namespace, name: 'fedora' }))?.spec.source.pvc?.name ?? '';
    const bytes = await golden.contentOf(name);
    await kube.mergePatch(type, { namespace, name: 'fedora' }, { spec: { retention: { keep: 9, undeleteFor: '1h' } } });
    const four = await publish('v4');
    const claim = await golden.flow.until(persistentVolumeClaims, name, (one) => one?.spec.volumeName !== undefined);
    const storage = claim.spec.volumeName ?? '';
    const kept = (policy: string) =>
      golden.flow.untilCluster(persistentVolumes, storage, (one) => one?.spec.persistentVolumeReclaimPolicy === policy);
    const isDeleted = (isSo: boolean) => (cron: DataImportCron | undefined) =>
      (cron?.status?.deleted ?? []).some((one) => one.name === name) === isSo;
    await kept('Retain');
    expect((await kubectl(['delete', 'datavolume', name, '-n', namespace])).stdout).toContain('deleted');
    await golden.flow.until(persistentVolumeClaims, name, (one) => one === undefined);
    await golden.flow.until(dataImportCronKind.type, 'fedora', isDeleted(true));
    expect((await bullion('undelete')).text).toMatch(new RegExp(`${name} .* in (?:59|1h)`));
    expect((await bullion('why', 'dic/fedora')).text).toMatch(
      new RegExp(`Deleted\\s+${name}, [\\s\\S]*bullion\\s+undelete`),
    );
    expect((await bullion('prune', 'fedora', '--dry-run')).text).toMatch(new RegExp(`${name} was deleted`));

    expect((await bullion('undelete', name)).code).toBe(0);
    await golden.flow.until(dataVolumes, name, (disk) => disk?.status?.phase === 'Succeeded');
    await golden.flow.until(dataImportCronKind.type, 'fedora', isDeleted(false));
    const back = await golden.flow.until(persistentVolumeClaims, name, (one) => one?.status?.phase === 'Bound');
    expect(back.spec.volumeName).toBe(storage);
    expect((await golden.contentOf(name)).equals(bytes)).toBe(true);
    expect(await golden.flow.get(dataSourceKind.type, 'fedora')).toMatchObject({
      spec: { source: { pvc: { name: four } } },
    });

    await kube.delete(namespaces, { name: namespace });
    await untilObject(kube, namespaces, { name: namespace }, (one) => one === undefined);
    const left = async () =>
      (await kube.list(persistentVolumes, { limit: 50 })).items.map(({ metadata }) => metadata.name);
    await expect.poll(left, { timeout: 60_000 }).toEqual([]);
  });
});
