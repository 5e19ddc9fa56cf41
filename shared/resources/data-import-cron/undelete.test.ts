// Versions that somebody deletes by hand: what becomes of their storage, and how they come back from it.
import { beforeEach, describe, expect, it } from 'vitest';
import { type GoldenImagePolicySpec, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { type DataImportCronStatus, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { kubeEvents, persistentVolumeClaims, persistentVolumes } from '#shared/api/foreign/core.ts';
import { type VolumeSnapshotContent, volumeSnapshotContents, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { refOf } from '#shared/api/object.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { tick } from '#shared/resources/sweep.ts';
import { minute, nameOf, namespace, useCronWorld } from '#test/support/cron-world.ts';

const world = useCronWorld();
const day = 24 * 60 * minute;
const cronKey = { namespace, name: 'cron' };
const storageOf = (char: string) => ({ name: `pv-${char}` });

const aPolicy = (over: Partial<GoldenImagePolicySpec> = {}) =>
  world.kube.seed(goldenImagePolicyKind.type, {
    apiVersion: 'bullion.dev/v1alpha1',
    kind: 'GoldenImagePolicy',
    metadata: { namespace, name: 'fedora', generation: 1 },
    spec: {
      dataImportCrons: { names: ['cron'] },
      channels: [{ name: 'stable', dataSource: 'fedora' }],
      retention: { keep: 9, undeleteFor: '7d' },
      ...over,
    },
  });

/** Its claim is bound to a persistent volume, as a provisioner has it. */
const bind = (char: string): void => {
  const name = nameOf(char);
  const claim = world.kube.all(persistentVolumeClaims).find(({ metadata }) => metadata.name === name)!;
  world.kube.seed(persistentVolumes, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: storageOf(char),
    spec: {
      capacity: { storage: '5Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Delete',
      claimRef: { namespace, name, uid: claim.metadata.uid! },
    },
    status: { phase: 'Bound' },
  });
  world.kube.edit(persistentVolumeClaims, { namespace, name }, ({ spec }) => {
    spec.volumeName = storageOf(char).name;
  });
};

const volumeNow = (char: string) =>
  world.kube.all(persistentVolumes).find(({ metadata }) => metadata.name === storageOf(char).name)!;
const claimNow = (char: string) =>
  world.kube.all(persistentVolumeClaims).find(({ metadata }) => metadata.name === nameOf(char));
const policyOf = (char: string) => volumeNow(char).spec.persistentVolumeReclaimPolicy;
const statusNow = (): DataImportCronStatus => world.cronNow().status!;
const settle = async (): Promise<void> => {
  for (let pass = 0; pass < 4; pass += 1) {
    for (const policy of world.kube.all(goldenImagePolicyKind.type))
      await reconcile(world.deps, refOf(policy), { which: 'all' });
    await world.reconcileCron();
  }
};
const removeByHand = async (char: string): Promise<void> => {
  await world.kube.delete(dataVolumes, { namespace, name: nameOf(char) });
  world.kube.collectGarbage();
  world.kube.edit(persistentVolumes, storageOf(char), (volume) => {
    volume.status = { phase: 'Released' };
  });
  await settle();
};
const askFor = (char: string) =>
  world.kube.edit(dataImportCronKind.type, cronKey, ({ metadata }) => {
    metadata.annotations = { ...metadata.annotations, [annotations.undelete]: nameOf(char) };
  });
/** As the binder does it, and then the driver of data volumes. */
const bindAgain = (char: string): void => {
  const claim = claimNow(char)!;
  world.kube.edit(persistentVolumes, storageOf(char), (volume) => {
    volume.spec.claimRef!.uid = claim.metadata.uid!;
    volume.status = { phase: 'Bound' };
  });
  world.kube.edit(persistentVolumeClaims, claim.metadata, (bound) => {
    bound.status = { phase: 'Bound' };
  });
  world.kube.edit(dataVolumes, { namespace, name: nameOf(char) }, (disk) => {
    disk.status = { phase: 'Succeeded', detail: {} };
  });
};

beforeEach(async () => {
  world.aCron({ importsToKeep: 9 });
  aPolicy();
  for (const char of ['a', 'b']) {
    await world.importVersion(char);
    bind(char);
    await settle();
  }
});

describe('the storage of versions that can be brought back', () => {
  it('outlives a claim, is given back with it, and goes after the grace', async () => {
    expect([policyOf('a'), policyOf('b')]).toEqual(['Retain', 'Retain']);
    await removeByHand('a');
    expect(claimNow('a')).toBeUndefined();
    expect(statusNow().deleted).toMatchObject([{ name: nameOf('a'), bytes: 5 * 2 ** 30 }]);
    world.time += 6 * day;
    await tick(world.deps);
    expect(policyOf('a')).toBe('Retain');
    world.time += day;
    await tick(world.deps);
    await settle();
    expect(policyOf('a')).toBe('Delete');
    expect(volumeNow('a').metadata.labels?.[labels.ownerUid]).toBeUndefined();
    expect(volumeNow('a').metadata.annotations?.[annotations.kept]).toBeUndefined();
    expect(statusNow().deleted).toBeUndefined();
    expect(policyOf('b')).toBe('Retain');
  });

  it('gets the same claim and data volume, which fetches nothing', async () => {
    const before = claimNow('a')!;
    await removeByHand('a');
    askFor('a');
    await settle();
    const [claim, disk] = [
      claimNow('a')!,
      world.kube.all(dataVolumes).find(({ metadata }) => metadata.name === nameOf('a'))!,
    ];
    expect(volumeNow('a').spec.claimRef).toMatchObject({ namespace, name: nameOf('a') });
    expect(volumeNow('a').spec.claimRef?.uid).toBeUndefined();
    expect(claim.spec.volumeName).toBe(storageOf('a').name);
    expect(claim.metadata.labels?.[cdiLabels.cron]).toBe('cron');
    expect(claim.metadata.annotations?.[annotations.populated]).toBe(
      before.metadata.annotations?.[annotations.populated],
    );
    expect(claim.metadata.ownerReferences).toMatchObject([{ kind: 'DataVolume', uid: disk.metadata.uid }]);
    // With this the engine waits for the claim, and imports nothing.
    expect(disk.metadata.annotations?.['cdi.kubevirt.io/storage.prePopulated']).toBe(nameOf('a'));
    bindAgain('a');
    await settle();
    expect(world.cronNow().metadata.annotations?.[annotations.undelete]).toBeUndefined();
    expect(world.kube.all(kubeEvents).map(({ reason }) => reason)).toContain('VersionUndeleted');
    expect(statusNow().deleted).toBeUndefined();
    expect(policyOf('a')).toBe('Retain');
    await removeByHand('a');
    expect(statusNow().deleted).toMatchObject([{ name: nameOf('a') }]);
  });

  it('is not given to who has the name meanwhile', async () => {
    await removeByHand('a');
    world.kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace, name: nameOf('a') },
      spec: {},
    });
    askFor('a');
    await settle();
    const [failed] = world.kube.all(kubeEvents).filter(({ reason }) => reason === 'UndeleteFailed');
    expect(failed?.message).toMatch(/somebody else has its name/);
    expect(statusNow().deleted).toMatchObject([{ name: nameOf('a') }]);
  });

  it('says that there is nothing to bring back', async () => {
    askFor('f');
    await settle();
    const [failed] = world.kube.all(kubeEvents).filter(({ reason }) => reason === 'UndeleteFailed');
    expect(failed?.message).toMatch(/its bytes are gone/);
    expect(world.cronNow().metadata.annotations?.[annotations.undelete]).toBeUndefined();
  });

  it('goes at once with what retention removes', async () => {
    world.kube.edit(goldenImagePolicyKind.type, { namespace, name: 'fedora' }, ({ spec }) => {
      spec.retention = { keep: 1, undeleteFor: '1h' };
    });
    for (const char of ['c', 'd']) {
      await world.importVersion(char);
      await settle();
    }
    world.time += 2 * 60 * minute;
    await settle();
    world.kube.collectGarbage();
    await settle();
    expect([claimNow('a'), policyOf('a'), statusNow().deleted]).toEqual([undefined, 'Delete', undefined]);
  });

  it.each<[what: string, end: () => Promise<void>]>([
    ['the policy goes', () => world.kube.delete(goldenImagePolicyKind.type, { namespace, name: 'fedora' })],
    [
      'the policy asks for it no more',
      async () =>
        world.kube.edit(goldenImagePolicyKind.type, { namespace, name: 'fedora' }, ({ spec }) => {
          spec.retention = { keep: 9 };
        }),
    ],
    ['the cron goes', () => world.kube.delete(dataImportCronKind.type, cronKey)],
  ])('is as it was once %s', async (_what, end) => {
    await removeByHand('a');
    await end();
    // Nothing but the tick comes to see it.
    for (let pass = 0; pass < 4; pass += 1) await tick(world.deps);
    expect(
      world.kube
        .all(persistentVolumes)
        .map(({ metadata, spec }) => [spec.persistentVolumeReclaimPolicy, metadata.labels ?? {}]),
    ).toEqual([
      ['Delete', {}],
      ['Delete', {}],
    ]);
    expect(world.kube.all(dataImportCronKind.type)[0]?.status?.retention?.keeps).toBeUndefined();
  });
});

describe('snapshots of versions that can be brought back', () => {
  const contentName = 'content-a';
  const contentsNow = () => world.kube.all(volumeSnapshotContents);
  beforeEach(async () => {
    const claim = claimNow('a')!;
    const snapshot = world.kube.seed(volumeSnapshots, {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: {
        namespace,
        name: nameOf('a'),
        labels: { [cdiLabels.cron]: 'cron' },
        annotations: { [cdiAnnotations.lastUseTime]: claim.metadata.annotations?.[cdiAnnotations.lastUseTime] ?? '' },
      },
      spec: { volumeSnapshotClassName: 'fast', source: { persistentVolumeClaimName: nameOf('a') } },
      status: { readyToUse: true, boundVolumeSnapshotContentName: contentName },
    });
    world.kube.seed(volumeSnapshotContents, {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshotContent',
      metadata: { name: contentName },
      spec: {
        deletionPolicy: 'Delete',
        driver: 'driver.example',
        source: { volumeHandle: 'vol-1' },
        volumeSnapshotRef: { namespace, name: nameOf('a'), uid: snapshot.metadata.uid! },
      },
      status: { snapshotHandle: 'snap-1', readyToUse: true, restoreSize: 5 },
    });
    // A version that is a snapshot alone.
    world.kube.edit(persistentVolumes, storageOf('a'), ({ metadata }) => {
      metadata.annotations = {};
      metadata.labels = {};
    });
    await world.kube.delete(dataVolumes, { namespace, name: nameOf('a') });
    world.kube.collectGarbage();
    await settle();
  });

  const deleteSnapshot = async (): Promise<void> => {
    await world.kube.delete(volumeSnapshots, { namespace, name: nameOf('a') });
    await settle();
  };

  it('come back by a content of their own, and the first one goes without the bytes', async () => {
    expect(contentsNow()).toMatchObject([{ spec: { deletionPolicy: 'Retain' } }]);
    await deleteSnapshot();
    expect(statusNow().deleted).toMatchObject([{ name: nameOf('a') }]);
    askFor('a');
    await settle();
    const snapshot = world.kube.all(volumeSnapshots)[0]!;
    const content = contentsNow().find(
      ({ metadata }) => metadata.name === snapshot.spec.source.volumeSnapshotContentName,
    )!;
    expect(content.spec).toMatchObject({
      deletionPolicy: 'Retain',
      driver: 'driver.example',
      source: { snapshotHandle: 'snap-1' },
      volumeSnapshotRef: { namespace, name: nameOf('a') },
    });
    expect(contentsNow()).toHaveLength(2);
    world.kube.edit(volumeSnapshots, snapshot.metadata, (edited) => {
      edited.status = { readyToUse: true, boundVolumeSnapshotContentName: content.metadata.name };
    });
    await settle();
    expect(contentsNow().map(({ metadata, spec }) => [metadata.name, spec.deletionPolicy])).toEqual([
      [content.metadata.name, 'Retain'],
    ]);
    expect(contentsNow()[0]?.spec.volumeSnapshotRef.uid).toBe(snapshot.metadata.uid);
    expect(world.cronNow().metadata.annotations?.[annotations.undelete]).toBeUndefined();
  });

  it('go after the grace, with their policy as it was', async () => {
    const policies: string[] = [];
    world.kube.onChange(({ type, object }) => {
      const { spec } = object as VolumeSnapshotContent;
      if (type === 'DELETED' && object.kind === volumeSnapshotContents.kind) policies.push(spec.deletionPolicy);
    });
    await deleteSnapshot();
    world.time += 7 * day;
    await tick(world.deps);
    await settle();
    expect([contentsNow(), policies]).toEqual([[], ['Delete']]);
  });
});
