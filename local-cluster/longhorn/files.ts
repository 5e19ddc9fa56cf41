// The files of backing images on disk, and the raw disks for new volumes. Independent of Kubernetes.
import { execFile } from 'node:child_process';
import { createReadStream, createWriteStream } from 'node:fs';
import { copyFile, mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { type Key, decrypting, encrypting } from '#local-cluster/longhorn/cipher.ts';
import { inspectDisk } from '#shared/transfer/format/inspect.ts';
import { fileReader } from '#shared/transfer/sink/file.ts';

const run = promisify(execFile);

/** Facts of a complete file. */
export interface FileFacts {
  /** Bytes. */
  readonly size: number;
  /** Bytes of the disk in it. */
  readonly virtualSize: number;
  /** SHA-512, hexadecimal. */
  readonly checksum: string;
  readonly isEncrypted: boolean;
}

export interface BackingFiles {
  /** Stores bytes as they arrive; `onBytes` receives their number. */
  write(uuid: string, bytes: AsyncIterable<Uint8Array>, onBytes: (count: number) => void): Promise<FileFacts>;
  /** Takes over an existing file. */
  adopt(uuid: string, path: string): Promise<FileFacts>;
  /** A copy of another one, encrypted or decrypted. Throws if the key is wrong. */
  clone(uuid: string, from: string, key?: { readonly encrypt?: Key; readonly decrypt?: Key }): Promise<FileFacts>;
  pathOf(uuid: string): string;
  /** Creates the raw disk as `target/block`. Throws if the key is wrong. */
  unpack(uuid: string, target: string, key?: Key): Promise<void>;
  remove(uuid: string): Promise<void>;
}

const digestOf = async (path: string): Promise<string> => {
  const hash = createHash('sha512');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Uint8Array);
  return hash.digest('hex');
};

const qcow2Magic = 0x51_46_49_fb;

/** Bytes of the disk in a qcow2 file; `undefined` for any other file, which is a disk itself. */
const qcow2Size = async (path: string): Promise<number | undefined> => {
  await using file = await open(path, 'r');
  const head = Buffer.alloc(32);
  const { bytesRead } = await file.read(head, 0, head.length, 0);
  return bytesRead === head.length && head.readUInt32BE(0) === qcow2Magic
    ? Number(head.readBigUInt64BE(24))
    : undefined;
};

const factsOf = async (path: string): Promise<FileFacts> => {
  const { size } = await stat(path);
  return { size, virtualSize: (await qcow2Size(path)) ?? size, checksum: await digestOf(path), isEncrypted: false };
};

const sectorBytes = 512;

/** Files that Longhorn's engine cannot open. Its reader of qcow2 follows no reference: here such a file is rejected, not read as zeroes. */
const requireReadable = async (path: string, isQcow2: boolean): Promise<void> => {
  await using file = await open(path, 'r');
  const { size } = await file.stat();
  if (isQcow2) await inspectDisk('qcow2', fileReader(file, size));
  else if (size % sectorBytes !== 0) {
    const rule = `should be a multiple of ${sectorBytes} bytes since Longhorn uses directIO by default`;
    throw new Error(`the backing file size ${size} ${rule}`);
  }
};

const toRaw = async (from: string, to: string): Promise<void> => {
  const isQcow2 = (await qcow2Size(from)) !== undefined;
  await requireReadable(from, isQcow2);
  const flags = process.platform === 'darwin' ? ['-c'] : ['--reflink=auto', '--sparse=always'];
  if (isQcow2) await run('qemu-img', ['convert', '-f', 'qcow2', '-O', 'raw', from, to]);
  else await run('cp', [...flags, from, to]);
};

export const openBackingFiles = async (root: string): Promise<BackingFiles> => {
  await rm(join(root, 'work'), { recursive: true, force: true });
  for (const folder of ['files', 'work']) await mkdir(join(root, folder), { recursive: true });
  const pathOf = (uuid: string): string => join(root, 'files', uuid);
  const draftOf = (uuid: string): string => join(root, 'work', uuid);
  const sidecarOf = (uuid: string): string => `${pathOf(uuid)}.json`;

  const finish = async (uuid: string, facts: FileFacts): Promise<FileFacts> => {
    await writeFile(sidecarOf(uuid), JSON.stringify(facts));
    await rename(draftOf(uuid), pathOf(uuid));
    return facts;
  };
  const known = async (uuid: string): Promise<FileFacts> =>
    JSON.parse(await readFile(sidecarOf(uuid), 'utf8')) as FileFacts;

  /** The raw bytes of one, decrypted, under a temporary path. */
  const open_ = async (uuid: string, to: string, key?: Key): Promise<void> => {
    const { isEncrypted } = await known(uuid);
    if (!isEncrypted) return toRaw(pathOf(uuid), to);
    if (key === undefined) throw new Error('the backing image is encrypted, and no Secret is named');
    await pipeline(createReadStream(pathOf(uuid)), decrypting(key), createWriteStream(to));
  };

  return {
    pathOf,
    write: async (uuid, bytes, onBytes) => {
      let count = 0;
      const counter = new Transform({
        transform(chunk: Uint8Array, _encoding, done) {
          onBytes((count += chunk.length));
          done(undefined, chunk);
        },
      });
      await pipeline(bytes, counter, createWriteStream(draftOf(uuid)));
      return finish(uuid, await factsOf(draftOf(uuid)));
    },
    adopt: async (uuid, path) => {
      await copyFile(path, draftOf(uuid));
      return finish(uuid, await factsOf(draftOf(uuid)));
    },
    clone: async (uuid, from, { encrypt, decrypt } = {}) => {
      const raw = `${draftOf(uuid)}.raw`;
      try {
        await open_(from, raw, decrypt);
        const { size: virtualSize } = await stat(raw);
        if (encrypt === undefined) await rename(raw, draftOf(uuid));
        else await pipeline(createReadStream(raw), encrypting(encrypt), createWriteStream(draftOf(uuid)));
        const facts = await factsOf(draftOf(uuid));
        return await finish(uuid, { ...facts, virtualSize, isEncrypted: encrypt !== undefined });
      } finally {
        await rm(raw, { force: true });
      }
    },
    unpack: async (uuid, target, key) => {
      await mkdir(target, { recursive: true });
      await open_(uuid, join(target, 'block'), key);
    },
    remove: async (uuid) => {
      for (const path of [pathOf(uuid), sidecarOf(uuid), draftOf(uuid)]) await rm(path, { force: true });
    },
  };
};
