// Which versions a cron keeps, and what is left when it is deleted.
import { describe, expect, it } from 'vitest';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { tick } from '#shared/resources/sweep.ts';
import { nameOf, namespace, useCronWorld } from '#test/support/cron-world.ts';

const world = useCronWorld();
const { aCron, all, conditionsOf, cronNow, reconcileCron, finishImport, importNow, importVersion, poll, sourceNow } =
  world;

describe('the versions of a cron', () => {
  it('keeps the configured number of versions, and every version that is in use', async () => {
    aCron({ importsToKeep: 2 });
    for (const char of ['a', 'b', 'c']) await importVersion(char);
    expect(all().volumes).toEqual([nameOf('b'), nameOf('c')]);
    world.kube.seed(dataSourceKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: { namespace: 'elsewhere', name: 'pinned' },
      spec: { source: { pvc: { namespace, name: nameOf('b') } } },
    });
    await importVersion('d');
    await importVersion('e');
    expect(all().volumes).toEqual([nameOf('b'), nameOf('d'), nameOf('e')].filter((name) => name !== nameOf('x')));
  });

  it('keeps what is backed up: what its user wants to keep, and what has snapshots', async () => {
    aCron({ importsToKeep: 1 });
    await importVersion('a');
    world.kube.edit(persistentVolumeClaims, { namespace, name: nameOf('a') }, ({ metadata }) => {
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
    world.kube.seed(volumeSnapshots, backup);
    await importVersion('c');
    expect(all().volumes).toEqual([nameOf('a'), nameOf('b'), nameOf('c')]);
    await world.kube.delete(volumeSnapshots, backup.metadata);
    await importVersion('d');
    expect(all().volumes).toEqual([nameOf('a'), nameOf('d')]);
  });

  it('keeps what is locked, until it is unlocked', async () => {
    aCron({ importsToKeep: 1 });
    await importVersion('a');
    const lock = (value: string) =>
      world.kube.edit(persistentVolumeClaims, { namespace, name: nameOf('a') }, ({ metadata }) => {
        metadata.labels = { ...metadata.labels, [labels.protected]: value };
      });
    lock('true');
    await importVersion('b');
    await importVersion('c');
    expect(all().volumes).toEqual([nameOf('a'), nameOf('c')]);
    lock('false');
    await importVersion('d');
    expect(all().volumes).toEqual([nameOf('d')]);
  });

  it('never removes the offered version, even if it is configured to keep none', async () => {
    aCron({ importsToKeep: 0 });
    await importVersion('a');
    await importVersion('b');
    expect(all().volumes).toEqual([nameOf('b')]);
    expect(cronNow().status?.importsToKeep).toBe(1);
  });

  it('removes nothing when that is configured', async () => {
    aCron({ garbageCollect: 'Never' });
    for (const char of ['a', 'b', 'c']) await importVersion(char);
    expect(all().volumes.length).toBe(3);
  });

  it('leaves everything behind when it is deleted, except unfinished imports', async () => {
    aCron();
    await importVersion('a');
    await poll('b');
    await world.kube.delete(dataImportCronKind.type, { namespace, name: 'cron' });
    await reconcileCron();
    await reconcileCron();
    expect(all()).toEqual({ imports: [nameOf('a')], volumes: [nameOf('a')] });
    expect(world.kube.all(dataImportCronKind.type)).toEqual([]);
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
  });

  it('is deleted at once although its source was never reachable and its import hangs', async () => {
    world.answer = () => ({
      is: 'failed',
      reason: 'InvalidInput',
      message: 'ConfigMap golden-images/ca does not exist',
    });
    aCron();
    await tick(world.deps);
    expect(conditionsOf()).toMatchObject({ Degraded: 'True/PollFailed', UpToDate: 'False/NoDigest' });
    await poll('a');
    await finishImport(nameOf('a'), 'ImportInProgress');
    await world.kube.delete(dataImportCronKind.type, { namespace, name: 'cron' });
    await reconcileCron();
    world.kube.collectGarbage();
    await reconcileCron();
    expect(world.kube.all(dataImportCronKind.type)).toEqual([]);
    expect(all()).toEqual({ imports: [], volumes: [] });
  });

  it('deletes everything with it when that is configured', async () => {
    aCron({ retentionPolicy: 'None' });
    await importVersion('a');
    expect(importNow().metadata.labels).toMatchObject({ [cdiLabels.cleanup]: 'true' });
    expect(sourceNow().metadata.ownerReferences).toMatchObject([
      { kind: 'DataImportCron', controller: true, blockOwnerDeletion: false },
    ]);
    await world.kube.delete(dataImportCronKind.type, { namespace, name: 'cron' });
    await reconcileCron();
    world.kube.collectGarbage();
    await reconcileCron();
    expect(all()).toEqual({ imports: [], volumes: [] });
    expect([...world.kube.all(dataSourceKind.type), ...world.kube.all(dataImportCronKind.type)]).toEqual([]);
  });
});
