// `bullion logs` on pods of each kind of owner, before they start and while they follow one another.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { logsCommand } from './logs.ts';
import { exitCodes, type Values } from '#cli/command.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { labels, systemNamespace } from '#shared/api/names.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Denied, InvalidInput } from '#shared/runtime/errors.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { createMemoryKube, type MemoryKube } from '#test/support/memory-kube.ts';
import { runCommand } from '#test/support/command.ts';

const namespace = 'vms';
const type = dataVolumeKind.type;
const made = '2026-01-02T03:04:05Z';
const logged = JSON.stringify({ time: made, level: 'info', message: 'transfer ended', bytes: 7 });

const anObject = (of: ResourceType, name: string, over: object = {}, more: object = {}): KubeObject =>
  ({
    apiVersion: apiVersionOf(of),
    kind: of.kind,
    metadata: { name, namespace, uid: `uid-${name}`, creationTimestamp: made, ...over },
    spec: {},
    ...more,
  }) as KubeObject;
const ownerOf = ({ kind, metadata: { name, uid = '' } }: KubeObject) => ({
  ownerReferences: [{ apiVersion: 'v1', kind, name, uid }],
});
const aPod = (name: string, over: object, status: object = { phase: 'Succeeded' }) =>
  anObject(pods as unknown as ResourceType, name, over, { spec: { containers: [{ name: 'transfer' }] }, status });

const seed = (kube: MemoryKube, of: unknown, object: KubeObject) => kube.seed(of as ResourceType, object);

const logs = (
  kube: KubeClient,
  lines: Readonly<Record<string, readonly string[] | Error>>,
  {
    values = {},
    wanted = 'disk',
    onLine = () => undefined as unknown,
  }: { values?: Values; wanted?: string; onLine?: () => unknown } = {},
) => {
  const withLogs: KubeClient = {
    ...kube,
    logs: async function* read({ name }) {
      const found = lines[name] ?? [];
      if (found instanceof Error) throw found;
      for (const line of found) {
        onLine();
        yield line;
      }
    },
  };
  const now = new Date('2026-01-02T03:05:05Z');
  return runCommand(logsCommand, { kube: withLogs, namespace, positionals: [wanted], values, now });
};

const aVolume = (kube: MemoryKube, status: object = {}) =>
  seed(kube, type, anObject(type as ResourceType, 'disk', {}, { status }));
const createWith = (fill: (kube: MemoryKube) => unknown): MemoryKube => {
  const kube = createMemoryKube();
  fill(kube);
  return kube;
};
const ended = { phase: 'Succeeded', conditions: [{ type: 'Ready', status: 'True' }] };

describe('bullion logs', () => {
  it('shows each attempt with how it ended, the oldest first, and nothing of others', async () => {
    const kube = createMemoryKube();
    aVolume(kube);
    const marks = { labels: { [labels.ownerUid]: 'uid-disk' } };
    const killed = {
      phase: 'Failed',
      containerStatuses: [{ name: 'transfer', state: { terminated: { exitCode: 137 } } }],
    };
    seed(kube, pods, aPod('b', { ...marks, creationTimestamp: '2026-01-02T03:05:00Z' }));
    seed(kube, pods, aPod('a', marks, killed));
    seed(kube, pods, aPod('other', {}));
    const { out, err, code } = await logs(kube, { a: ['not JSON', '{"a":1}'], b: [logged], other: ['no'] });
    expect(out).toBe('not JSON\n{"a":1}\n03:04:05 info  transfer ended {"bytes":7}\n');
    expect(err).toBe('==> a: Failed with exit code 137, 60s old <==\n==> b: Succeeded, 5s old <==\n');
    expect(code).toBe(exitCodes.done);
    expect((await logs(kube, { b: [logged] }, { values: { raw: true } })).out).toBe(`${logged}\n`);
  });

  it.each(['disk', 'pvc/disk'])('finds pods of a CDI, which claims of claims own: %s', async (wanted) => {
    const kube = createMemoryKube();
    const volume = aVolume(kube);
    const claim = seed(
      kube,
      persistentVolumeClaims,
      anObject(persistentVolumeClaims as ResourceType, 'disk', { uid: 'uid-claim', ...ownerOf(volume) }),
    );
    const prime = seed(
      kube,
      persistentVolumeClaims,
      anObject(persistentVolumeClaims as ResourceType, 'prime', ownerOf(claim)),
    );
    seed(kube, pods, aPod('importer', ownerOf(prime)));
    expect((await logs(kube, { importer: ['one'] }, { wanted })).out).toBe('one\n');
  });

  it('says that a pod has not started, and that there is none', async () => {
    const kube = createMemoryKube();
    aVolume(kube);
    const none = await logs(kube, {});
    expect(none.code).toBe(exitCodes.notFound);
    expect(none.err).toMatch(/its pods are gone: .* bullion why disk -n vms/);
    const followed = await logs(
      createWith((world) => aVolume(world, { ...ended, observedGeneration: 1 })),
      {},
      { values: { follow: true } },
    );
    expect(followed).toMatchObject({ code: exitCodes.notFound, err: none.err });
    seed(kube, pods, aPod('a', { labels: { [labels.ownerUid]: 'uid-disk' } }, { phase: 'Pending' }));
    const early = await logs(kube, { a: new InvalidInput('Kubernetes API: GET /x: container is waiting to start') });
    expect(early).toMatchObject({
      out: '',
      err: 'a has no log: container is waiting to start\n',
      code: exitCodes.done,
    });
  });

  it('follows through attempts until the object is ready', async () => {
    const kube = createMemoryKube();
    aVolume(kube);
    const marks = { labels: { [labels.ownerUid]: 'uid-disk' } };
    seed(kube, pods, aPod('a', marks, { phase: 'Failed' }));
    let seen = 0;
    const onLine = () => {
      seen += 1;
      if (seen === 1) seed(kube, pods, aPod('b', { ...marks, creationTimestamp: '2026-01-02T03:05:00Z' }));
      if (seen === 2)
        kube.edit(
          type,
          { namespace, name: 'disk' },
          (volume) =>
            void Object.assign(volume, { status: { ...ended, observedGeneration: volume.metadata.generation ?? 0 } }),
        );
    };
    const { out, code } = await logs(kube, { a: ['one'], b: ['two'] }, { values: { follow: true }, onLine });
    expect(out).toBe('one\ntwo\n');
    expect(code).toBe(exitCodes.done);
  });

  describe('of the functions', () => {
    const about = (object: string, second: string, more: object = {}) =>
      JSON.stringify({ time: `2026-01-02T03:04:${second}Z`, level: 'info', message: 'acting', object, ...more });
    const lines = {
      late: [about('Job vms/import-uid-disk', '09', { child: 'PersistentVolumeClaim disk' }), 'not JSON'],
      early: [
        about('DataVolume vms/disk', '01'),
        about('DataVolume vms/other', '02'),
        about('DataVolume other/disk', '03'),
        about('PersistentVolumeClaim vms/made', '04'),
      ],
    };
    const world = () => {
      const kube = createMemoryKube();
      aVolume(kube);
      const claim = { namespace, labels: { [labels.ownerUid]: 'uid-disk' } };
      seed(kube, persistentVolumeClaims, anObject(persistentVolumeClaims as ResourceType, 'made', claim));
      for (const name of ['late', 'early']) seed(kube, pods, aPod(name, { namespace: systemNamespace }));
      return kube;
    };

    it('are those about it and its children, in order, from all pods', async () => {
      const { out, code } = await logs(world(), lines, { values: { functions: true } });
      expect(out.match(/vms\/[\w-]+/g)).toEqual(['vms/disk', 'vms/made', 'vms/import-uid-disk']);
      expect(code).toBe(exitCodes.done);
      expect((await logs(world(), lines, { values: { functions: true, tail: '1' } })).out).toContain('import-uid-disk');
    });

    it('are read from a file', async () => {
      const from = join(temporaryDirectory(), 'cluster.log');
      writeFileSync(from, lines.early.join('\n'));
      const { out } = await logs(createWith(aVolume), {}, { values: { from } });
      expect(out).toContain('03:04:01 info  acting');
      await expect(logs(createWith(aVolume), {}, { values: { from: `${from}-no` } })).rejects.toThrow(/--from: ENOENT/);
    });

    it('say why there are none', async () => {
      const { err, code } = await logs(world(), {}, { values: { functions: true } });
      expect([err, code]).toEqual([expect.stringContaining('log store'), exitCodes.notFound]);
      await expect(logs(createWith(aVolume), {}, { values: { functions: true } })).rejects.toThrow(
        /--from reads a file/,
      );
      await expect(logs(world(), {}, { values: { functions: true, follow: true } })).rejects.toThrow(
        /leave out --follow/,
      );
      const kube = world();
      kube.failNext({ verb: 'list', resource: 'pods' }, { error: new Denied('rita cannot list pods'), when: 'before' });
      // The children are listed before.
      kube.failNext({ verb: 'list', resource: 'pods' }, { error: new Denied('rita cannot list pods'), when: 'before' });
      await expect(logs(kube, {}, { values: { functions: true } })).rejects.toThrow(/for administrators of/);
    });
  });

  it('refuses lines that are no number', async () => {
    const kube = createMemoryKube();
    aVolume(kube);
    seed(kube, pods, aPod('a', { labels: { [labels.ownerUid]: 'uid-disk' } }));
    await expect(logs(kube, {}, { values: { tail: 'x' } })).rejects.toThrow('--tail is a number of lines, not x');
  });
});
