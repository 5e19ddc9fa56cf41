// Volumes made from golden images on the local cluster: every class, every clone strategy, real bytes compared.
import { execFile } from 'node:child_process';
import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import {
  type VirtualMachinePvc,
  type VirtualMachineVolume,
  type VolumeStatus,
  virtualMachinePvcKind,
  virtualMachineVolumeKind,
} from '#shared/api/hypercloud/volume.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import {
  type TestCluster,
  anImage,
  images,
  leftOvers,
  namespace,
  settle,
  startTestCluster,
} from '#test/support/cluster.ts';
import { aConsumer } from '#test/support/data-volumes.ts';
import { makeLinuxDisk, publish } from '#test/support/disks.ts';
import { untilStatus } from '#test/support/until.ts';

const run = promisify(execFile);
const apiVersion = 'hypercloud.tmaxanc.com/v1alpha1';
const mib = 2 ** 20;

interface VolumeObject extends KubeObject {
  readonly status?: VolumeStatus;
}

const volumes = virtualMachineVolumeKind.type;
const claims = virtualMachinePvcKind.type;

const aVolume = (name: string, image: string, storage?: string): VirtualMachineVolume => ({
  apiVersion,
  kind: 'VirtualMachineVolume',
  metadata: { name, namespace },
  spec: { virtualMachineImage: { name: image }, ...(storage === undefined ? {} : { capacity: { storage } }) },
});

const aPvc = (name: string, image: string, pvc: VirtualMachinePvc['spec']['pvc']): VirtualMachinePvc => ({
  apiVersion,
  kind: 'VirtualMachinePvc',
  metadata: { name, namespace },
  spec: { virtualMachineImageName: image, ...(pvc === undefined ? {} : { pvc }) },
});

describe('volumes of golden images', { timeout: 500_000 }, () => {
  let dir: string;
  let raw: string;
  let diskBytes: number;
  let cluster: TestCluster;
  let server: FileServer;

  const until = async <T extends VolumeObject>(
    type: ResourceType<T>,
    name: string,
    isSo: (status: VolumeStatus) => boolean,
  ): Promise<VolumeStatus> => untilStatus(cluster.kube, type, { namespace, name }, isSo);
  const isOver = ({ state }: VolumeStatus) => state === 'Available' || state === 'Error';
  const make = async <T extends VolumeObject>(
    type: ResourceType<T>,
    object: T,
    isSo = isOver,
  ): Promise<VolumeStatus> => {
    await cluster.kube.create(type, object);
    return until(type, object.metadata.name, isSo);
  };
  const importTo = async (name: string, storageClassName: string, volumeMode: 'Block' | 'Filesystem') => {
    const file = await publish(raw, 'qcow2');
    const storage = `${diskBytes / mib + (volumeMode === 'Block' ? 0 : 96)}Mi`;
    const pvc = { volumeMode, storageClassName, resources: { requests: { storage } } };
    const http = server.offer(basename(file), file);
    const status = await settle(cluster.kube, anImage(name, { source: { http }, storageClassName, pvc }));
    expect(status.state).toBe('Available');
  };
  /** Byte for byte; anything beyond the original must be zero. */
  const compare = async (claim: string) => {
    const disk = await diskOf(cluster, { namespace, name: claim });
    await expect(run('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', raw, disk])).resolves.toBeDefined();
    return (await stat(disk)).size;
  };

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-volumes-'));
    raw = await makeLinuxDisk(dir);
    diskBytes = (await stat(raw)).size;
    server = await startFileServer();
    cluster = await startTestCluster();
    await importTo('block', 'local', 'Block');
    await importTo('files', 'local', 'Filesystem');
    await importTo('plain', 'local-plain', 'Block');
    await importTo('wffc', 'local-wffc', 'Block');
  }, 500_000);
  afterAll(async () => {
    await cluster?.close();
    await server?.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('restore the snapshot of the image, under the name clients expect', async () => {
    const status = await make(volumes, aVolume('restored', 'block'));
    expect(status).toMatchObject({
      state: 'Available',
      claimName: 'restored-vmv-pvc',
      cloneStrategy: 'snapshot',
      progress: 100,
    });
    expect(status.conditions).toContainEqual(
      expect.objectContaining({ type: 'ReadyToUse', status: 'True', reason: 'SuccessfulCreate' }),
    );
    expect(await compare('restored-vmv-pvc')).toBe(diskBytes);
  });

  it('are larger block volumes when requested, and the guest sees all of it', async () => {
    const storage = `${diskBytes / mib + 64}Mi`;
    const status = await make(claims, aPvc('larger', 'block', { resources: { requests: { storage } } }));
    expect(status).toMatchObject({ state: 'Available', claimName: 'larger', cloneStrategy: 'snapshot' });
    expect(await compare('larger')).toBe(diskBytes + 64 * mib);
  });

  it('grow the disk in a larger file system by copying it', async () => {
    const storage = `${diskBytes / mib + 512}Mi`;
    const status = await make(volumes, aVolume('grown', 'files', storage));
    expect(status).toMatchObject({
      state: 'Available',
      cloneStrategy: 'copy',
      cloneReason: expect.stringContaining('grows'),
    });
    expect(await compare('grown-vmv-pvc')).toBeGreaterThan(diskBytes + 400 * mib);
  });

  it('are copied when the driver can neither snapshot nor clone', async () => {
    const status = await make(volumes, aVolume('copied', 'plain'));
    expect(status).toMatchObject({
      state: 'Available',
      cloneStrategy: 'copy',
      cloneReason: expect.stringContaining('no snapshots'),
    });
    await compare('copied-vmv-pvc');
  });

  it('are copied into another class and volume mode', async () => {
    const status = await make(
      claims,
      aPvc('moved', 'block', {
        storageClassName: 'local-plain',
        volumeMode: 'Filesystem',
        resources: { requests: { storage: `${diskBytes / mib + 128}Mi` } },
      }),
    );
    expect(status).toMatchObject({ state: 'Available', cloneStrategy: 'copy' });
    await compare('moved');
  });

  it('wait for the first consumer when the class does, and report it', async () => {
    const isResting = ({ conditions }: VolumeStatus) =>
      conditions?.some(({ type, reason }) => type === 'Ready' && reason === 'WaitForFirstConsumer') === true;
    const status = await make(volumes, aVolume('first', 'wffc'), isResting);
    expect(status).toMatchObject({ state: 'Creating', cloneStrategy: 'snapshot' });
    expect(status.deadline).toBeUndefined();
    await cluster.kube.create(pods, aConsumer('guest', 'first-vmv-pvc'));
    await until(volumes, 'first', isOver);
    await compare('first-vmv-pvc');
    await cluster.kube.delete(pods, { namespace, name: 'guest' });
  });

  it('wait for an image that is created later, and are reconciled by its event', async () => {
    const waiting = await make(volumes, aVolume('early', 'late'), ({ state }) => state === 'Pending');
    expect(waiting.conditions).toContainEqual(
      expect.objectContaining({
        type: 'ReadyToUse',
        reason: 'VmVolumeIsInPending',
        message: 'VirtualMachineImage is not exists',
      }),
    );
    await importTo('late', 'local', 'Block');
    expect(await until(volumes, 'early', isOver)).toMatchObject({ state: 'Available' });
    await compare('early-vmv-pvc');
  });

  it('are rejected when they are smaller than the image, with both sizes', async () => {
    const refused = cluster.kube.create(volumes, aVolume('small', 'block', '1Mi'));
    await expect(refused).rejects.toThrow(new RegExp(`1048576 bytes.*${diskBytes}`));
  });

  it('fail when the image turns out to be larger', async () => {
    await make(volumes, aVolume('hopeful', 'later', '2Mi'), ({ state }) => state === 'Pending');
    await importTo('later', 'local', 'Block');
    const status = await until(volumes, 'hopeful', isOver);
    expect(status.conditions).toContainEqual(
      expect.objectContaining({
        type: 'ReadyToUse',
        reason: 'VmVolumeIsInError',
        message: 'VirtualMachineVolume size should be greater than or equal to VirtualMachineImage size',
      }),
    );
    expect(status.conditions).toContainEqual(
      expect.objectContaining({
        type: 'Ready',
        reason: 'TargetTooSmall',
        message: expect.stringContaining(`${diskBytes}`),
      }),
    );
  });

  it('may change without a change of the image', async () => {
    expect(await make(volumes, aVolume('written', 'block'))).toMatchObject({ state: 'Available' });
    const disk = await diskOf(cluster, { namespace, name: 'written-vmv-pvc' });
    const file = await open(disk, 'r+');
    await file.write(Buffer.alloc(mib, 0xee), 0, mib, 0);
    await file.close();
    await make(volumes, aVolume('fresh', 'block'));
    await compare('fresh-vmv-pvc');
    await compare('block-image-pvc');
  });

  it('delete all their children when they are deleted, and are kept when their image is', async () => {
    for (const name of ['block', 'files', 'plain', 'wffc', 'late', 'later']) {
      await cluster.kube.delete(images, { namespace, name });
    }
    const left = async () => (await cluster.kube.list(images, { namespace })).items;
    await expect.poll(left, { timeout: 200_000 }).toEqual([]);
    await compare('restored-vmv-pvc');
    const disks: readonly ResourceType[] = [volumes, claims];
    for (const type of disks) {
      for await (const { metadata } of cluster.kube.listAll(type))
        await cluster.kube.delete(type, { namespace, name: metadata.name });
    }
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
    expect((await cluster.kube.list(persistentVolumeClaims, { namespace })).items).toEqual([]);
  });
});
