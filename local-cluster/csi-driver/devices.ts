// Loop devices, file systems and mounts of volumes on this node. Called by services.ts.
import { execFile } from 'node:child_process';
import { open, readFile, rm, mkdir, rmdir, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { promisify } from 'node:util';

const exec = promisify(execFile);

const output = async (program: string, args: readonly string[]): Promise<string> =>
  (await exec(program, args)).stdout.trim();

interface Mount {
  /** Within its file system; for a bind mount of a device, its name. */
  readonly root: string;
  readonly path: string;
  readonly source: string;
}

const mounts = async (): Promise<readonly Mount[]> => {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).trimEnd().split('\n');
  return lines.map((line) => {
    const [before = '', after = ''] = line.split(' - ');
    const fields = before.split(' ');
    return { root: fields[3] ?? '', path: fields[4] ?? '', source: after.split(' ')[1] ?? '' };
  });
};

/** The loop device of a file. */
const deviceOf = async (file: string): Promise<string | undefined> => {
  const text = await output('losetup', ['--associated', file, '--noheadings', '--output', 'NAME']);
  return text === '' ? undefined : text.split('\n')[0];
};

const attach = async (file: string): Promise<string> =>
  (await deviceOf(file)) ?? output('losetup', ['--find', '--show', file]);

const mountsOf = async (device: string): Promise<readonly Mount[]> =>
  (await mounts()).filter(({ root, source }) => source === device || root === `/${basename(device)}`);

/** A device that no mount uses is detached. */
const detachUnused = async (file: string): Promise<void> => {
  const device = await deviceOf(file);
  if (device !== undefined && (await mountsOf(device)).length === 0) await exec('losetup', ['--detach', device]);
};

const isMounted = async (path: string): Promise<boolean> => (await mounts()).some((mount) => mount.path === path);

export interface Publication {
  readonly file: string;
  readonly target: string;
  readonly isReadOnly: boolean;
}

/** The device itself, at a path that looks like a device. */
export const publishBlock = async ({ file, target, isReadOnly }: Publication): Promise<void> => {
  if (await isMounted(target)) return;
  const device = await attach(file);
  await mkdir(dirname(target), { recursive: true });
  await (await open(target, 'a')).close();
  await exec('mount', ['--bind', ...(isReadOnly ? ['--read-only'] : []), device, target]);
};

const hasFileSystem = async (device: string): Promise<boolean> => {
  // Without a cache; exit code 2: nothing is recognized.
  const found = await exec('blkid', ['--probe', '--output', 'value', '--match-tag', 'TYPE', device]).catch(
    () => undefined,
  );
  return (found?.stdout ?? '').trim() !== '';
};

/** While it is not mounted: a mounted one grows only for who has CAP_SYS_RESOURCE. */
const growFileSystem = async (device: string): Promise<void> => {
  if ((await mountsOf(device)).length > 0) return;
  // Exit code 1: it was corrected.
  await exec('e2fsck', ['-f', '-p', device]).catch((error: unknown) => {
    if ((error as { readonly code?: unknown }).code !== 1) throw error;
  });
  await exec('resize2fs', [device]);
};

/** A file system is made at the first use, and grows to the size of its volume. */
export const publishFileSystem = async ({ file, target, isReadOnly }: Publication): Promise<void> => {
  if (await isMounted(target)) return;
  const device = await attach(file);
  if (await hasFileSystem(device)) await growFileSystem(device);
  else await exec('mkfs.ext4', ['-q', '-F', '-m', '0', device]);
  await mkdir(target, { recursive: true });
  await exec('mount', ['-t', 'ext4', ...(isReadOnly ? ['--read-only'] : []), device, target]);
};

export const unpublish = async (file: string, target: string): Promise<void> => {
  if (await isMounted(target)) await exec('umount', [target]);
  const found = await stat(target).catch(() => undefined);
  if (found?.isDirectory() === true) await rmdir(target);
  else await rm(target, { force: true });
  await detachUnused(file);
};

/** After the file has grown. */
export const growDevice = async (file: string): Promise<void> => {
  const device = await deviceOf(file);
  if (device === undefined) return;
  await exec('losetup', ['--set-capacity', device]);
  if ((await mounts()).some(({ source }) => source === device)) await exec('resize2fs', [device]);
};

/** What the file systems and the device of the file have not written yet reaches it before `read`, and nothing more until it ends. */
export const whileFrozen = async (file: string, read: () => Promise<void>): Promise<void> => {
  const device = await deviceOf(file);
  const used = device === undefined ? [] : await mountsOf(device);
  if (device !== undefined) await exec('blockdev', ['--flushbufs', device]);
  const frozen = used.find(({ source }) => source === device)?.path;
  if (frozen !== undefined) await exec('fsfreeze', ['--freeze', frozen]);
  try {
    await read();
  } finally {
    if (frozen !== undefined) await exec('fsfreeze', ['--unfreeze', frozen]);
  }
};
