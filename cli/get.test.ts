// `bullion get` on what a cluster holds: every kind, one of them, and names that are none.
import { describe, expect, it } from 'vitest';
import { getCommand } from '#cli/commands/get.ts';
import { whyCommand } from '#cli/commands/why.ts';
import { type ClusterCommand, exitCodes } from '#cli/command.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { type KubeObject, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Denied } from '#shared/runtime/errors.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { runCommand } from '#test/support/command.ts';

const now = new Date('2026-01-02T04:04:05Z');
const types = servedKinds
  .map(({ type }) => type)
  .filter(({ namespaced, kind }) => namespaced && !kind.endsWith('Downloader'));

const anObject = (type: ResourceType, namespace: string, status: object): KubeObject =>
  ({
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: { name: 'one', namespace, creationTimestamp: '2026-01-02T03:04:05Z' },
    spec: {},
    status,
  }) as KubeObject;

const condition = (type: string) => ({ type, status: 'True', reason: `${type}Reason`, message: 'fine' });

const aCluster = () => {
  const kube = createMemoryKube();
  for (const type of types) {
    const ready = type.kind === dataImportCronKind.type.kind ? 'UpToDate' : 'Ready';
    const progress = type.kind === 'DataVolume' ? '42.0%' : 42;
    kube.seed(type, anObject(type, 'vms', { phase: 'Fine', progress, conditions: [condition(ready)] }));
    kube.seed(type, anObject(type, 'others', {}));
  }
  return kube;
};

interface Given {
  readonly values?: Record<string, string | boolean>;
  readonly kube?: KubeClient;
  readonly stop?: AbortController;
  readonly out?: (text: string) => unknown;
}

const call = (
  command: ClusterCommand,
  positionals: readonly string[],
  { values = {}, kube = aCluster(), stop = new AbortController(), out = () => undefined }: Given = {},
) => runCommand(command, { kube, namespace: 'vms', positionals, values, signal: stop.signal, onOut: out, now });
const get = (positionals: readonly string[], values: Record<string, string | boolean> = {}) =>
  call(getCommand, positionals, { values });

const namesIn = (table: string): readonly string[] =>
  table
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(' ')[0] ?? '');

describe('bullion get', () => {
  it.each(types.map((type) => [`${type.kind}.${type.group}`, type] as const))('has %s', async (_, type) => {
    const { out } = await get([`${type.plural}.${type.group}`]);
    const [, ...lines] = out.trim().split('\n');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(
      type.kind === dataSourceKind.type.kind
        ? /\/one +True +- +ReadyReason +60m$/
        : /\/one +True +Fine +42(\.0)?% .*(Ready|UpToDate)Reason +60m$/,
    );
  });

  it.each([
    ['its own namespace', undefined, 'fedora-1'],
    ['another one', 'golden', 'golden/fedora-1'],
  ])('shows which version a DataSource has, of %s', async (_, namespace, version) => {
    const kube = createMemoryKube();
    const object = anObject(dataSourceKind.type, 'vms', {});
    kube.seed(dataSourceKind.type, { ...object, spec: { source: { pvc: { namespace, name: 'fedora-1' } } } } as never);
    expect((await call(getCommand, ['das'], { kube })).out).toMatch(
      new RegExp(`^NAME +READY +VERSION.*\\ndatasource/one +False +${version} `),
    );
  });

  it('calls each object by a name of its own, which bullion why takes', async () => {
    const names = namesIn((await get([])).out);
    expect(new Set(names).size).toBe(types.length);
    for (const name of names) expect((await call(whyCommand, [name])).out).toMatch(/vms\/one/);
  });

  it('says which kinds its user may not list, and lists the others', async () => {
    const cluster = aCluster();
    const kube: KubeClient = {
      ...cluster,
      listAll: (type, options) => {
        if (type.kind === 'DataVolume') throw new Denied('datavolumes is forbidden');
        return cluster.listAll(type, options);
      },
    };
    const { out, err, code } = await call(getCommand, [], { kube });
    expect([namesIn(out).length, err, code]).toEqual([
      types.length - 1,
      'Your account has no right to list datavolumes.cdi.kubevirt.io in namespace vms\n',
      exitCodes.failed,
    ]);
  });

  it('has all of them at once, of one namespace or of every one', async () => {
    expect((await get([])).out.trim().split('\n')).toHaveLength(1 + types.length);
    const all = await get([], { 'all-namespaces': true });
    expect(all.out.trim().split('\n')).toHaveLength(1 + 2 * types.length);
    expect(all.out).toMatch(/^NAMESPACE +NAME/);
  });

  it.each([
    ['images', 2],
    ['dv', 1],
    ['DataVolumes', 1],
    ['dataimportcrons.cdi.kubevirt.io', 1],
  ])('knows %s', async (kind, count) => {
    expect(JSON.parse((await get([kind], { output: 'json' })).out)).toMatchObject({ items: { length: count } });
  });

  it('has columns of the caller, by the paths that kubectl takes', async () => {
    const asked = (columns: string) => get(['dv'], { output: `custom-columns=${columns}` });
    const { out } = await asked(
      String.raw`NAME:.metadata.name,WHY:{.status.conditions[0].reason},NONE:.metadata.labels.a\.b/c`,
    );
    expect(out).toBe('NAME   WHY           NONE\none    ReadyReason   <none>\n');
    await expect(asked('NAME')).rejects.toThrow(/HEADING:\.field\.field, not NAME/);
    await expect(asked('NAME:metadata')).rejects.toThrow(/not NAME:metadata/);
  });

  it('prints each change once more while it watches, across a connection that ends, until it is interrupted', async () => {
    const kube = aCluster();
    const stop = new AbortController();
    const { type } = dataImportCronKind;
    const printed: string[] = [];
    const watching = call(getCommand, ['dic'], {
      kube,
      values: { watch: true },
      stop,
      out: (text) => printed.push(text),
    });
    await expect.poll(() => printed.length).toBe(1);
    const key = { namespace: 'vms', name: 'one' };
    await kube.mergePatch(type, key, { metadata: { labels: { seen: 'true' } } });
    await expect.poll(() => printed.length).toBe(2);
    kube.watches.cut();
    await kube.delete(type, key);
    await expect.poll(() => printed.length).toBe(3);
    stop.abort();
    expect((await watching).code).toBe(exitCodes.interrupted);
    expect(printed.join('')).toMatch(
      /^NAME .*\n(dataimportcron\/one +True +Fine .*\n){2}dataimportcron\/one .* Deleted .*\n$/,
    );
  });

  it('shows a progress that is not known as it is', async () => {
    const kube = aCluster();
    kube.edit(dataVolumeKind.type, { namespace: 'vms', name: 'one' }, (volume) => {
      Object.assign(volume.status!, { progress: 'N/A' });
    });
    expect((await call(getCommand, ['dv'], { kube })).out).toMatch(/ Fine +N\/A +-/);
  });

  it('keeps the columns of lines that come while nothing was there', async () => {
    const kube = createMemoryKube();
    const stop = new AbortController();
    const printed: string[] = [];
    const given = { kube, values: { watch: true }, stop, out: (text: string) => printed.push(text) };
    const watching = call(getCommand, ['dic'], given);
    const { type } = dataImportCronKind;
    for (const [index, phase] of ['ALongPhase', 'Short'].entries()) {
      const name = `cron-${index}`;
      kube.seed(type, {
        ...anObject(type, 'vms', { phase }),
        metadata: { name, namespace: 'vms', uid: name },
      } as never);
      await expect.poll(() => printed.length).toBe(index + 1);
    }
    stop.abort();
    await watching;
    const [heading = '', ...lines] = printed.join('').trimEnd().split('\n');
    const places = lines.map((line) => line.indexOf(' -', heading.indexOf('PHASE')));
    expect(new Set(places).size).toBe(1);
  });

  it('says what can be asked for where a kind is none of ours', async () => {
    await expect(get(['pods'])).rejects.toThrow(/pods is not a kind .* datavolumes/);
  });
});
