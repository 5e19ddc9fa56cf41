// Where versions are stored: the class, also one that is no longer the default, and as a volume or a snapshot.
import { describe, expect, it } from 'vitest';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { isMisplaced } from '#shared/resources/data-import-cron/misplaced.ts';
import { aStorageClass } from '#test/support/builders.ts';
import { nameOf, namespace, released, useCronWorld, preference } from '#test/support/cron-world.ts';

const world = useCronWorld();
const { aCron, all, cronNow, reconcileCron, finishImport, importNow, importVersion, poll, sourceNow } = world;

describe('the storage class of a version', () => {
  it('changes to the new default class while the old version stays in use', async () => {
    aCron();
    await importVersion('a');
    expect(cronNow().metadata.annotations?.[cdiAnnotations.storageClass]).toBe('local');
    world.kube.seed(
      storageClasses,
      aStorageClass('fast', {
        metadata: { name: 'fast', annotations: { 'storageclass.kubevirt.io/is-default-virt-class': 'true' } },
      }),
    );
    await reconcileCron();
    const moved = importNow().metadata.name;
    expect(moved).toMatch(new RegExp(`^${nameOf('a')}-[0-9a-f]{8}$`));
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
    await finishImport(moved, 'Succeeded', 'fast');
    expect(sourceNow().spec.source.pvc?.name).toBe(moved);
    expect(all().volumes).toEqual([moved]);
    expect(cronNow().metadata.annotations?.[cdiAnnotations.storageClass]).toBe('fast');
    await reconcileCron();
    expect(all().imports).toEqual([moved]);
  });

  const { source } = released.template!.spec;
  const resources = { requests: { storage: '5Gi' } };
  it.each<[what: string, form: object]>([
    ['a claim that is written out', { pvc: { accessModes: ['ReadWriteOnce'], resources } }],
    ['an archive', { contentType: 'archive', storage: { resources } }],
  ])(
    'is the default class of the cluster for %s, whatever the default for virtual disks, and does not change again',
    async (_what, form) => {
      const fast = aStorageClass('fast', {
        metadata: { name: 'fast', annotations: { 'storageclass.kubevirt.io/is-default-virt-class': 'true' } },
      });
      world.kube.seed(storageClasses, fast);
      aCron({ template: { spec: { source, ...form } } });
      await importVersion('a');
      await reconcileCron();
      expect(all()).toEqual({ imports: [nameOf('a')], volumes: [nameOf('a')] });
      expect(cronNow().metadata.annotations?.[cdiAnnotations.storageClass]).toBe('local');
      const facts = { classes: world.kube.all(storageClasses), snapshotClasses: [], profiles: [] };
      expect(isMisplaced(cronNow(), facts)).toBe(false);
      // Of disks that are not written out it is another.
      const { pvc: _, contentType: __, ...disk } = { storage: { resources }, ...form } as Record<string, unknown>;
      const changed = { ...cronNow(), spec: { ...cronNow().spec, template: { spec: { source, ...disk } } } };
      expect(isMisplaced(changed, facts)).toBe(true);
    },
  );

  it('causes a restart of an import that waits in a class that is no longer the default', async () => {
    aCron();
    await poll('a');
    await finishImport(nameOf('a'), 'Pending');
    const { uid } = importNow().metadata;
    world.kube.seed(
      storageClasses,
      aStorageClass('fast', {
        metadata: { name: 'fast', annotations: { 'storageclass.kubevirt.io/is-default-virt-class': 'true' } },
      }),
    );
    await reconcileCron();
    world.kube.collectGarbage();
    await reconcileCron();
    expect(importNow().metadata.name).toBe(nameOf('a'));
    expect(importNow().metadata.uid).not.toBe(uid);
  });

  it('changes to a snapshot when the class requests it, and back to a volume', async () => {
    world.kube.seed(storageProfiles, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'StorageProfile',
      metadata: { name: 'local' },
      status: { dataImportCronSourceFormat: 'snapshot' },
    });
    aCron();
    await importVersion('a');
    expect(world.kube.all(volumeSnapshots)[0]).toMatchObject({
      metadata: {
        name: nameOf('a'),
        labels: preference,
        annotations: { [cdiAnnotations.advisedRestoreSize]: '5Gi', [cdiAnnotations.sourceVolumeMode]: 'Filesystem' },
      },
    });
    expect(sourceNow().spec.source).toEqual({});
    world.kube.edit(volumeSnapshots, { namespace, name: nameOf('a') }, (snapshot) => {
      snapshot.status = { readyToUse: true };
    });
    await reconcileCron();
    world.kube.collectGarbage();
    expect(sourceNow().spec.source).toEqual({ snapshot: { namespace, name: nameOf('a') } });
    expect(all()).toEqual({ imports: [], volumes: [] });
    // Its volume is gone: what says how to run the disk is on the snapshot, and data source and clones take it from there.
    expect(world.kube.all(volumeSnapshots)[0]?.metadata.labels).toMatchObject(preference);
    expect(cronNow().status?.sourceFormat).toBe('snapshot');
    world.kube.edit(storageProfiles, { name: 'local' }, (profile) => {
      profile.status = { dataImportCronSourceFormat: 'pvc' };
    });
    await reconcileCron();
    expect(sourceNow().spec.source).toEqual({ snapshot: { namespace, name: nameOf('a') } });
    await finishImport(nameOf('a'));
    expect(sourceNow().spec.source).toEqual({ pvc: { namespace, name: nameOf('a') } });
    expect(world.kube.all(volumeSnapshots)).toEqual([]);
  });

  it('gives a snapshot that was taken without them the labels of its volume', async () => {
    world.kube.seed(storageProfiles, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'StorageProfile',
      metadata: { name: 'local' },
      status: { dataImportCronSourceFormat: 'snapshot' },
    });
    aCron();
    await importVersion('a');
    world.kube.edit(volumeSnapshots, { namespace, name: nameOf('a') }, (snapshot) => {
      delete snapshot.metadata.labels?.['instancetype.kubevirt.io/default-preference'];
      snapshot.status = { readyToUse: true };
    });
    await reconcileCron();
    expect(world.kube.all(volumeSnapshots)[0]?.metadata.labels).toMatchObject(preference);
  });
});
