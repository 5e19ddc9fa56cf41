// Files of hundreds of megabytes through real pods and Services: memory within the limits of Jobs, no timeout on the way.
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { aDataVolume, isOver } from '#test/support/data-volumes.ts';
import { noise } from '#test/support/disk.ts';
import { untilStatus } from '#test/support/until.ts';
import { setUp } from '#test/cluster/set-up.ts';
import { diskIn, editorToken, kube, paths, run, timed, transferUrl } from '#test/cluster/support.ts';

const mib = 2 ** 20;
const namespace = 'large';
const at = (name: string) => ({ namespace, name });

const { dir, offer } = setUp({ [namespace]: {} });
const whole = join(dir, 'whole.raw');
const compressed = join(dir, 'whole.qcow2');
const third = join(dir, 'third.raw');

/** Half noise and half text, so that it packs by half. */
const writeDisk = async (file: string, mebibytes: number): Promise<void> => {
  const disk = await open(file, 'w');
  const [random, text] = [noise('large', mib), Buffer.alloc(mib, 'text of a disk ')];
  for (let index = 0; index < mebibytes; index += 1) {
    const piece = index % 2 === 0 ? random : text;
    piece.writeUInt32LE(index);
    await disk.write(piece, 0, mib, index * mib);
  }
  await disk.close();
};

beforeAll(async () => {
  await writeDisk(whole, 1024);
  await run('qemu-img', ['convert', '-c', '-f', 'raw', '-O', 'qcow2', whole, compressed]);
  await writeDisk(third, 300);
});

const storage = (size: string, volumeMode: 'Block' | 'Filesystem') => ({
  volumeMode,
  storageClassName: 'local',
  accessModes: ['ReadWriteOnce' as const],
  resources: { requests: { storage: size } },
});
const untilDone = (name: string) => untilStatus(kube, dataVolumeKind.type, at(name), isOver, 300);

it('a compressed disk of 1 GiB is imported within the memory of its Job', { timeout: 400_000 }, async () => {
  const source = { http: { url: await offer('whole.qcow2', compressed) } };
  const volume = aDataVolume('whole', { source, storage: storage('1Gi', 'Block') }, {}, namespace);
  await kube.create(dataVolumeKind.type, volume);
  expect(await timed('a DataVolume of a compressed disk of 1 GiB', () => untilDone('whole'))).toMatchObject({
    phase: 'Succeeded',
  });
  expect((await kube.get(dataVolumeKind.type, at('whole')))?.status?.restartCount ?? 0).toBe(0);
  expect(await diskIn(at('whole'), whole)).toBe('identical');
});

it('300 MiB are uploaded with curl, and downloaded again', { timeout: 400_000 }, async () => {
  const type = harvesterImageKind.type;
  await kube.create(type, {
    apiVersion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImage',
    metadata: at('sent'),
    spec: { backend: 'csi', displayName: 'sent', sourceType: 'upload', targetStorageClassName: 'local', retry: 3 },
  });
  const authorization = `Authorization: Bearer ${await editorToken(namespace, 'uploader')}`;
  const { size } = await stat(third);
  const image = `${await transferUrl()}/v1/harvester/harvesterhci.io.virtualmachineimages/${namespace}/sent`;
  const curl = (...args: readonly string[]) =>
    run('curl', ['-sS', '--fail-with-body', '-L', '-H', authorization, ...args]);
  await timed('an upload of 300 MiB with curl', () =>
    curl('-X', 'POST', '-T', third, `${image}?action=upload&size=${size}`),
  );
  const isImported = ({ conditions = [] }: { readonly conditions?: readonly Condition[] | undefined }) =>
    conditions.some(({ type: of, status }) => of === 'Imported' && status === 'True');
  await untilStatus(kube, type, at('sent'), isImported, 180);
  const uid = (await kube.get(type, at('sent')))?.metadata.uid;
  expect(await diskIn(at(`vmi-${uid}`), third)).toBe('identical');
  const file = join(dir, 'downloaded');
  await timed('a download of 300 MiB with curl', () => curl('-o', file, `${image}/download`));
  const [{ stdout }] = [await run('qemu-img', ['info', '--output=json', file])];
  const { format } = JSON.parse(stdout) as { readonly format: string };
  await expect(run('qemu-img', ['compare', '-f', 'raw', '-F', format, third, file])).resolves.toBeDefined();
});

interface Condition {
  readonly type: string;
  readonly status: string;
}

it('300 MiB are uploaded in pieces by `bullion upload`', { timeout: 400_000 }, async () => {
  const where = ['-n', namespace, '--kubeconfig', paths.kubeconfig, '--transfer-url', await transferUrl()];
  const kind = ['--kind', 'datavolume', '--storage-class', 'local'];
  await timed('an upload of 300 MiB by bullion', () =>
    run(process.execPath, ['cli/main.ts', 'upload', 'pieces', third, ...kind, ...where]),
  );
  expect(await untilDone('pieces')).toMatchObject({ phase: 'Succeeded' });
  expect(await diskIn(at('pieces'), third)).toBe('identical');
});
