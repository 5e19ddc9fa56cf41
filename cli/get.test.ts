// `bullion get` on what a cluster holds: every kind, one of them, and names that are none.
import { describe, expect, it } from 'vitest';
import { getCommand } from '#cli/commands/get.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { type KubeObject, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

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

const get = async (positionals: readonly string[], values: Record<string, string | boolean> = {}) => {
  const kube = createMemoryKube();
  for (const type of types) {
    const ready = type.kind === dataImportCronKind.type.kind ? 'UpToDate' : 'Ready';
    kube.seed(
      type,
      anObject(type, 'vms', {
        phase: 'Fine',
        progress: type.kind === 'DataVolume' ? '42.0%' : 42,
        conditions: [condition(ready)],
      }),
    );
    kube.seed(type, anObject(type, 'others', {}));
  }
  const told = { out: '', err: '' };
  const terminal = {
    out: (text: string) => void (told.out += text),
    err: (text: string) => void (told.err += text),
    isLive: false,
    now: () => now,
  };
  const call = { kube, namespace: 'vms', positionals, values, terminal, signal: new AbortController().signal };
  await getCommand.run({ ...call, bearer: () => Promise.resolve(undefined) });
  return told;
};

describe('bullion get', () => {
  it.each(types.map((type) => [type.kind, type] as const))('has %s, ready or not, by its name', async (kind, type) => {
    const { out } = await get([type.plural]);
    const lines = out.split('\n').filter((line) => line.startsWith(`${kind.toLowerCase()}/one`));
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/ True +Fine +42(\.0)?% .*(Ready|UpToDate)Reason +60m$/);
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

  it('says what can be asked for where a kind is none of ours', async () => {
    await expect(get(['pods'])).rejects.toThrow(/pods is not a kind .* datavolumes/);
  });
});
