// A golden image in real pods over three versions: signed by the real gpg, booted by QEMU in a Job, rolled out by channels, taken back, and cloned into root
// disks of each version; then old ones go.
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { configMaps, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { annotations } from '#shared/api/names.ts';
import { aDataVolume, isOver } from '#test/support/data-volumes.ts';
import { createGoldenFlow, isUpToDate, untilOffered } from '#test/support/golden.ts';
import { type Gpg, startGpg } from '#test/support/gpg.ts';
import { hasTools } from '#test/support/tools.ts';
import { untilGone, untilStatus } from '#test/support/until.ts';
import { setUp } from '#test/cluster/set-up.ts';
import { anImage, diskIn, kube, paths, run, timed, untilImage } from '#test/cluster/support.ts';

const mib = 2 ** 20;
const namespace = 'golden';
const at = (name: string) => ({ namespace, name });
const flow = createGoldenFlow(kube, namespace);

const { dir, offer } = setUp({ [namespace]: {} });
let gpg: Gpg;
let signer: string;

beforeAll(() => {
  if (!hasTools('gpg')) return;
  gpg = startGpg();
  signer = gpg.key('vendor');
});
afterAll(() => gpg?.close());

interface Published {
  readonly raw: string;
  readonly url: string;
  readonly checksumURL: string;
}

/** A disk that differs from that of another version, and that prints these words on its serial console. */
const publish = async (version: string, dataMib: number, words: string): Promise<Published> => {
  const raw = join(dir, `${version}.raw`);
  await writeBootDisk(raw, { bytes: 32 * mib, dataBytes: dataMib * mib, line: `\r\n${words}` });
  const sums = join(dir, `${version}.sums`);
  const hex = createHash('sha256')
    .update(await readFile(raw))
    .digest('hex');
  await writeFile(sums, gpg.clear(`${hex} *fedora.raw\n`, signer));
  return { raw, url: await offer('fedora.raw', raw), checksumURL: await offer('SHA256SUMS', sums) };
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

const policyUntil = (isSo: (policy: GoldenImagePolicy) => boolean) =>
  flow.until(goldenImagePolicyKind.type, 'fedora', (policy) => policy !== undefined && isSo(policy));

const bootOf = ({ status }: GoldenImagePolicy, version: string) =>
  status?.versions?.find(({ name }) => name === version)?.checks?.find(({ name }) => name === 'boot');

const aPolicy = async (): Promise<void> => {
  const data = { vendor: gpg.exported(signer).toString() };
  await kube.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: at('vendor'), data });
  await kube.create(goldenImagePolicyKind.type, {
    apiVersion: 'bullion.dev/v1alpha1',
    kind: 'GoldenImagePolicy',
    metadata: at('fedora'),
    spec: {
      dataImportCrons: { names: ['fedora'] },
      verify: {
        signature: { gpg: { keys: { configMap: 'vendor' } } },
        boot: { until: 'ConsoleText', text: 'login:', timeout: '5m', memory: '64Mi' },
      },
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
};

it.skipIf(!hasTools('gpg'))(
  'a signed version is booted, promoted, and taken back when it is bad',
  { timeout: 900_000 },
  async () => {
    const panic = 'Kernel panic - not syncing: VFS: no root';
    const { raw: first, ...http } = await publish('v1', 6, 'fedora login:');
    const storage = { storageClassName: 'local', resources: { requests: { storage: '32Mi' } } };
    await flow.aCron('fedora', { importsToKeep: 9, template: { spec: { source: { http }, storage } } });
    await aPolicy();
    const one = await imported();
    await timed('a version is verified and booted on the node', () => untilOffered(flow, 'fedora-candidate', one));
    const booted = bootOf(await policyUntil((policy) => bootOf(policy, one)?.state === 'Passed'), one);
    console.log(`boot of ${one}: ${booted?.message}\n${booted?.output}`);
    expect(booted).toMatchObject({ output: expect.stringContaining('fedora login:') });
    await bullion('promote', 'stable', one, '--reason', 'the first');
    await untilOffered(flow, 'fedora', one);
    expect(await diskIn(at(await aRootDisk('root-1')), first)).toBe('identical');

    await publish('v2', 8, `fedora: ${panic}`);
    await flow.pollNow('fedora');
    const two = await imported(one);
    const refused = await policyUntil((policy) => bootOf(policy, two)?.state === 'Failed');
    expect(bootOf(refused, two)).toMatchObject({ reason: 'BootFailed', output: expect.stringContaining(panic) });
    expect(refused.status?.channels?.map(({ version }) => version)).toEqual([one, one]);
    expect((await bullion('why', 'gip/fedora')).stdout.replaceAll(/\s+/g, ' ')).toContain(panic);
    expect(await diskIn(at(await aRootDisk('root-2')), first)).toBe('identical');

    const { raw: third } = await publish('v3', 10, 'fedora 43 login:');
    await flow.pollNow('fedora');
    const three = await imported(two);
    await untilOffered(flow, 'fedora-candidate', three);
    await policyUntil(({ status }) => status?.channels?.[1]?.reason === 'WaitingForApproval');
    expect((await flow.get(dataSourceKind.type, 'fedora'))?.spec.source.pvc?.name).toBe(one);
    await bullion('promote', 'stable', three);
    await untilOffered(flow, 'fedora', three);
    expect(await diskIn(at(await aRootDisk('root-3')), third)).toBe('identical');
    expect((await bullion('outdated')).stdout).toMatch(/root-1[^\n]*\n[^]*root-2/);

    await bullion('mark-bad', three, '--reason', 'does not boot on AMD');
    await timed('a bad version leaves its channels', async () => {
      await untilOffered(flow, 'fedora', one);
      await untilOffered(flow, 'fedora-candidate', one);
    });
    expect(await diskIn(at(await aRootDisk('root-4')), first)).toBe('identical');

    await publish('v4', 12, 'fedora 44 login:');
    await flow.pollNow('fedora');
    await untilOffered(flow, 'fedora-candidate', await imported(three));
    const { type } = goldenImagePolicyKind;
    await kube.mergePatch(type, at('fedora'), { spec: { retention: { keep: 1, undeleteFor: '1h' } } });
    const preview = (await bullion('prune', 'fedora', '--dry-run')).stdout;
    expect(preview).toMatch(new RegExp(`${two}.*(would be|is) removed`));
    expect(preview).toMatch(new RegExp(`${one}.*stays: channel stable has it`));
    await bullion('prune', 'fedora', '--yes');
    await untilGone(kube, persistentVolumeClaims, at(two), 120);
    expect(await flow.get(persistentVolumeClaims, one)).toBeDefined();
  },
);

it('a deleted image is brought back with its bytes, and nothing is fetched', { timeout: 300_000 }, async () => {
  const raw = join(dir, 'single.raw');
  await writeBootDisk(raw, { bytes: 32 * mib, dataBytes: 6 * mib });
  const url = await offer('single.raw', raw);
  const { metadata, ...rest } = anImage(at('single'), url);
  const { type } = hyperCloudImageKind;
  await kube.create(type, { ...rest, metadata: { ...metadata, annotations: { [annotations.undeleteFor]: '1h' } } });
  expect(await untilImage(at('single'))).toMatchObject({ state: 'Available' });
  const claim = at('single-image-pvc');
  const uid = async () => (await kube.get(persistentVolumeClaims, claim))?.metadata.uid;
  const before = await uid();
  await bullion('delete', 'hypercloud/single', '--yes');
  await untilGone(kube, type, at('single'), 120);
  await offer('single.raw', join(dir, 'nothing'));
  expect((await bullion('undelete')).stdout).toContain('hypercloud/single');
  await bullion('undelete', 'hypercloud/single');
  await timed('a deleted image is brought back', () => untilImage(at('single')));
  expect(await untilImage(at('single'))).toMatchObject({ state: 'Available' });
  expect(await uid()).toBe(before);
  expect(await diskIn(claim, raw)).toBe('identical');
});
