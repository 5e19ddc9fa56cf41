// A golden image in real pods over two versions: rolled out by channels, taken back, and cloned into root disks of each version.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { network } from '#local-cluster/node/layout.ts';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { aDataVolume, isOver } from '#test/support/data-volumes.ts';
import { createGoldenFlow, isUpToDate, untilOffered } from '#test/support/golden.ts';
import { untilStatus } from '#test/support/until.ts';
import { createNamespace, deleteNamespaces, diskIn, kube, paths, run, timed } from '#test/cluster/support.ts';

const mib = 2 ** 20;
const namespace = 'golden';
const at = (name: string) => ({ namespace, name });
const flow = createGoldenFlow(kube, namespace);

let dir: string;
let files: FileServer;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'bullion-cluster-golden-'));
  files = await startFileServer({ host: network.node });
  await createNamespace(namespace);
});
afterAll(async () => {
  await deleteNamespaces(namespace);
  await files?.close();
  await rm(dir, { recursive: true, force: true });
});

/** Path of a disk that differs from that of another version. */
const publish = async (version: string, dataMib: number): Promise<string> => {
  const raw = join(dir, `${version}.raw`);
  await writeBootDisk(raw, { bytes: 32 * mib, dataBytes: dataMib * mib });
  files.offer('fedora.raw', raw);
  return raw;
};

const imported = async (previous?: string): Promise<string> => {
  const cron = await flow.until(
    dataImportCronKind.type,
    'fedora',
    (now) => isUpToDate(now) && now?.status?.lastImportedPVC?.name !== previous,
  );
  return cron.status?.lastImportedPVC?.name ?? '';
};

const bullion = (...args: readonly string[]) =>
  run(process.execPath, ['cli/main.ts', ...args, '-n', namespace, '--kubeconfig', paths.kubeconfig]);

/** A disk of what the DataSource offers now. */
const aRootDisk = async (name: string): Promise<string> => {
  const sourceRef = { kind: 'DataSource', name: 'fedora' };
  const storage = { storageClassName: 'local', resources: { requests: { storage: '32Mi' } } };
  await kube.create(dataVolumeKind.type, aDataVolume(name, { sourceRef, storage }, {}, namespace));
  expect(await untilStatus(kube, dataVolumeKind.type, at(name), isOver, 120)).toMatchObject({ phase: 'Succeeded' });
  return name;
};

it('a version is tried, promoted, and taken back when it is bad', { timeout: 600_000 }, async () => {
  const first = await publish('v1', 6);
  const storage = { storageClassName: 'local', resources: { requests: { storage: '32Mi' } } };
  await flow.aCron('fedora', {
    template: { spec: { source: { http: { url: `${files.url}/fedora.raw` } }, storage } },
  });
  await kube.create(goldenImagePolicyKind.type, {
    apiVersion: 'bullion.dev/v1alpha1',
    kind: 'GoldenImagePolicy',
    metadata: at('fedora'),
    spec: {
      dataImportCrons: { names: ['fedora'] },
      channels: [
        { name: 'candidate', dataSource: 'fedora-candidate' },
        {
          name: 'stable',
          dataSource: 'fedora',
          after: { channel: 'candidate', soak: '1s', approval: 'manual' },
        },
      ],
    },
  });
  const one = await imported();
  await untilOffered(flow, 'fedora-candidate', one);
  await bullion('promote', 'stable', one, '--reason', 'the first');
  await untilOffered(flow, 'fedora', one);
  expect(await diskIn(at(await aRootDisk('root-1')), first)).toBe('identical');

  const second = await publish('v2', 8);
  await flow.pollNow('fedora');
  const two = await imported(one);
  await untilOffered(flow, 'fedora-candidate', two);
  expect(await diskIn(at(await aRootDisk('root-2')), first)).toBe('identical');
  await bullion('promote', 'stable', two);
  await untilOffered(flow, 'fedora', two);
  expect(await diskIn(at(await aRootDisk('root-3')), second)).toBe('identical');
  expect((await bullion('outdated')).stdout).toMatch(/root-1[^\n]*\n[^]*root-2/);

  await bullion('mark-bad', two, '--reason', 'does not boot on AMD');
  await timed('a bad version leaves its channels', async () => {
    await untilOffered(flow, 'fedora', one);
    await untilOffered(flow, 'fedora-candidate', one);
  });
  expect(await diskIn(at(await aRootDisk('root-4')), first)).toBe('identical');
});
