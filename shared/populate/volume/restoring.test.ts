// A volume with another mode than the snapshot that it is made from, whose source is gone: restored for a copy, through the driver, killed at each call.
import { describe, expect, it } from 'vitest';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { jobs, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import { refOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { aStorageClass } from '#test/support/builders.ts';
import { namespace, share } from '#test/support/shared-content.ts';

const type = dataVolumeKind.type;

type Death = { readonly at: number; readonly when: 'before' | 'after' };

/** Counts calls, and has the one of that number fail. */
const mortal = (kube: KubeClient, death: Death | undefined) => {
  let calls = 0;
  const dying = new Proxy(kube, {
    get: (target, name: keyof KubeClient) => {
      const method = target[name] as (...args: unknown[]) => unknown;
      if (typeof method !== 'function' || name === 'listAll') return method;
      return async (...args: unknown[]) => {
        const isLast = calls === death?.at;
        calls += 1;
        if (isLast && death?.when === 'before') throw new Unavailable('killed');
        const answer = await method.apply(target, args);
        if (isLast) throw new Unavailable('killed');
        return answer;
      };
    },
  });
  return { kube: dying, calls: () => calls };
};

const begin = (storage: object = {}) => {
  const shared = share();
  const { kube } = shared;
  kube.seed(volumeSnapshots, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { namespace, name: 'kept' },
    spec: { source: { persistentVolumeClaimName: 'gone' } },
  });
  shared.fill();
  const volume = kube.seed<DataVolume>(type, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { namespace, name: 'other' },
    spec: {
      source: { snapshot: { namespace, name: 'kept' } },
      storage: { storageClassName: 'local', volumeMode: 'Filesystem', ...storage },
    },
  });
  return { ...shared, volume };
};

const live = async (death?: Death) => {
  const { deps, kube, volume, fill, phaseOf } = begin();
  const dying = mortal(kube, death);
  for (let round = 0; round < 8; round += 1) {
    await reconcile({ ...deps, kube: dying.kube }, refOf(volume), { which: 'all' }).catch(() => undefined);
    fill();
  }
  return { kube, phase: phaseOf('other'), calls: dying.calls() };
};

describe('a snapshot that its storage cannot restore as requested', () => {
  it('is restored as it was and copied, and the intermediate claim is deleted', async () => {
    const { deps, kube, volume, fill } = begin();
    await reconcile(deps, refOf(volume), { which: 'all' });
    const [restored, claim] = kube.all(persistentVolumeClaims);
    expect(restored?.spec).toMatchObject({
      storageClassName: 'local',
      volumeMode: 'Block',
      dataSource: { kind: 'VolumeSnapshot', name: 'kept' },
      resources: { requests: { storage: '1Gi' } },
    });
    expect(recordOf(claim)).toMatchObject({
      strategy: 'copy',
      from: { name: restored?.metadata.name, volumeMode: 'Block', restored: true },
    });
    expect(JSON.stringify(kube.all(jobs))).toContain(`"claimName":"${restored?.metadata.name}"`);
    fill();
    await reconcile(deps, refOf(volume), { which: 'all' });
    expect(kube.all(persistentVolumeClaims).map(({ metadata }) => metadata.name)).toEqual(['other']);
    expect(kube.all(volumeSnapshots).map(({ metadata }) => metadata.name)).toEqual(['kept']);
  });

  it('reaches the same result wherever its function is killed', async () => {
    const { calls } = await live();
    expect(calls).toBeGreaterThan(8);
    for (let at = 0; at < calls; at += 1)
      for (const when of ['before', 'after'] as const) {
        const { kube, phase } = await live({ at, when });
        const claims = kube.all(persistentVolumeClaims).map(({ metadata }) => metadata.name);
        expect({ phase, claims, jobs: kube.all(jobs).length }, `${when} call ${at}`).toEqual({
          phase: 'Succeeded',
          claims: ['other'],
          jobs: 0,
        });
      }
  });

  it('leaves nothing, whenever the volume is deleted', async () => {
    for (let rounds = 0; rounds < 4; rounds += 1) {
      const { deps, kube, volume, fill, remove } = begin();
      for (let round = 0; round < rounds; round += 1) {
        await reconcile(deps, refOf(volume), { which: 'all' });
        if (round > 0) fill();
      }
      await remove('other');
      expect([...kube.all(persistentVolumeClaims), ...kube.all(jobs)], `after ${rounds} rounds`).toEqual([]);
    }
  });

  it('is restored in a class of its own driver when the volume uses another', async () => {
    const { deps, kube, volume } = begin({ storageClassName: 'plain', accessModes: ['ReadWriteOnce'] });
    kube.seed(storageClasses, aStorageClass('plain', { provisioner: 'plain.example' }));
    await reconcile(deps, refOf(volume), { which: 'all' });
    expect(kube.all(persistentVolumeClaims).map(({ spec }) => spec.storageClassName)).toEqual(['local', 'plain']);
  });
});
