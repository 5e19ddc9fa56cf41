// Faults that users of image importers have reported in public, each reproduced on the local cluster. The reference in a case's title is the
// report; cdi is kubevirt/containerized-data-importer.
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { namespaces, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { type HarvesterImage, harvesterImageKind, harvesterLabels } from '#shared/api/harvester/image.ts';
import { type Answer, type Origin, type OriginRequest, fileAnswer, startOrigin } from '#test/support/origin.ts';
import {
  type TestCluster,
  anImage,
  deleteImage,
  followUntil,
  images,
  isOver,
  leftOvers,
  namespace,
  readyOf,
  startTestCluster,
} from '#test/support/cluster.ts';
import { untilStatus } from '#test/support/until.ts';

const mib = 2 ** 20;
const raw = Buffer.concat([randomBytes(6 * mib), Buffer.alloc(4 * mib), randomBytes(2 * mib)]);
const half = raw.length / 2;
const members = Buffer.concat([
  gzipSync(raw.subarray(0, half), { level: 1 }),
  gzipSync(raw.subarray(half), { level: 1 }),
]);
const page = Buffer.from(`<!DOCTYPE html><html><body>This link has expired${' '.repeat(600)}</body></html>`);
const endless = { ranges: false, chunked: true, etag: null } as const;

/** The response for each path; `nth` counts the requests for it from 0. */
const answers: Readonly<Record<string, (request: OriginRequest, nth: number) => Answer>> = {
  '/expiring': (request, nth) => (nth < 2 ? fileAnswer(request, raw) : { ...fileAnswer(request, page, endless) }),
  '/shrinking': (request, nth) => fileAnswer(request, nth < 2 ? raw : raw.subarray(0, half), endless),
  '/cutting': (request) => ({ ...fileAnswer(request, raw), cutAfter: 3 * mib }),
  '/members': (request) => fileAnswer(request, members, { headers: { 'content-encoding': 'gzip' } }),
  '/raw': (request) => fileAnswer(request, raw),
  '/slow': (request) => ({ ...fileAnswer(request, raw), pace: 40 }),
};

const harvesterImage = (name: string, spec: Partial<HarvesterImage['spec']>): HarvesterImage => ({
  apiVersion: 'harvesterhci.io/v1beta1',
  kind: 'VirtualMachineImage',
  metadata: { name, namespace },
  spec: { backend: 'csi', displayName: name, sourceType: 'download', targetStorageClassName: 'local', ...spec },
});

describe('cases that users of image importers have reported', { timeout: 400_000 }, () => {
  let cluster: TestCluster;
  let origin: Origin;
  const nth = new Map<string, number>();
  beforeAll(async () => {
    origin = await startOrigin((request) => {
      const count = nth.get(request.path) ?? 0;
      nth.set(request.path, count + 1);
      return answers[request.path]?.(request, count) ?? { status: 404 };
    });
    cluster = await startTestCluster();
    const { kube } = cluster;
    for (const name of ['expiring', 'shrinking', 'cutting', 'members']) {
      await kube.create(images, anImage(name, { source: { http: `${origin.url}/${name}` } }));
    }
  });
  afterAll(async () => {
    await cluster.close();
    await origin.close();
  });

  const endOf = async (name: string) => (await followUntil(cluster.kube, name, isOver)).at(-1);

  /** Whether the golden volume starts with the disk as published. */
  const isIdentical = async (name: string): Promise<boolean> => {
    const claim = await cluster.kube.get(persistentVolumeClaims, { namespace, name: `${name}-image-pvc` });
    const disk = await readFile(join(cluster.dataDir, 'storage/volumes', claim?.spec.volumeName ?? '', 'block'));
    return disk.subarray(0, raw.length).equals(raw);
  };

  it('no image is created from the page that an expired link answers with 200 (cdi#1502)', async () => {
    const status = await endOf('expiring');
    expect([status?.state, readyOf(status)?.reason]).toEqual(['Error', 'NotADiskImage']);
    expect(status?.progress).toBeLessThan(100);
  });

  it('no image is created from a truncated file when the server reports no length', async () => {
    const status = await endOf('shrinking');
    expect([status?.state, readyOf(status)?.reason, status?.attempts]).toEqual(['Error', 'SourceChanged', 4]);
    expect(readyOf(status)?.message).toContain(
      `ended after ${half} bytes, and an earlier inspection found ${raw.length}`,
    );
  });

  it('a download resumes however often the connection is reset, as long as bytes arrive (longhorn#5307)', async () => {
    const status = await endOf('cutting');
    expect([status?.state, status?.attempts, status?.failed]).toEqual(['Available', 1, 0]);
    expect(await isIdentical('cutting')).toBe(true);
  });

  it('a gz with several members is decompressed once, whatever Content-Encoding says (wordpress-importer#47)', async () => {
    expect((await endOf('members'))?.state).toBe('Available');
    expect(await isIdentical('members')).toBe(true);
  });

  it('a wrong checksum is reported once and not retried beyond its limit (harvester#9813)', async () => {
    const image = harvesterImage('wrong-sum', { url: `${origin.url}/raw`, checksum: '0'.repeat(128), retry: 3 });
    await cluster.kube.create(harvesterImageKind.type, image);
    const key = { namespace, name: 'wrong-sum' };
    const status = await untilStatus(cluster.kube, harvesterImageKind.type, key, ({ conditions }) =>
      (conditions ?? []).some(({ type, reason }) => type === 'Ready' && reason === 'ChecksumMismatch'),
    );
    await sleep(2_000);
    const later = await cluster.kube.get(harvesterImageKind.type, key);
    expect(later?.status?.failed).toBe(status.failed);
    expect(later?.status?.failed).toBeLessThanOrEqual(1);
  });

  it('display names are free text, and their label stays a valid label (harvester#11464)', async () => {
    const displayName = `Debian 12 (bookworm), été ${'x'.repeat(300)}`;
    const created = await cluster.kube.create(
      harvesterImageKind.type,
      harvesterImage('free-text', { displayName, url: `${origin.url}/raw` }),
    );
    expect(created.spec.displayName).toBe(displayName);
    expect(created.metadata.labels?.[harvesterLabels.displayName]).toMatch(/^[A-Za-z0-9][-\w.]{0,61}[A-Za-z0-9]$/);
  });

  it('a worker that is deleted while it downloads is replaced (cdi#1257)', async () => {
    const name = 'evicted';
    await cluster.kube.create(images, anImage(name, { source: { http: `${origin.url}/slow` } }));
    const status = (await followUntil(cluster.kube, name, ({ phase }) => phase === 'Downloading')).at(-1);
    const { items } = await cluster.kube.list(pods, { namespace });
    const worker = items.find(({ metadata }) => metadata.name.startsWith(`${status?.children?.job}-`));
    await cluster.kube.delete(pods, { namespace, name: worker?.metadata.name ?? '' });
    expect((await endOf(name))?.state).toBe('Available');
    expect(await isIdentical(name)).toBe(true);
  });

  it('a name is free at once, and the new image shares nothing with the old one (harvester#3773)', async () => {
    const name = 'again';
    for (const path of ['slow', 'slow', 'raw']) {
      await cluster.kube.create(images, anImage(name, { source: { http: `${origin.url}/${path}` } }));
      if (path === 'slow') {
        await followUntil(cluster.kube, name, ({ phase }) => phase === 'Downloading');
        await deleteImage(cluster.kube, name);
      }
    }
    expect((await endOf(name))?.state).toBe('Available');
    expect(await isIdentical(name)).toBe(true);
  });

  it('a namespace is deleted with the images that are being imported in it (harvester#2591)', async () => {
    const doomed = 'doomed';
    await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: doomed } });
    const image = anImage('inside', { source: { http: `${origin.url}/slow` } });
    await cluster.kube.create(images, { ...image, metadata: { name: 'inside', namespace: doomed } });
    await untilStatus(
      cluster.kube,
      images,
      { namespace: doomed, name: 'inside' },
      ({ phase }) => phase === 'Downloading',
    );
    await cluster.kube.delete(namespaces, { name: doomed });
    const left = () => cluster.kube.get(namespaces, { name: doomed });
    await expect.poll(left, { timeout: 150_000 }).toBeUndefined();
  });

  it('nothing is left once every image is deleted (cdi#525)', async () => {
    const { kube } = cluster;
    for await (const { metadata } of kube.listAll(images)) await deleteImage(kube, metadata.name);
    for await (const { metadata } of kube.listAll(harvesterImageKind.type)) {
      await kube.delete(harvesterImageKind.type, { namespace, name: metadata.name });
    }
    expect(await leftOvers(kube, cluster.dataDir)).toEqual([]);
  });
});
