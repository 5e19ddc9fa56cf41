// A policy whose versions come to their end: marks, conditions, history, and what retention leaves.
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type GoldenImagePolicy,
  type GoldenImagePolicySpec,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { kubeEvents, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { refOf } from '#shared/api/object.ts';
import { deprecationIn } from '#shared/golden/rollout/deprecation.ts';
import { eventsOf } from '#shared/resources/golden-image-policy/history.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { tick } from '#shared/resources/sweep.ts';
import { nameOf, namespace, useCronWorld } from '#test/support/cron-world.ts';

const world = useCronWorld();
const { type } = goldenImagePolicyKind;
const key = { namespace, name: 'fedora' };
const day = 86_400_000;
const reason = 'support has ended';

const policyNow = (): GoldenImagePolicy => world.kube.all(type)[0]!;
const sourceNow = (): DataSource => world.kube.all(dataSourceKind.type)[0]!;
const settle = async (): Promise<void> => {
  for (let pass = 0; pass < 4; pass += 1) await reconcile(world.deps, refOf(policyNow()), { which: 'all' });
  for (const source of world.kube.all(dataSourceKind.type))
    await reconcile(world.deps, refOf(source), { which: 'all' });
};
const change = async (over: Partial<GoldenImagePolicySpec>): Promise<void> => {
  world.kube.edit(type, key, (policy) => {
    Object.assign(policy.spec, over);
    policy.metadata.generation = (policy.metadata.generation ?? 1) + 1;
  });
  await settle();
};
const aPolicy = (over: Partial<GoldenImagePolicySpec> = {}): GoldenImagePolicy =>
  world.kube.seed(type, {
    apiVersion: 'bullion.dev/v1alpha1',
    kind: 'GoldenImagePolicy',
    metadata: { ...key, generation: 1 },
    spec: { dataImportCrons: { names: ['cron'] }, channels: [{ name: 'stable', dataSource: 'fedora' }], ...over },
  });
const arrive = async (char: string): Promise<void> => {
  await world.importVersion(char);
  await settle();
};
const volumeOf = (char: string) =>
  world.kube.all(persistentVolumeClaims).find(({ metadata }) => metadata.name === nameOf(char));
const stateOf = (char: string) =>
  policyNow().status?.versions?.find(({ name }) => name === nameOf(char))?.deprecation?.state;
/** Of the status, the mark on its volume, that on the DataSource, and the condition of that. */
const everywhere = (char: string) => [
  stateOf(char),
  deprecationIn(volumeOf(char))?.state,
  deprecationIn(sourceNow())?.state,
  sourceNow().status?.conditions?.find((condition) => condition.type === 'Deprecated')?.reason,
];
const all = (state: string | undefined) => [state, state, state, state];

describe('the end of a version', () => {
  beforeEach(async () => {
    world.aCron({ importsToKeep: 1 });
    aPolicy();
    await arrive('a');
  });

  it('is not there without a rule', () => {
    expect(everywhere('a')).toEqual(all(undefined));
  });

  it('comes with its age, once the tick looks, and moves no channel', async () => {
    await change({ deprecation: { after: '60d', obsoleteAfter: '120d', replacement: 'next' } });
    expect(everywhere('a')).toEqual(all(undefined));
    for (const [days, state] of [
      [59, undefined],
      [2, 'Deprecated'],
      [60, 'Obsolete'],
    ] as const) {
      world.time += days * day;
      for (let times = 0; times < 3; times += 1) await tick(world.deps);
      expect(everywhere('a')).toEqual(all(state));
      expect(policyNow().status?.lifecycle).toBe(state);
      expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
    }
    expect(sourceNow().status?.conditions?.find((one) => one.type === 'Deprecated')?.message).toMatch(
      /is obsolete since .*older than 120d; use DataSource next instead/,
    );
    expect(eventsOf(policyNow()).filter((event) => event.type === 'dev.bullion.version.deprecated')).toHaveLength(2);
    expect(world.kube.all(kubeEvents).map((event) => event.reason)).toEqual(
      expect.arrayContaining(['VersionDeprecated', 'VersionObsolete']),
    );
  });

  it('is undone when the clock that said so is right again', async () => {
    await change({ deprecation: { after: '60d' } });
    world.time += 400 * day;
    for (let times = 0; times < 3; times += 1) await tick(world.deps);
    expect(everywhere('a')).toEqual(all('Deprecated'));
    world.time -= 399 * day;
    for (let times = 0; times < 3; times += 1) await tick(world.deps);
    expect(everywhere('a')).toEqual(all(undefined));
    expect(policyNow().status?.history?.at(-1)).toMatchObject({ reason: 'Restored', to: nameOf('a') });
  });

  it('is settled between its ages: a tick writes nothing', async () => {
    await change({ deprecation: { after: '60d' } });
    world.time += 61 * day;
    for (let times = 0; times < 4; times += 1) await tick(world.deps);
    const cron = world.cronNow();
    expect(stateOf('a')).toBe('Deprecated');
    world.kube.calls.length = 0;
    await tick(world.deps);
    const written = world.kube.calls.filter(({ verb }) => verb !== 'list' && verb !== 'get');
    expect(written).toEqual([]);
    expect(world.cronNow().metadata.resourceVersion).toBe(cron.metadata.resourceVersion);
  });

  it('comes by hand, and goes by hand', async () => {
    await change({ deprecated: [{ version: nameOf('a'), reason, by: 'jane', at: '2026-03-01T00:00:00Z' }] });
    expect(everywhere('a')).toEqual(all('Deprecated'));
    expect(policyNow().status?.history?.at(-1)).toMatchObject({ reason: 'Deprecated', by: 'jane', to: nameOf('a') });
    await change({ deprecated: [{ version: nameOf('a'), reason, obsolete: true, by: 'jane' }] });
    expect(everywhere('a')).toEqual(all('Obsolete'));
    await change({ deprecated: [] });
    expect(everywhere('a')).toEqual(all(undefined));
  });

  it('of a channel is there whatever version it has, and marks no version', async () => {
    await change({ deprecated: [{ channel: 'stable', reason, obsolete: true, replacement: 'next', by: 'jane' }] });
    await arrive('b');
    expect([deprecationIn(volumeOf('b')), stateOf('b')]).toEqual([undefined, undefined]);
    expect(deprecationIn(sourceNow())).toMatchObject({ state: 'Obsolete', replacement: 'next', by: 'jane' });
    expect(deprecationIn(sourceNow())?.version).toBe(undefined);
    expect(policyNow().status).toMatchObject({ lifecycle: 'Obsolete', channels: [{ version: nameOf('b') }] });
    expect(policyNow().status?.history?.filter((entry) => entry.reason === 'Obsolete')).toHaveLength(1);
  });

  it('goes from the DataSource with the version', async () => {
    await change({ deprecated: [{ version: nameOf('a'), reason, by: 'jane' }] });
    await arrive('b');
    expect(deprecationIn(sourceNow())).toBe(undefined);
    expect(deprecationIn(volumeOf('a'))?.state).toBe('Deprecated');
  });

  it('leaves no mark behind when the policy goes', async () => {
    await change({
      deprecated: [
        { channel: 'stable', reason },
        { version: nameOf('a'), obsolete: true, reason },
      ],
    });
    await tick(world.deps);
    expect(deprecationIn(volumeOf('a'))?.state).toBe('Obsolete');
    await world.kube.delete(type, key);
    // Nothing but the tick comes to see it.
    await tick(world.deps);
    await tick(world.deps);
    await reconcile(world.deps, refOf(sourceNow()), { which: 'all' });
    expect([deprecationIn(volumeOf('a')), deprecationIn(sourceNow())]).toEqual([undefined, undefined]);
    expect(sourceNow().status?.conditions?.some((condition) => condition.type === 'Deprecated')).toBe(false);
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
  });

  it('puts a mark right that somebody removed', async () => {
    await change({ deprecated: [{ version: nameOf('a'), reason, by: 'jane' }] });
    world.kube.edit(dataSourceKind.type, { namespace, name: 'fedora' }, ({ metadata }) => {
      metadata.annotations = {};
    });
    await settle();
    expect(everywhere('a')).toEqual(all('Deprecated'));
  });
});

describe('retention of a policy', () => {
  const volumes = () => world.all().volumes;
  /** When each was made, as the API server says it. */
  const born = (char: string, time: number) =>
    world.kube.edit(persistentVolumeClaims, { namespace, name: nameOf(char) }, ({ metadata }) => {
      const at = new Date(time).toISOString();
      metadata.creationTimestamp = at;
      metadata.annotations = { ...metadata.annotations, [cdiAnnotations.lastUseTime]: at };
    });
  const used = (char: string, time: number) =>
    world.kube.edit(persistentVolumeClaims, { namespace, name: nameOf(char) }, ({ metadata }) => {
      metadata.annotations = {
        ...metadata.annotations,
        [cdiAnnotations.lastUseTime]: new Date(time).toISOString(),
      };
    });

  it('replaces the count of the cron', async () => {
    world.aCron({ importsToKeep: 1 });
    aPolicy({ retention: { keep: 4 } });
    for (const char of ['a', 'b', 'c', 'd', 'e']) await arrive(char);
    expect(volumes()).toEqual(['b', 'c', 'd', 'e'].map(nameOf));
  });

  it('can be undone within its grace, and heals when a clock was ahead', async () => {
    world.aCron({ importsToKeep: 1 });
    aPolicy({
      retention: { keep: 1, maxAge: '90d', undeleteFor: '7d' },
      pins: { stable: { version: nameOf('d'), reason } },
    });
    for (const char of ['a', 'b', 'c', 'd']) {
      await arrive(char);
      born(char, world.time);
    }
    const deleted = () =>
      world.kube
        .all(persistentVolumeClaims)
        .flatMap(({ metadata }) => (metadata.annotations?.[annotations.deleted] === undefined ? [] : [metadata.name]));
    expect(deleted()).toEqual([]);
    // Ahead by years: given up, and kept again once the clock is right.
    world.time += 900 * day;
    await world.reconcileCron();
    expect([deleted(), volumes().length]).toEqual([['a', 'b', 'c'].map(nameOf), 4]);
    world.time -= 899 * day;
    await world.reconcileCron();
    expect([deleted(), volumes().length]).toEqual([[], 4]);
    world.time += 100 * day;
    await world.reconcileCron();
    await world.reconcileCron();
    expect([deleted(), volumes().length]).toEqual([['a', 'b', 'c'].map(nameOf), 4]);
    world.kube.edit(persistentVolumeClaims, { namespace, name: nameOf('a') }, ({ metadata }) => {
      metadata.labels = { ...metadata.labels, [labels.protected]: 'true' };
    });
    world.time += 8 * day;
    await world.reconcileCron();
    world.kube.collectGarbage();
    expect([deleted(), volumes()]).toEqual([[], ['a', 'd'].map(nameOf)]);
  });

  it('takes what is old and unused, and leaves what a channel needs', async () => {
    world.aCron({ importsToKeep: 9 });
    aPolicy({
      retention: { keep: 1, maxAge: '90d', unusedFor: '30d' },
      pins: { stable: { version: nameOf('a'), reason } },
    });
    for (const char of ['a', 'b', 'c', 'd', 'e', 'f']) {
      await arrive(char);
      born(char, world.time);
    }
    expect(volumes()).toHaveLength(6);
    world.time += 100 * day;
    used('c', world.time - 2 * day);
    born('d', world.time - 80 * day);
    await arrive('g');
    await world.reconcileCron();
    // The channel is pinned to a; c was used lately; d is young; g is offered now.
    expect(volumes()).toEqual(['a', 'c', 'd', 'g'].map(nameOf));
  });
});
