import { mkdtemp, open, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import {
  type ImageStatus,
  type TestCluster,
  anImage,
  deleteImage,
  followUntil,
  images,
  isOver,
  leftOvers,
  namespace,
  readyOf,
  run,
  settle,
  startTestCluster,
} from '#test/support/cluster.ts';

const mib = 2 ** 20;

describe('an import that cannot succeed', { timeout: 180_000 }, () => {
  let dir: string;
  let qcow2: string;
  let cluster: TestCluster;
  let server: FileServer;
  let unreachable: Promise<readonly ImageStatus[]>;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-faults-'));
    const raw = join(dir, 'disk.raw');
    qcow2 = join(dir, 'disk.qcow2');
    await writeBootDisk(raw, { bytes: 64 * mib, dataBytes: 8 * mib });
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, qcow2]);
    server = await startFileServer();
    cluster = await startTestCluster({ backOffFactor: 0.2 });
    // Takes most of a minute: started here, checked last.
    const http = `http://127.0.0.1:${closedPort}/disk.qcow2`;
    await cluster.kube.create(images, anImage('unreachable', { source: { http } }));
    unreachable = followUntil(cluster.kube, 'unreachable', isOver, 200);
    unreachable.catch(() => undefined);
  });
  afterAll(async () => {
    await cluster.close();
    await server.close();
    await rm(dir, { recursive: true, force: true });
  });

  /** A file published under its own name; `make` fills it. */
  const published = async (name: string, make: (path: string) => Promise<unknown>): Promise<string> => {
    const path = join(dir, name);
    await make(path);
    return server.offer(name, path);
  };
  const copyOfDisk = (path: string) => run('cp', [qcow2, path]);

  const cases: readonly {
    readonly what: string;
    readonly source: () => Promise<string>;
    readonly spec?: object;
    readonly reason: string;
    /** Facts that the message must contain. */
    readonly says: RegExp;
  }[] = [
    {
      what: 'a file that is not there',
      source: async () => `${server.url}/nothing.qcow2`,
      reason: 'SourceNotFound',
      says: /404/,
    },
    {
      what: 'a web page',
      source: () =>
        published('page.qcow2', (path) => writeFile(path, '<!DOCTYPE html><html><body>Log in</body></html>')),
      reason: 'NotADiskImage',
      says: /html/i,
    },
    {
      what: 'a wrong checksum',
      source: async () => server.offer(basename(qcow2), qcow2),
      spec: { checksum: `sha256:${'0'.repeat(64)}` },
      reason: 'ChecksumMismatch',
      says: /0000.*|sha256/,
    },
    {
      what: 'a truncated file',
      source: () =>
        published('short.qcow2', async (path) => {
          await copyOfDisk(path);
          await truncate(path, Math.floor((await stat(path)).size / 2));
        }),
      reason: 'ImageTruncated',
      says: /\d/,
    },
    {
      what: 'an image larger than the requested volume',
      source: async () => server.offer(basename(qcow2), qcow2),
      spec: {
        pvc: {
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'local',
          resources: { requests: { storage: '16Mi' } },
        },
      },
      reason: 'ImageTooLarge',
      says: /64|67108864/,
    },
    {
      what: 'a backing file',
      source: () =>
        published('overlay.qcow2', (path) =>
          run('qemu-img', ['create', '-f', 'qcow2', '-b', '/etc/passwd', '-F', 'raw', path, '64M']),
        ),
      reason: 'ExternalReference',
      says: /passwd|backing/,
    },
    {
      what: 'an encrypted image',
      source: () =>
        published('secret.qcow2', async (path) => {
          await copyOfDisk(path);
          await using file = await open(path, 'r+');
          await file.write(Buffer.from([0, 0, 0, 1]), 0, 4, 32);
        }),
      reason: 'ImageEncrypted',
      says: /encrypt/,
    },
  ];

  it.each(cases)('fails for $what with $reason', async ({ what, source, spec, reason, says }) => {
    const name = `fails-${cases.findIndex((one) => one.what === what)}`;
    const status = await settle(cluster.kube, anImage(name, { source: { http: await source() }, ...spec }));
    const ready = readyOf(status);
    expect([status.state, ready?.status, ready?.reason]).toEqual(['Error', 'False', reason]);
    expect(ready?.message).toMatch(says);
    expect(ready?.message).toContain('attempt 1 of 4');
    expect(status.progress ?? 0).toBeLessThan(100);
  });

  it('restarts on request, once the source is corrected', async () => {
    const url = await published('mended.qcow2', (path) => writeFile(path, '<html>'));
    const name = 'mended';
    expect((await settle(cluster.kube, anImage(name, { source: { http: url } }))).state).toBe('Error');
    await copyOfDisk(join(dir, 'mended.qcow2'));
    await cluster.kube.mergePatch(
      images,
      { namespace, name },
      { metadata: { annotations: { 'bullion.dev/retry': '1' } } },
    );
    const observed = await followUntil(cluster.kube, name, ({ state }) => state === 'Available');
    expect(observed.at(-1)?.state).toBe('Available');
  });

  it('resumes after interrupted connections, without starting over', async () => {
    const flaky = await startFlakyServer(qcow2);
    const status = await settle(cluster.kube, anImage('flaky', { source: { http: flaky.url } }));
    await flaky.close();
    expect([status.state, status.attempts]).toEqual(['Available', 1]);
  });

  it.each([
    [
      'a checksum of the wrong length',
      { source: { http: 'http://127.0.0.1/x' }, checksum: 'sha256:abc' },
      'spec.checksum',
    ],
    ['an address that is none', { source: { http: 'not an address' } }, 'spec.source.http'],
    ['no source', { source: {} }, 'spec.source'],
  ])('is rejected at once for %s', async (_, spec, field) => {
    await expect(cluster.kube.create(images, anImage('refused', spec))).rejects.toThrow(field);
  });

  // What is reported between two attempts is in the tables of the plans: the back-off here is short, and a late look finds it over.
  it('retries a server that refuses the connection four times', { timeout: 200_000 }, async () => {
    const last = (await unreachable).at(-1);
    expect({ attempts: last?.attempts, ...readyOf(last) }).toMatchObject({
      attempts: 4,
      reason: 'SourceUnreachable',
      message: expect.stringMatching(/ECONNREFUSED.*attempt 4 of 4/),
    });
  });

  it('leaves nothing behind once deleted', async () => {
    for await (const { metadata } of cluster.kube.listAll(images)) await deleteImage(cluster.kube, metadata.name);
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
  });

  it('reports what happened in order: a final state never changes by itself', async () => {
    const status = await settle(cluster.kube, anImage('final', { source: { http: `${server.url}/nothing` } }));
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    const later = await followUntil(cluster.kube, 'final', isOver);
    expect(readyOf(later.at(-1))?.reason).toBe(readyOf(status)?.reason);
    await deleteImage(cluster.kube, 'final');
  });
});

/** A port without a listener that clients do not block by themselves: a port that was just freed may be used by the next test. */
const closedPort = 2;

/** Supports ranges, and cuts each response after 3 MiB. */
const startFlakyServer = async (path: string) => {
  const { readFile } = await import('node:fs/promises');
  const content = await readFile(path);
  const server = createServer((request, response) => {
    const start = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const rest = content.subarray(start);
    response.writeHead(request.headers.range === undefined ? 200 : 206, {
      etag: '"one"',
      'accept-ranges': 'bytes',
      'content-length': rest.length,
      'content-range': `bytes ${start}-${content.length - 1}/${content.length}`,
    });
    if (request.method === 'HEAD') return response.end();
    if (rest.length <= 3 * mib) return response.end(rest);
    return response.write(rest.subarray(0, 3 * mib), () => setTimeout(() => response.destroy(), 50));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/disk.qcow2`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
