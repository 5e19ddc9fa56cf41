// The files of a mounted volume, as entries of an archive: a copy of another volume is made from them. Links are never followed.
import { constants } from 'node:fs';
import { lstat, open, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { type TarEntry, readTar } from '#shared/transfer/archive/tar.ts';
import { type Tree, createTree, ownOfFileSystem } from '#shared/transfer/archive/tree.ts';
import { TransferError, isTransferError } from '#shared/transfer/fault.ts';
import type { Meter } from '#shared/transfer/meter.ts';
import type { PassResult, Pass } from '#shared/transfer/pass.ts';
import { filesFound } from '#shared/transfer/report.ts';
import { interrupted } from '#shared/transfer/source/handle.ts';
import type { TransferTarget } from '#shared/transfer/spec.ts';
import { contentOf, verifiedDigests } from '#shared/transfer/published.ts';

/** Permissions of owner, group and others. */
const permissions = 0o777;

async function* listed(buffers: readonly Buffer[]): AsyncGenerator<Buffer, void, undefined> {
  yield* buffers;
}

async function* bytesOf(content: AsyncIterable<Buffer>, what: string): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* content;
  } catch (error) {
    throw interrupted(what, error);
  }
}

async function* fileAt(root: string, name: string): AsyncGenerator<TarEntry, void, undefined> {
  const what = `file ${JSON.stringify(name)} of the source volume`;
  const file = await open(join(root, name), constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size, mode } = await file.stat();
    const content = size === 0 ? listed([]) : file.createReadStream({ autoClose: false, start: 0, end: size - 1 });
    yield { name, kind: 'file', size, mode: mode & permissions, content: bytesOf(content, what) };
  } finally {
    await file.close();
  }
}

/** Directories come before their content. Files of the file system itself are skipped. */
async function* entriesBelow(root: string, below: string): AsyncGenerator<TarEntry, void, undefined> {
  for await (const found of await opendir(join(root, below))) {
    const name = join(below, found.name);
    if (name === ownOfFileSystem) continue;
    if (found.isFile()) yield* fileAt(root, name);
    else if (found.isDirectory()) {
      const { mode } = await lstat(join(root, name));
      yield { name, kind: 'directory', size: 0, mode: mode & permissions, content: listed([]) };
      yield* entriesBelow(root, name);
    } else {
      const kind = found.isSymbolicLink() ? 'a symbolic link' : 'neither file nor directory';
      yield { name, kind, size: 0, mode: 0, content: listed([]) };
    }
  }
}

async function* entriesIn(root: string): AsyncGenerator<TarEntry, void, undefined> {
  try {
    yield* entriesBelow(root, '');
  } catch (error) {
    throw isTransferError(error) ? error : interrupted('the source volume', error);
  }
}

interface Copying {
  readonly meter: Meter;
  readonly signal: AbortSignal;
}

const copy = async (tree: Tree, from: string, { meter, signal }: Copying): Promise<PassResult> => {
  await meter.inspected(filesFound);
  meter.enter('Downloading', 97);
  await tree.prepare();
  const writtenBytes = await tree.unpack(entriesIn(from), signal);
  meter.enter('Verifying', 99);
  await tree.commit();
  return { digests: {}, inspection: filesFound, writtenBytes };
};

/** The files in `from` replace the content of the target. Throws TransferError, and then leaves nothing. */
export const copyFiles = async (from: string, target: TransferTarget | undefined, copying: Copying) => {
  if (target === undefined) throw new TransferError('InvalidSpec', 'a copy of files needs a target');
  const tree = createTree(target);
  try {
    return await copy(tree, from, copying);
  } catch (error) {
    await tree.abandon();
    throw error;
  }
};

/** Unpacks an archive into the files of a volume as it arrives; complete once the whole archive was verified. */
export const importArchive = async (pass: Pass, tree: Tree): Promise<PassResult> => {
  const { meter, plan, signal, source } = pass;
  await meter.inspected(plan.inspection);
  meter.enter('Downloading', 97);
  await tree.prepare();
  const writtenBytes = await tree.unpack(readTar(contentOf(pass), { needsEnd: true }), signal);
  meter.enter('Verifying', 99);
  const digests = verifiedDigests(pass);
  await source.confirm?.();
  await tree.commit();
  return { digests, inspection: plan.inspection, writtenBytes };
};
