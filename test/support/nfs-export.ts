// An NFS export that outlives clusters, as if it were mounted for the function that reads backups, and a disk to fill it with.
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';

const mib = 2 ** 20;

export interface NfsExport {
  /** Of this test only. */
  readonly dir: string;
  /** Path of the stored data. */
  readonly share: string;
  /** The same as in the setting of a target. */
  readonly endpoint: string;
  /** For the functions. */
  readonly environment: { readonly BACKUP_NFS_FOLDER: string };
  /** Path of a disk, and its URL until `files` is closed. */
  readonly raw: string;
  readonly url: string;
  readonly files: FileServer;
  /** Also removes the files. */
  readonly close: () => Promise<void>;
}

export const startNfsExport = async (): Promise<NfsExport> => {
  const dir = await mkdtemp(join(tmpdir(), 'bullion-nfs-'));
  const [raw, share, mounts] = [join(dir, 'disk.raw'), join(dir, 'export'), join(dir, 'mounts')];
  await mkdir(share);
  await mkdir(mounts);
  // The effect of `mount 127.0.0.1:/`.
  await symlink('/', join(mounts, '127.0.0.1'));
  await writeBootDisk(raw, { bytes: 16 * mib, dataBytes: 4 * mib });
  const files = await startFileServer();
  return {
    dir,
    share,
    endpoint: `nfs://127.0.0.1:${share}`,
    environment: { BACKUP_NFS_FOLDER: mounts },
    raw,
    url: files.offer('disk.raw', raw),
    files,
    close: async () => {
      await files.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
};
