// A local cluster with a disk on a file server, for flows that import it.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClusterOptions } from '#infra/local/cluster.ts';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { type TestCluster, run, startTestCluster } from '#test/support/cluster.ts';

const mib = 2 ** 20;

export interface DiskCluster {
  readonly cluster: TestCluster;
  readonly files: FileServer;
  /** Of this test only. */
  readonly dir: string;
  /** Path of the disk, and its URL. */
  readonly raw: string;
  readonly url: string;
  /** Also removes the files. */
  readonly close: () => Promise<void>;
}

export interface DiskClusterOptions {
  readonly disk?: Parameters<typeof writeBootDisk>[1];
  readonly files?: Parameters<typeof startFileServer>[0];
  readonly cluster?: Partial<ClusterOptions>;
}

export const startDiskCluster = async (options: DiskClusterOptions = {}): Promise<DiskCluster> => {
  const dir = await mkdtemp(join(tmpdir(), 'bullion-disks-'));
  const raw = join(dir, 'disk.raw');
  await writeBootDisk(raw, options.disk ?? { bytes: 16 * mib, dataBytes: 4 * mib });
  const files = await startFileServer(options.files);
  const url = files.offer('disk.raw', raw);
  const cluster = await startTestCluster(options.cluster);
  return {
    cluster,
    files,
    dir,
    raw,
    url,
    close: async () => {
      await cluster.close();
      await files.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
};

/** The disk is offered in the format qcow2. */
export const startQcow2Cluster = async (): Promise<DiskCluster & { readonly qcow2: string }> => {
  const started = await startDiskCluster({ disk: { bytes: 64 * mib, dataBytes: 8 * mib } });
  const qcow2 = join(started.dir, 'disk.qcow2');
  await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', started.raw, qcow2]);
  return { ...started, qcow2, url: started.files.offer('disk.qcow2', qcow2) };
};
