// Files that change, followed by crons: named by the digest of their bytes, from whatever source and at whatever time; and fetched once for all volumes.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { namespaces, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { noise } from '#test/support/disk.ts';
import {
  type GoldenFlow,
  createGoldenFlow,
  isUpToDate,
  seldom,
  untilOffered,
  versionOf,
} from '#test/support/golden.ts';
import { type Origin, fileAnswer, startOrigin } from '#test/support/origin.ts';

const namespace = 'golden-images';
const bytes = 4 * 2 ** 20;
const digestOf = (file: Buffer): string => `sha256:${createHash('sha256').update(file).digest('hex')}`;
const storage = { resources: { requests: { storage: '16Mi' } } };

describe('golden images from files', { timeout: 600_000 }, () => {
  let origin: Origin;
  let cluster: TestCluster;
  let flow: GoldenFlow;
  let file: Buffer;
  let etag: string;
  beforeAll(async () => {
    origin = await startOrigin((request) =>
      request.path === '/SHA256SUMS'
        ? { body: Buffer.from(`${digestOf(file).slice(7)} *disk.img\n`) }
        : fileAnswer(request, file, { etag }),
    );
    cluster = await startTestCluster(seldom);
    flow = createGoldenFlow(cluster.kube, namespace);
    await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  }, 300_000);
  afterAll(async () => {
    await cluster?.close();
    await origin?.close();
  });
  beforeEach(() => {
    origin.requests.length = 0;
  });

  const put = (seed: string, tag: string): string => {
    [file, etag] = [noise(seed, bytes), tag];
    return digestOf(file);
  };
  /** How often the bytes were transferred, computed from the bytes sent since. */
  const counted = () => {
    const before = origin.sentBytes();
    return () => Math.round((origin.sentBytes() - before) / bytes);
  };

  it('are named by the digest of their bytes, which is known only after the import', async () => {
    const first = put('first', '"1"');
    const fetches = counted();
    await flow.aCron('tagged', {
      importsToKeep: 3,
      template: { spec: { source: { http: { url: `${origin.url}/disk.img` } }, storage } },
    });
    await untilOffered(flow, 'tagged', versionOf('tagged', first));
    expect(fetches()).toBe(1);
    const cron = await flow.until(dataImportCronKind.type, 'tagged', isUpToDate);
    expect(cron.status?.currentImports?.[0]).toMatchObject({
      Digest: first,
      Validator: expect.stringMatching(/^validator:/),
    });
    expect(cron.status?.lastPoll?.message).toContain('ETag "1"');
    // Published again with the same bytes: fetched to compare, and nothing changes.
    put('first', '"2"');
    const { uid } = (await flow.get(dataVolumes, versionOf('tagged', first)))?.metadata ?? {};
    await flow.pollNow('tagged');
    const validator = cron.status?.currentImports?.[0]?.Validator;
    await flow.until(
      dataImportCronKind.type,
      'tagged',
      (object) => isUpToDate(object) && object?.status?.currentImports?.[0]?.Validator !== validator,
    );
    expect((await flow.get(dataVolumes, versionOf('tagged', first)))?.metadata.uid).toBe(uid);
    // Different bytes are a different version.
    const second = put('second', '"3"');
    await flow.pollNow('tagged');
    await untilOffered(flow, 'tagged', versionOf('tagged', second));
    // The volume with the provisional name is deleted once the version exists.
    const claims = async (): Promise<readonly string[]> => {
      const { items } = await cluster.kube.list(persistentVolumeClaims, { namespace });
      return items.map(({ metadata }) => metadata.name).sort();
    };
    await expect
      .poll(claims, { timeout: 60_000 })
      .toEqual([versionOf('tagged', first), versionOf('tagged', second)].sort());
    await flow.remove(dataImportCronKind.type, 'tagged');
  });

  it('are fetched once for crons of one file without a published digest, though the second is created when the first is done', async () => {
    const digest = put('twice', '"twice"');
    const fetches = counted();
    for (const name of ['earlier', 'later']) {
      await flow.aCron(name, { template: { spec: { source: { http: { url: `${origin.url}/disk.img` } }, storage } } });
      await untilOffered(flow, name, versionOf(name, digest));
    }
    expect(fetches()).toBe(1);
  });
});
