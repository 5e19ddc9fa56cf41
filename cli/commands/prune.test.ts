// What `bullion prune` shows and deletes.
import { describe, expect, it } from 'vitest';
import { type ClusterCommand, exitCodes } from '#cli/command.ts';
import { pruneCommand } from '#cli/commands/prune.ts';
import { undeleteCommand } from '#cli/commands/undelete.ts';
import {
  type GoldenImagePolicy,
  type GoldenImagePolicySpec,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { refOf } from '#shared/api/object.ts';
import { policyRows } from '#shared/catalogue/foresee-policy.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { minute, nameOf, namespace, useCronWorld } from '#test/support/cron-world.ts';
import { runCommand } from '#test/support/command.ts';

const world = useCronWorld();
const { type } = goldenImagePolicyKind;
const reason = 'audit';

const aPolicy = (over: Partial<GoldenImagePolicySpec>): GoldenImagePolicy =>
  world.kube.seed(type, {
    apiVersion: 'bullion.dev/v1alpha1',
    kind: 'GoldenImagePolicy',
    metadata: { namespace, name: 'fedora', generation: 1 },
    spec: { dataImportCrons: { names: ['cron'] }, channels: [{ name: 'stable', dataSource: 'fedora' }], ...over },
  });

/** Four versions that nobody collected yet, as after a change of the policy. */
const fill = async (over: Partial<GoldenImagePolicySpec> = {}, cron: object = {}): Promise<void> => {
  world.aCron({ importsToKeep: 9, ...cron });
  aPolicy({ retention: { keep: 9 } });
  for (const char of ['a', 'b', 'c', 'd']) {
    await world.importVersion(char);
    for (let pass = 0; pass < 4; pass += 1)
      await reconcile(world.deps, refOf(world.kube.all(type)[0]!), { which: 'all' });
  }
  for (const { metadata } of world.kube.all(persistentVolumeClaims))
    world.kube.edit(persistentVolumeClaims, metadata, (claim) => {
      claim.status = { phase: 'Bound', capacity: { storage: '5Gi' } };
    });
  world.kube.edit(type, { namespace, name: 'fedora' }, ({ spec }) => {
    Object.assign(spec, { retention: { keep: 1 }, ...over });
  });
};

const prune = (values: Record<string, boolean> = {}, positionals: readonly string[] = []) =>
  run(pruneCommand, values, positionals);

const run = (
  command: ClusterCommand,
  values: Record<string, boolean>,
  positionals: readonly string[],
  columns?: number,
) => runCommand(command, { kube: world.kube, namespace, positionals, values, columns, now: new Date(world.time) });
const lineOf = (out: string, char: string): string => out.split('\n').find((line) => line.includes(nameOf(char))) ?? '';
const volumes = () => world.all().volumes;

/** The policy in place of the one that is there. */
const withPolicy = (policy: GoldenImagePolicy): KubeClient['listAll'] =>
  async function* listAll(asked, options) {
    for await (const one of world.kube.listAll(asked, options))
      yield one.kind === policy.kind ? (policy as unknown as typeof one) : one;
  };

describe('bullion prune', () => {
  it('says what would go, what comes free, and what keeps the others', async () => {
    await fill({ pins: { stable: { version: nameOf('d'), reason } } });
    world.kube.edit(persistentVolumeClaims, { namespace, name: nameOf('a') }, ({ metadata }) => {
      metadata.labels = { ...metadata.labels, [labels.protected]: 'true' };
    });
    const { code, out, err } = await prune({ 'dry-run': true });
    expect(code).toBe(exitCodes.done);
    expect(lineOf(out, 'a')).toMatch(/stays: it has the label bullion\.dev\/protected/);
    expect(lineOf(out, 'b')).toMatch(/would be removed$/);
    expect(lineOf(out, 'c')).toMatch(/stays: channel stable would go back to it/);
    expect(lineOf(out, 'd')).toMatch(/stays: its cron offers it/);
    expect(err).toContain('1 of 4 versions can be removed, which frees 5.0 GiB');
    expect(volumes()).toHaveLength(4);
  });

  it('says of a policy that is not applied yet what its retention would delete', async () => {
    await fill();
    const policy = world.kube.all(type)[0]!;
    world.kube.edit(type, policy.metadata, ({ spec }) => void Object.assign(spec, { retention: { keep: 9 } }));
    const observe = async () => ({ is: 'failed', message: 'not asked' }) as never;
    const tools = { kube: world.kube, observe, verify: undefined as never, now: world.time };
    const rowsOf = async (retention: object) => {
      const planned = { ...policy, spec: { ...policy.spec, retention } } as GoldenImagePolicy;
      return policyRows({ ...tools, kube: { ...world.kube, listAll: withPolicy(planned) } as KubeClient }, planned);
    };
    expect(await rowsOf({ keep: 9 })).toEqual([]);
    expect(await rowsOf({ keep: 1, undeleteFor: '7d' })).toEqual(
      ['b', 'a'].map((char) => ['deletes', `version ${nameOf(char)}, which nothing keeps, after 7d`]),
    );
  });

  it('deletes nothing without --yes', async () => {
    await fill();
    const { code, err } = await prune();
    expect([code, volumes().length]).toEqual([exitCodes.failed, 4]);
    expect(err).toContain('--yes');
  });

  it('deletes what it showed, and nothing else', async () => {
    await fill();
    const { out: shown } = await prune({ 'dry-run': true }, ['fedora']);
    const going = ['a', 'b', 'c', 'd'].filter((char) => lineOf(shown, char).endsWith('would be removed')).map(nameOf);
    expect(going).toEqual(['a', 'b'].map(nameOf));
    expect((await prune({ yes: true }, ['fedora'])).code).toBe(exitCodes.done);
    world.kube.collectGarbage();
    expect(volumes()).toEqual(['c', 'd'].map(nameOf));
    expect((await prune({ yes: true })).err).toContain('0 of 2 versions can be removed');
  });

  it('leaves what is on its way, and what a cron is to keep', async () => {
    await fill({}, { garbageCollect: 'Never' });
    expect(lineOf((await prune({ yes: true })).out, 'a')).toMatch(/stays: DataImportCron cron is to keep all/);
    await world.poll('e');
    await world.reconcileCron();
    world.kube.edit(dataImportCronKind.type, { namespace, name: 'cron' }, ({ spec }) => {
      spec.garbageCollect = 'Outdated';
    });
    expect(lineOf((await prune({ yes: true })).out, 'e')).toMatch(/stays: it is being imported/);
    expect(world.all().imports).toContain(nameOf('e'));
  });

  it('shows what can be brought back, and brings it back', async () => {
    await fill({ retention: { keep: 3, undeleteFor: '7d' } });
    await world.reconcileCron();
    expect(lineOf((await prune({ 'dry-run': true })).out, 'a')).toMatch(
      /is removed in 7d; to keep it: bullion undelete$/,
    );
    world.time += minute;
    expect((await run(undeleteCommand, {}, [nameOf('a')])).out).toContain('is kept as if a disk');
    await world.reconcileCron();
    expect(volumes()).toHaveLength(4);
    expect(lineOf((await prune({ 'dry-run': true })).out, 'a')).toMatch(/stays: it is one of the 3 used last/);
    await expect(run(undeleteCommand, {}, [nameOf('a')])).rejects.toThrow(/no version .* that can be brought back/);
    world.time += 8 * 24 * 60 * minute;
    await world.reconcileCron();
    expect(volumes()).toContain(nameOf('a'));
  });

  it('fits a screen, of whose rows the text is cut first', async () => {
    await fill({ pins: { stable: { version: nameOf('d'), reason } } });
    const whole = (await run(pruneCommand, { 'dry-run': true }, [])).out;
    expect(Math.max(...whole.split('\n').map((line) => line.length))).toBeGreaterThan(100);
    const { out } = await run(pruneCommand, { 'dry-run': true }, [], 100);
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100);
    for (const char of ['a', 'b', 'c', 'd']) expect(out).toContain(nameOf(char));
    expect(lineOf(out, 'c')).toMatch(/stays: .*…$/);
  });

  it('says that there is no such policy', async () => {
    await expect(prune({}, ['debian'])).rejects.toThrow(/no GoldenImagePolicy debian/);
  });
});
