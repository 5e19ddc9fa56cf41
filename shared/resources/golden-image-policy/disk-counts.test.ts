import { expect, it } from 'vitest';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { isoTime } from '#shared/populate/state.ts';
import { createDiskCounter } from '#shared/resources/golden-image-policy/disk-counts.ts';
import { createMetricsWorld } from '#test/support/metrics-world.ts';

const { type } = goldenImagePolicyKind;
const namespace = 'channels';
const key = { namespace, name: 'debian' };
const minute = 60_000;
/** Not one at which all policies are counted. */
const start = Date.parse('2026-11-30T10:01:00Z');

it('counts disks at first, after a channel moved, and every ten minutes', async () => {
  const { kube } = createMetricsWorld();
  const policyNow = () => kube.get(type, key);
  const disksNow = async () => (await policyNow())?.status?.disks;
  const tickAt = async (now: number): Promise<void> => {
    const counter = createDiskCounter();
    for (const object of kube.all()) counter.visit(object);
    await counter.run(kube, now);
  };
  const removeDisk = async (name: string): Promise<void> => {
    await kube.delete(dataVolumes, { namespace, name });
    await kube.delete(persistentVolumeClaims, { namespace, name });
  };

  await tickAt(start);
  expect(await disksNow()).toEqual({ total: 2, outdated: 1, time: isoTime(start) });

  await removeDisk('old');
  await tickAt(start + minute);
  expect(await disksNow()).toMatchObject({ outdated: 1 });
  await tickAt(start + 9 * minute);
  expect(await disksNow()).toMatchObject({ total: 1, outdated: 0 });

  const { resourceVersion } = (await policyNow())!.metadata;
  await tickAt(start + 19 * minute);
  expect((await policyNow())?.metadata.resourceVersion).toBe(resourceVersion);

  await removeDisk('new');
  const moved = { name: 'stable', dataSource: 'debian', since: isoTime(start + 20 * minute), reason: '', message: '' };
  kube.edit(type, key, (policy) => void (policy.status = { ...policy.status, channels: [moved] }));
  await tickAt(start + 21 * minute);
  expect(await disksNow()).toEqual({ total: 0, outdated: 0, time: isoTime(start + 21 * minute) });
});
