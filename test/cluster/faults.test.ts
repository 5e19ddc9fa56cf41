// What fails below Bullion while a disk is written: its own pods, what carries its events, and the storage, which is full.
import { readdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { aDataVolume } from '#test/support/data-volumes.ts';
import { until, untilGone, untilStatus } from '#test/support/until.ts';
import { setUp } from '#test/cluster/set-up.ts';
import { anImage, diskIn, kube, kubectl, paths, run, shape, timed, untilImage } from '#test/cluster/support.ts';

const mib = 2 ** 20;
const namespace = 'faults';
const system = 'bullion-system';
const at = (name: string) => ({ namespace, name });
const { type } = hyperCloudImageKind;
const volumes = join(paths.volumes, 'volumes');

// Before `setUp`, and so run after the volumes are gone.
afterAll(async () => {
  await run('mountpoint', ['-q', volumes]).then(
    () => run('umount', [volumes]),
    () => undefined,
  );
});
const { dir, offer } = setUp({ [namespace]: {} });
const raw = join(dir, 'disk.raw');
beforeAll(() => writeBootDisk(raw, { bytes: 64 * mib, dataBytes: 24 * mib }));

/** At once: what they were doing is cut off. */
const kill = (place: string, ...which: readonly string[]) =>
  kubectl('delete', 'pods', '-n', place, '--force', '--grace-period=0', ...which);

const ofKnative = [
  ['activator and autoscaler', 'knative-serving', '--selector=app in (activator,autoscaler)'],
  ['broker', 'knative-eventing', '--selector=eventing.knative.dev/brokerRole'],
  [
    'dispatcher and ping',
    'knative-eventing',
    '--selector=app.kubernetes.io/component in (pingsource-mt-adapter,imc-dispatcher)',
  ],
] as const;

describe('an image', () => {
  it.each([['pods of Bullion', system, '--all'] as const, ...(shape === 'knative' ? ofKnative : [])])(
    'whose import loses the %s is imported',
    async (what, place, which) => {
      const key = at(`without-${what.replaceAll(' ', '-').toLowerCase()}`);
      // Twelve seconds and more, so that something is left to do.
      await kube.create(type, anImage(key, await offer('disk.raw', raw, 2 * mib)));
      await untilStatus(kube, type, key, ({ phase, progress = 0 }) => phase === 'Downloading' && progress > 0, 300);
      expect(await kill(place, which)).toContain('pod');
      expect(await timed(`an image without its ${what}`, () => untilImage(key, 600))).toMatchObject({
        state: 'Available',
      });
      expect(await diskIn(at(`${key.name}-image-pvc`), raw)).toBe('identical');
      // Admission is asked for a deletion.
      await kubectl('wait', '-n', system, 'deployment', '--all', '--for=condition=Available', '--timeout=600s');
      await kube.delete(type, key);
      await untilGone(kube, type, key, 300);
      await untilGone(kube, persistentVolumeClaims, at(`${key.name}-image-pvc`), 300);
      const left = () => kubectl('get', 'jobs,pods', '-n', namespace, '-o', 'name');
      await expect.poll(left, { timeout: 300_000, interval: 1_000 }).toBe('');
    },
  );
});

it('an image whose pod is evicted, as from a node that is drained, is imported in the same attempt', async () => {
  const key = at('evicted');
  await kube.create(type, anImage(key, await offer('disk.raw', raw, 2 * mib)));
  await untilStatus(kube, type, key, ({ phase, progress = 0 }) => phase === 'Downloading' && progress > 0, 300);
  const running = (await kube.list(pods, { namespace })).items.find(({ status }) => status?.phase === 'Running');
  const name = running?.metadata.name ?? '';
  const file = join(dir, 'eviction.json');
  await writeFile(file, JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name } }));
  await kubectl('create', '--raw', `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, '-f', file);
  const status = await timed('an image whose pod was evicted', () => untilImage(key, 600));
  expect(status).toMatchObject({ state: 'Available', attempts: 1, failed: 0 });
  expect(await diskIn(at('evicted-image-pvc'), raw)).toBe('identical');
  await kube.delete(type, key);
  await untilGone(kube, persistentVolumeClaims, at('evicted-image-pvc'), 300);
});

/** Volumes of the node are files: these are in a small file system, of which little is left. */
const fillStorage = async (bytes: number): Promise<string> => {
  await expect.poll(() => readdir(volumes), { timeout: 300_000, interval: 1_000 }).toEqual([]);
  const file = join(dir, 'small.img');
  await run('truncate', ['-s', String(192 * mib), file]);
  await run('mkfs.ext4', ['-q', '-m', '0', file]);
  await run('mount', ['-o', 'loop', file, volumes]);
  await rmdir(join(volumes, 'lost+found'));
  const filler = join(volumes, 'filler');
  const { stdout } = await run('df', ['--output=avail', '-B1', volumes]);
  await run('fallocate', ['-l', String(Number(stdout.split('\n')[1]) - bytes), filler]);
  return filler;
};

interface Wanted {
  readonly type: ResourceType;
  readonly object: (name: string, url: string) => KubeObject;
  readonly isReady: (text: string) => boolean;
  /** Claim with its disk. */
  readonly claim: (name: string) => string;
}

const anImageOfBlock: Wanted = {
  type: type as ResourceType,
  object: (name, url) => anImage(at(name), url),
  isReady: (text) => text.includes('"state":"Available"'),
  claim: (name) => `${name}-image-pvc`,
};

const aVolumeOfFiles: Wanted = {
  type: dataVolumeKind.type as ResourceType,
  object: (name, url) => {
    const resources = { requests: { storage: '64Mi' } };
    const storage = { volumeMode: 'Filesystem', storageClassName: 'local', accessModes: ['ReadWriteOnce'], resources };
    return aDataVolume(name, { source: { http: { url } }, storage }, {}, namespace);
  },
  isReady: (text) => text.includes('"phase":"Succeeded"'),
  claim: (name) => name,
};

const textOf = (object: KubeObject | undefined): string =>
  JSON.stringify((object as { readonly status?: object } | undefined)?.status ?? {});

it.each([
  ['image', anImageOfBlock],
  ['volume', aVolumeOfFiles],
] as const)('a disk on storage that is full says so, and is imported once there is space: %s', async (what, wanted) => {
  const filler = await fillStorage(12 * mib);
  const key = at(`full-${what}`);
  await kube.create(wanted.type, wanted.object(key.name, await offer('disk.raw', raw)));
  const isFaulty = (object: KubeObject | undefined) => /cannot write|no space|EIO|EROFS/i.test(textOf(object));
  const faulty = await timed(`${what}: storage is full`, () => until(kube, wanted.type, key, isFaulty, 600));
  console.log(textOf(faulty));
  await rm(filler);
  await timed(`${what}: imported`, () => until(kube, wanted.type, key, (now) => wanted.isReady(textOf(now)), 600));
  const claim = at(wanted.claim(key.name));
  expect(await diskIn(claim, raw)).toBe('identical');
  await kube.delete(wanted.type, key);
  await untilGone(kube, persistentVolumeClaims, claim, 300);
  await expect.poll(() => readdir(volumes), { timeout: 300_000, interval: 1_000 }).toEqual([]);
  await run('umount', [volumes]);
});
