// What leaves a cluster of real pods and comes back: backups in a bucket, exports as objects.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { network } from '#local-cluster/node/layout.ts';
import { secrets } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import {
  type BackupStore,
  backupBucket,
  backupCredentials,
  isKept,
  removeTarget,
  setTarget,
  startBackupStore,
  targetFields,
  targetSecret,
} from '#test/support/backup.ts';
import { until, untilStatus } from '#test/support/until.ts';
import { setUp } from '#test/cluster/set-up.ts';
import { anImage, diskIn, kube, run, timed, untilImage } from '#test/cluster/support.ts';

const mib = 2 ** 20;
const [namespace, restored] = ['stores', 'restored'];
const at = (name: string, place = namespace) => ({ namespace: place, name });
const images = hyperCloudImageKind.type;

let backup: BackupStore;
// Before `setUp`, and so run after the namespaces are gone: an image that is deleted waits for its store.
afterAll(async () => {
  await removeTarget(kube);
  await backup?.close();
});
const { dir, offer } = setUp({ [namespace]: {}, [restored]: {} });
const raw = join(dir, 'disk.raw');

beforeAll(async () => {
  await writeBootDisk(raw, { bytes: 64 * mib, dataBytes: 24 * mib });
  backup = await startBackupStore(join(dir, 'store'), { host: network.node });
  await setTarget(kube, targetFields(backup.server), [namespace]);
  await kube.create(images, anImage(at('jammy'), await offer('disk.raw', raw), { backup: true }));
});

it('an image is backed up to a bucket, and restored from it byte for byte', async () => {
  expect(await untilImage(at('jammy'))).toMatchObject({ state: 'Available' });
  await timed('a backup of 24 MiB', () =>
    until(kube, images, at('jammy'), (image) => image !== undefined && isKept(image), 180),
  );
  // As from a cluster that was lost: metadata of an image that this one has never had.
  const file = 'vmimage-metadata.yaml';
  const found = await backup.store.read(`harvester/vmimages/${namespace}-jammy/${file}`, mib);
  const lost = found!.bytes
    .toString()
    .replace(`namespace: ${namespace}`, `namespace: ${restored}`)
    .replace(/uid: .*/, 'uid: of-another-cluster');
  await backup.store.write(`harvester/vmimages/${restored}-jammy/${file}`, Buffer.from(lost));
  await kube.create(secrets, targetSecret(restored));
  await timed('a restore of 24 MiB', () =>
    until(kube, images, at('jammy', restored), (image) => image?.status?.state === 'Available', 240),
  );
  expect(await diskIn(at('jammy-image-pvc', restored), raw)).toBe('identical');
});

it('a disk is exported as an object', async () => {
  expect(await untilImage(at('jammy'))).toMatchObject({ state: 'Available' });
  await kube.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: at('credentials'),
    data: {
      AWS_ACCESS_KEY_ID: btoa(backupCredentials.accessKeyId),
      AWS_SECRET_ACCESS_KEY: btoa(backupCredentials.secretAccessKey),
    },
  });
  const url = `${backup.server.url}/${backupBucket}/exported.qcow2`;
  await kube.create(volumeExportKind.type, {
    apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
    kind: 'VirtualMachineVolumeExport',
    metadata: at('exported'),
    spec: { pvcName: 'jammy-image-pvc', destination: { s3: { url, secretRef: 'credentials' } } },
  });
  const status = await untilStatus(
    kube,
    volumeExportKind.type,
    at('exported'),
    ({ state }) => state === 'Completed' || state === 'Error',
    180,
  );
  expect(status).toMatchObject({ state: 'Completed' });
  const object = await backup.store.read('exported.qcow2', 64 * mib);
  const file = join(dir, 'exported.qcow2');
  await writeFile(file, object!.bytes);
  await expect(run('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', raw, file])).resolves.toBeDefined();
});
