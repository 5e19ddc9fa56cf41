// One file that crons, images and data volumes request: fetched once, whichever is created first. Its server counts the requests.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { namespaces, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { populationOf } from '#shared/populate/population.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { aConsumer, aDataVolume } from '#test/support/data-volumes.ts';
import { noise } from '#test/support/disk.ts';
import { type GoldenFlow, createGoldenFlow, seldom, untilOffered, versionOf } from '#test/support/golden.ts';
import { type Origin, fileAnswer, startOrigin } from '#test/support/origin.ts';

const namespace = 'singleflight';
const bytes = 4 * 2 ** 20;
const digestOf = (file: Buffer): string => `sha256:${createHash('sha256').update(file).digest('hex')}`;
const storage = { resources: { requests: { storage: '16Mi' } } };

describe('bytes that several volumes request', { timeout: 600_000 }, () => {
  let origin: Origin;
  let cluster: TestCluster;
  let flow: GoldenFlow;
  let file: Buffer;
  let etag: string;
  /** The file is not served before this. */
  let held: Promise<void> | undefined;
  beforeAll(async () => {
    origin = await startOrigin((request) =>
      request.path === '/SHA256SUMS'
        ? { body: Buffer.from(`${digestOf(file).slice(7)} *disk.img\n`) }
        : { ...fileAnswer(request, file, { etag }), after: held },
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

  const file1 = () => `${origin.url}/disk.img`;
  const place = (storageClassName: string) => ({ storageClassName, ...storage });
  const aDisk = (name: string, checksum: string, className: string) =>
    cluster.kube.create(
      dataVolumes,
      aDataVolume(name, { source: { http: { url: file1(), checksum } }, storage: place(className) }, {}, namespace),
    );
  const wanting: Readonly<Record<string, (checksum: string, className: string) => Promise<unknown>>> = {
    cron: (_checksum, className) =>
      flow.aCron('summed', {
        template: {
          spec: {
            source: { http: { url: file1(), checksumURL: `${origin.url}/SHA256SUMS` } },
            storage: place(className),
          },
        },
      }),
    hypercloud: (checksum, storageClassName) =>
      cluster.kube.create(hyperCloudImageKind.type, {
        apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
        kind: 'VirtualMachineImage',
        metadata: { namespace, name: 'image' },
        spec: { storageClassName, checksum, source: { http: `${origin.url}/mirror.img` } },
      }),
    harvester: (checksum, targetStorageClassName) =>
      cluster.kube.create(harvesterImageKind.type, {
        apiVersion: 'harvesterhci.io/v1beta1',
        kind: 'VirtualMachineImage',
        metadata: { namespace, name: 'image-kept' },
        spec: {
          backend: 'csi',
          displayName: 'kept',
          sourceType: 'download',
          url: file1(),
          checksum,
          targetStorageClassName,
        },
      }),
    'data volume': (checksum, className) => aDisk('disk', checksum, className),
  };
  const kept: Readonly<Record<string, readonly [ResourceType, string, string]>> = {
    hypercloud: [hyperCloudImageKind.type, 'image', 'Available'],
    harvester: [harvesterImageKind.type, 'image-kept', 'Imported'],
    'data volume': [dataVolumes, 'disk', 'Succeeded'],
  };
  type Phased = KubeObject & {
    readonly status?: {
      readonly phase?: string;
      readonly fetchReason?: string;
      readonly conditions?: readonly { readonly type: string; readonly reason?: string }[];
    };
  };
  const isIn = (phase: string) => (object: KubeObject | undefined) =>
    (object as Phased | undefined)?.status?.phase === phase;
  const untilDone = async (who: string): Promise<Phased | undefined> => {
    const [type, name, phase = ''] = kept[who] ?? [];
    return type === undefined || name === undefined ? undefined : flow.until(type, name, isIn(phase));
  };
  const untilWaiting = (who: string): Promise<KubeObject> => {
    const [type, name] = kept[who]!;
    const isWaiting = ({ type: is, reason }: { readonly type: string; readonly reason?: string }) =>
      is === 'Ready' && reason === 'SameContent';
    return flow.until(
      type,
      name,
      (object) => (object as Phased | undefined)?.status?.conditions?.some(isWaiting) === true,
    );
  };
  const claimsOf = async (digest: string): Promise<readonly string[]> => {
    const { items } = await cluster.kube.list(persistentVolumeClaims, { namespace });
    const holding = items.filter((claim) => `sha256:${populationOf(claim)?.digests['sha256']}` === digest);
    return holding.map(({ metadata }) => metadata.name);
  };
  const drop = async (...names: readonly string[]): Promise<void> => {
    const going = names.flatMap((who) => (kept[who] === undefined ? [] : [kept[who]]));
    for (const [type, name] of going) await flow.remove(type, name);
    for (const [type, name] of going) await flow.until(type, name, (object) => object === undefined);
  };
  const clear = async (): Promise<void> => {
    await flow.remove(dataImportCronKind.type, 'summed');
    await drop('hypercloud', 'harvester', 'data volume');
  };

  it.each([
    ['data volume', 'hypercloud', 'cron', 'harvester'],
    ['harvester', 'cron', 'data volume', 'hypercloud'],
  ])('are fetched once, requested by %s, then by %s, %s and %s', async (...order) => {
    const digest = put(order.join(), `"${order.join()}"`);
    const fetches = counted();
    for (const who of order) await wanting[who]?.(digest, 'local');
    await untilOffered(flow, 'summed', versionOf('summed', digest));
    for (const who of order) await untilDone(who);
    expect((await claimsOf(digest)).length).toBe(4);
    expect(fetches()).toBe(1);
    await clear();
  });

  it('are fetched once also by a disk whose class has no snapshots, for waiting volumes; a late one reports why it is not cloned', async () => {
    const digest = put('plain', '"plain"');
    const fetches = counted();
    const { promise, resolve: release } = Promise.withResolvers<void>();
    held = promise;
    await wanting['data volume']?.(digest, 'local-plain');
    await flow.until(dataVolumes, 'disk', isIn('ImportInProgress'));
    for (const who of ['hypercloud', 'cron']) await wanting[who]?.(digest, 'local-plain');
    await untilWaiting('hypercloud');
    release();
    for (const who of ['data volume', 'hypercloud']) await untilDone(who);
    await untilOffered(flow, 'summed', versionOf('summed', digest));
    expect(fetches()).toBe(1);
    // The retained copy is counted, too.
    await wanting['harvester']?.(digest, 'local-plain');
    await untilDone('harvester');
    // Also in a class that has none of it.
    await aDisk('elsewhere', digest, 'local');
    const elsewhere = await flow.until(dataVolumes, 'elsewhere', isIn('Succeeded'));
    expect(elsewhere.status?.detail).toMatchObject({ cloneStrategy: 'copy', digests: { sha256: digest.slice(7) } });
    expect(fetches()).toBe(1);
    await flow.remove(dataVolumes, 'elsewhere');
    await clear();

    const other = put('late', '"late"');
    const again = counted();
    await aDisk('disk', other, 'local-plain');
    await untilDone('data volume');
    await wanting['hypercloud']?.(other, 'local-plain');
    const image = await untilDone('hypercloud');
    expect(image?.status?.fetchReason).toMatch(/^DataVolume disk has fetched the same content before/);
    expect(again()).toBe(2);
    await drop('data volume', 'hypercloud');
  });

  it('are also fetched once for a disk that waits for its machine', async () => {
    const digest = put('late disk', '"late disk"');
    const fetches = counted();
    await aDisk('waits', digest, 'local-wffc');
    await flow.until(dataVolumes, 'waits', isIn('WaitForFirstConsumer'));
    await wanting['hypercloud']?.(digest, 'local-wffc');
    await untilDone('hypercloud');
    await cluster.kube.create(pods, aConsumer('machine', 'waits', namespace));
    const disk = await flow.until(dataVolumes, 'waits', isIn('Succeeded'));
    expect(disk.status?.detail).toMatchObject({ cloneStrategy: 'copy', digests: { sha256: digest.slice(7) } });
    expect(fetches()).toBe(1);
  });
});
