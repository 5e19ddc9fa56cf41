// Crons with an installed CDI: only their sources are polled.
import { beforeEach, describe, expect, it } from 'vitest';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { annotations } from '#shared/api/names.ts';
import { pollIfDue } from '#shared/resources/data-import-cron/poll.ts';
import { tick } from '#shared/resources/sweep.ts';
import { digestOf, found, minute, useCronWorld } from '#test/support/cron-world.ts';

const world = useCronWorld();
const { aCron, cronNow } = world;

describe('with an installed CDI', () => {
  beforeEach(() => {
    world.deps = { ...world.deps, cdi: () => Promise.resolve('use') };
  });
  const hooked = { annotations: { [annotations.schedule]: '0 */12 * * *' } };
  const digestNow = () => cronNow().metadata.annotations?.[cdiAnnotations.desiredDigest];

  it('writes the digest for it, and neither imports nor writes its status', async () => {
    aCron({ schedule: '' }, hooked);
    await tick(world.deps);
    expect(digestNow()).toBe(digestOf('a'));
    expect([world.kube.all(dataVolumes), world.kube.all(dataSourceKind.type), cronNow().status]).toEqual([
      [],
      [],
      undefined,
    ]);
    expect(world.kube.calls.filter(({ resource }) => resource.endsWith('/status'))).toEqual([]);
  });

  it('polls by the schedule in the annotation, with the known state', async () => {
    aCron({ schedule: '' }, hooked);
    await tick(world.deps);
    world.time += 60 * minute;
    await tick(world.deps);
    expect(world.asked.length).toBe(1);
    world.answer = () => found('b');
    world.time += 13 * 60 * minute;
    await tick(world.deps);
    expect(world.asked[1]?.known).toMatchObject({ sourceDigest: digestOf('a') });
    expect(digestNow()).toBe(digestOf('b'));
    expect(JSON.parse(cronNow().metadata.annotations?.[annotations.poll] ?? '')).toMatchObject({ outcome: 'Changed' });
  });

  it('ignores crons that CDI polls itself, and those without a request', async () => {
    aCron();
    aCron({ schedule: '' }, { name: 'other' });
    await tick(world.deps);
    await pollIfDue(world.deps, cronNow());
    expect(world.asked).toEqual([]);
  });
});
