// The overlay `single`: every function in one process, started from the bundle, with the rights of its account and no others.
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { proveIdentical } from '#infra/local/demo/prove.ts';
import { leaseKey, leaseTimes } from '#infra/single/leader.ts';
import { leases } from '#shared/api/foreign/kubernetes.ts';
import { jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { anImage, deleteImage, followUntil, images, isOver, namespace } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { anUploadImage } from '#test/support/exchange.ts';
import { type Replica, type SingleCluster, startSingleCluster } from '#test/support/single.ts';
import { hasKubectl } from '#test/support/tools.ts';
import { until } from '#test/support/until.ts';

const run = promisify(execFile);
const mib = 2 ** 20;
const dir = temporaryDirectory();
const raw = join(dir, 'disk.raw');

describe.skipIf(!hasKubectl())('one process with every function', { timeout: 200_000 }, () => {
  let cluster: SingleCluster;
  let first: Replica;
  let second: Replica;
  let server: FileServer;
  let slowServer: FileServer;
  beforeAll(async () => {
    await writeBootDisk(raw, { bytes: 32 * mib, dataBytes: 8 * mib });
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, join(dir, 'disk.qcow2')]);
    server = await startFileServer();
    slowServer = await startFileServer({ bytesPerSecond: mib });
    for (const one of [server, slowServer]) one.offer('disk.qcow2', join(dir, 'disk.qcow2'));
    cluster = await startSingleCluster(join(dir, 'cluster'));
    first = cluster.start('bullion-0');
    await first.untilReady();
    second = cluster.start('bullion-1');
    await second.untilReady();
  }, 120_000);
  afterAll(async () => {
    await cluster?.close();
    await server?.close();
    await slowServer?.close();
  });

  const leader = async () => (await cluster.kube.get(leases, leaseKey))?.spec.holderIdentity;
  const importFrom = (name: string, from: FileServer): Promise<unknown> =>
    cluster.kube.create(images, anImage(name, { source: { http: `${from.url}/disk.qcow2` } }));
  const expectBytes = async (claim: string): Promise<void> => {
    const { spec } = (await cluster.kube.get(persistentVolumeClaims, { namespace, name: claim }))!;
    const disk = join(cluster.dataDir, 'storage/volumes', spec.volumeName ?? '', 'block');
    await proveIdentical(disk, { file: raw, format: 'raw', compression: 'none' }, dir);
  };
  const imported = { state: 'Available', failed: 0 };
  /** The status at the end, once the bytes were compared. */
  const outcomeOf = async (name: string) => {
    const observed = (await followUntil(cluster.kube, name, isOver)).at(-1);
    await expectBytes(`${name}-image-pvc`);
    return observed;
  };

  it('of two replicas the first one leads, and both answer', async () => {
    expect(await leader()).toBe('bullion-0');
    expect(second.log()).not.toContain('"leading"');
    for (const { ports } of [first, second]) {
      expect((await fetch(`http://127.0.0.1:${ports.http}/healthz`)).status).toBe(200);
      expect(await (await fetch(`http://127.0.0.1:${ports.metrics}/metrics`)).text()).toContain('bullion_');
    }
  });

  it('imports an image', async () => {
    await importFrom('fedora', server);
    expect(await outcomeOf('fedora')).toMatchObject(imported);
    await deleteImage(cluster.kube, 'fedora');
  });

  it('refuses an image that could never work, by the webhooks of its own certificate', async () => {
    const wrong = anImage('wrong', { source: { http: 'http://169.254.169.254/latest' } });
    await expect(cluster.kube.create(images, wrong)).rejects.toThrow(/169\.254\.169\.254/);
  });

  it('receives an upload', async () => {
    const key = { namespace, name: 'sent' };
    await cluster.kube.create(harvesterImageKind.type, anUploadImage(key.name));
    const kubeconfig = ['--kubeconfig', cluster.kubeconfigPath];
    const binding = ['clusterrolebinding', 'uploader', '--clusterrole=edit', '--serviceaccount=default:default'];
    await run('kubectl', ['create', ...binding, ...kubeconfig]);
    const token = (await run('kubectl', ['create', 'token', 'default', '-n', namespace, ...kubeconfig])).stdout.trim();
    const file = join(dir, 'disk.qcow2');
    const { size } = await stat(file);
    const path = `/v1/harvester/harvesterhci.io.virtualmachineimages/${namespace}/${key.name}`;
    const url = `${cluster.transferUrl}${path}?action=upload&size=${size}`;
    const headers = ['-H', `Authorization: Bearer ${token}`, '-H', 'Content-Type: application/octet-stream'];
    const { stdout } = await run('curl', [
      '-sS',
      '-f',
      '-w',
      '%{http_code}',
      '-X',
      'POST',
      ...headers,
      '-T',
      file,
      url,
    ]);
    expect(stdout).toMatch(/200$/);
    const isImported = (one: HarvesterImage | undefined) => one?.status?.phase === 'Imported';
    const image = await until(cluster.kube, harvesterImageKind.type, key, isImported, 120);
    await expectBytes(`vmi-${image!.metadata.uid}`);
  });

  it('takes from outside the progress of transfers alone', async () => {
    const headers = { 'ce-specversion': '1.0', 'ce-id': 'x', 'ce-source': '/x', 'content-type': 'application/json' };
    const url = `http://127.0.0.1:${first.ports.events}/bullion-system/bullion`;
    const post = async (type: string) =>
      (await fetch(url, { method: 'POST', headers: { ...headers, 'ce-type': type }, body: '{}' })).status;
    expect(await post('dev.knative.apiserver.resource.add')).toBe(403);
    expect(await post('dev.bullion.image.ready')).toBe(403);
    expect(await post('dev.bullion.transfer.progressed')).toBe(202);
  });

  it('needs no more than 150 MiB at rest', async () => {
    await sleep(5_000);
    const resident = await Promise.all([first, second].map((replica) => replica.resident()));
    for (const mebibytes of resident) expect(mebibytes).toBeLessThan(150);
  });

  it('a replica takes over from a leader that was killed, and finishes what had begun', async () => {
    await importFrom('begun', slowServer);
    await until(
      cluster.kube,
      images,
      { namespace, name: 'begun' },
      (one) => (one?.status?.transfer?.receivedBytes ?? 0) > 0,
    );
    await first.kill('SIGKILL');
    // Neither is noticed by anybody: no watch, no tick.
    await importFrom('unnoticed', server);
    await sleep(500);
    expect((await cluster.kube.list(jobs)).items.filter(({ metadata }) => metadata.name.includes('unnoticed'))).toEqual(
      [],
    );
    expect(await outcomeOf('begun')).toMatchObject(imported);
    expect(await outcomeOf('unnoticed')).toMatchObject(imported);
    expect(await leader()).toBe('bullion-1');
  });

  it('releases the Lease on SIGTERM, so that the next replica need not wait for its end', async () => {
    const third = cluster.start('bullion-2');
    await third.untilReady();
    const begun = Date.now();
    const ended = second.kill('SIGTERM');
    await until(cluster.kube, leases, leaseKey, (lease) => lease?.spec.holderIdentity === 'bullion-2', 30);
    expect(Date.now() - begun).toBeLessThan(leaseTimes.duration);
    expect(await ended).toBe(0);
    await importFrom('last', server);
    expect(await outcomeOf('last')).toMatchObject(imported);
  });
});
