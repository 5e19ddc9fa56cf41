// What `bullion footprint` prints, and how often it lists each kind.
import { describe, expect, it } from 'vitest';
import { exitCodes } from '#cli/command.ts';
import { footprintCommand } from '#cli/commands/footprint.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Denied } from '#shared/runtime/errors.ts';
import { nameOf, namespace, useCronWorld } from '#test/support/cron-world.ts';
import { runCommand } from '#test/support/command.ts';

const world = useCronWorld();

/** Three versions, all of which the cron keeps. */
const fill = async (): Promise<void> => {
  world.aCron({ importsToKeep: 3 });
  for (const char of ['a', 'b', 'c']) await world.importVersion(char);
  for (const { metadata } of world.kube.all(persistentVolumeClaims))
    world.kube.edit(persistentVolumeClaims, metadata, (claim) => {
      claim.status = { phase: 'Bound', capacity: { storage: '5Gi' } };
    });
};

const run = (values: Record<string, string | boolean> = {}, kube: KubeClient = world.kube) =>
  runCommand(footprintCommand, { kube, namespace, values, now: new Date(world.time) });

/** The client of somebody who may list a kind in the given namespace only, or nowhere. */
const without = (plural: string, only?: string): { readonly kube: KubeClient; readonly listed: string[] } => {
  const listed: string[] = [];
  const listAll: KubeClient['listAll'] = async function* (type, options) {
    listed.push(type.plural);
    if (type.plural === plural && options?.namespace !== only) throw new Denied('may not');
    if (type.plural === plural && only === undefined) throw new Denied('may not');
    yield* world.kube.listAll(type, options);
  };
  return { kube: { ...world.kube, listAll }, listed };
};

describe('bullion footprint', () => {
  it('shows a row for each image, and the sums', async () => {
    await fill();
    const { code, out, err } = await run();
    expect(code).toBe(exitCodes.done);
    const lines = out.split('\n').map((line) => line.split(/ {3,}/));
    expect(lines[0]).toEqual([
      'NAMESPACE',
      'IMAGE',
      'SIZE',
      'DISKS',
      'LAST USED',
      'MAY GO',
      'HELD',
      'STORED',
      'SHARED',
    ]);
    expect(lines[1]?.slice(0, 4)).toEqual([namespace, 'datasource/fedora', '15.0 GiB', '0']);
    expect(lines[2]?.slice(0, 3)).toEqual(['TOTAL', '-', '15.0 GiB']);
    expect(err).toContain('Retention keeps 0 B no longer');
  });

  it('simulates a retention, and deletes nothing', async () => {
    await fill();
    const { out, err } = await run({ by: 'version', keep: '1' });
    expect(out).toMatch(new RegExp(`${nameOf('a')} .*would be removed\n`));
    expect(out).toMatch(new RegExp(`${nameOf('c')} .*stays: its cron offers it\n`));
    expect(err).toContain('With this retention everywhere, 10.0 GiB would go (now: 0 B)');
    expect(world.all().volumes).toHaveLength(3);
  });

  it('has more columns where there is room', async () => {
    await fill();
    const [heading, row] = (await run({ output: 'wide' })).out.split('\n');
    expect([heading, row].map((line) => line?.split(/ {3,}/)[7])).toEqual(['FETCHED', '>= 0 B']);
  });

  it('is the same for programs', async () => {
    await fill();
    const { out } = await run({ by: 'version', keep: '1', output: 'json' });
    const { rows, total, leftOut } = JSON.parse(out) as { rows: object[]; total: object; leftOut: unknown };
    expect(rows).toContainEqual(
      expect.objectContaining({ name: nameOf('c'), kind: 'version', keptBy: 'its cron offers it', bytes: 5 * 2 ** 30 }),
    );
    expect(total).toMatchObject({ bytes: 15 * 2 ** 30, freedBytes: 10 * 2 ** 30, stored: 3 });
    expect(leftOut).toEqual([]);
  });

  it('lists each kind once, however many crons there are', async () => {
    await fill();
    const { metadata: _, ...cron } = world.cronNow();
    for (let at = 0; at < 5; at += 1)
      world.kube.seed(dataImportCronKind.type, { ...cron, metadata: { namespace, name: `more-${at}` } });
    const { kube, listed } = without('nothing');
    await run({ 'all-namespaces': true }, kube);
    expect(listed.toSorted()).toEqual(
      [...new Set(listed)].toSorted().flatMap((one) => (one === 'virtualmachineimages' ? [one, one] : [one])),
    );
  });

  it.each([
    [undefined, 'to list it: datavolumes.cdi.kubevirt.io. '],
    [namespace, `to list it: datavolumes.cdi.kubevirt.io outside namespace ${namespace}. `],
  ])('names what may not be listed', async (only, expected) => {
    await fill();
    const { code, out, err } = await run({ 'all-namespaces': true }, without('datavolumes', only).kube);
    expect([code, out.includes('15.0 GiB')]).toEqual([exitCodes.done, true]);
    expect(err).toContain(expected);
  });

  it('says that there is nothing', async () => {
    const { out, err } = await run();
    expect([out, err.split('\n')[0]]).toEqual(['', `Nothing is stored of images in namespace ${namespace}.`]);
  });

  it.each([
    [{ keep: '0' }, /--keep is a number of versions from 1, not 0/],
    [{ 'max-age': 'long' }, /--max-age is a duration such as 12h or 30d, not long/],
    [{ 'unused-for': '30' }, /--unused-for is a duration/],
  ])('refuses %j', async (values, message) => {
    await expect(run(values)).rejects.toThrow(message);
  });
});
