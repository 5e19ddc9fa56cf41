// Reads the archive of a bundle: where each blob lies, from the headers alone. A name is never used as a path, and no blob is held in memory.
import { type FileHandle, open } from 'node:fs/promises';
import {
  blobName,
  damaged,
  digestFromName,
  indexFile,
  isFolder,
  layoutFile,
  mostDocumentBytes,
  reading,
} from '#cli/bundle/layout.ts';
import {
  type Extra,
  type Header,
  blockBytes,
  extraOf,
  isMeta,
  openHeader,
  readHeader,
} from '#shared/transfer/archive/tar-header.ts';
import { digestOf } from '#shared/clients/registry/manifest.ts';
import { readWhole } from '#shared/runtime/read-bytes.ts';
import { paddingOf } from '#shared/transfer/archive/tar-write.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';

/** Where the bytes of a file of the archive lie. */
export interface BlobSpan {
  readonly position: number;
  readonly size: number;
}

export interface BundleArchive {
  readonly path: string;
  /** By digest, as their names claim. */
  readonly blobs: ReadonlyMap<string, BlobSpan>;
  readonly index: Uint8Array;
  /** A blob from a byte on; nothing compares its digest. Throws InvalidInput if it is not there. */
  read(digest: string, from?: number): AsyncGenerator<Buffer, void, undefined>;
  close(): Promise<void>;
}

const chunkBytes = 1024 * 1024;

/** Of the attributes before an entry. */
const mostMetaBytes = 64 * 1024;

/** Bytes of a file. Each chunk is a buffer of its own. */
export async function* bytesAt(
  file: FileHandle,
  { position, size }: BlobSpan,
): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < size;) {
    const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, size - at));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position + at);
    if (bytesRead === 0) throw new InvalidInput('the file became shorter while it was read');
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

const readAt = (file: FileHandle, span: BlobSpan): Promise<Buffer> => readWhole(bytesAt(file, span));

/** One entry and where it ends; `undefined` at an empty block, or where the file ends. */
export interface FoundEntry extends Header, BlobSpan {
  readonly next: number;
}

/** Throws InvalidInput, or TransferError for a header that is none. `length`: of the file. */
export const entryAt = async (file: FileHandle, start: number, length: number): Promise<FoundEntry | undefined> => {
  let extra: Extra = {};
  for (let at = start; at + blockBytes <= length;) {
    const block = await readAt(file, { position: at, size: blockBytes });
    if (block.every((byte) => byte === 0)) return undefined;
    const { type, ownSize } = openHeader(block);
    const position = at + blockBytes;
    if (!isMeta(type)) {
      const header = readHeader(block, extra);
      return { ...header, position, next: position + header.size + paddingOf(header.size) };
    }
    if (ownSize > mostMetaBytes || position + ownSize > length)
      throw new InvalidInput('an entry has attributes of an impossible size');
    extra = extraOf(type, await readAt(file, { position, size: ownSize }), extra);
    at = position + ownSize + paddingOf(ownSize);
  }
  return undefined;
};

interface Found {
  readonly blobs: Map<string, BlobSpan>;
  readonly files: Map<string, BlobSpan>;
}

const take = ({ blobs, files }: Found, entry: FoundEntry, length: number): void => {
  const { name, kind, size, position, next } = entry;
  const shown = JSON.stringify(name.slice(0, 200));
  if (kind === 'directory' && isFolder(name)) return;
  if (kind !== 'file') throw new InvalidInput(`${shown} is ${kind}, where a bundle has only files`);
  if (next > length)
    throw new InvalidInput(`${shown} has ${size} bytes by its header, and the file ends before: it was cut`);
  const digest = digestFromName(name);
  if (digest === undefined && name !== layoutFile && name !== indexFile)
    throw new InvalidInput(`${shown} does not belong in a bundle`);
  const into = digest === undefined ? files : blobs;
  if (into.has(digest ?? name)) throw new InvalidInput(`${shown} is there twice`);
  into.set(digest ?? name, { position, size });
};

const walk = async (file: FileHandle): Promise<Found> => {
  const { size: length } = await file.stat();
  const found: Found = { blobs: new Map(), files: new Map() };
  for (let at = 0; ;) {
    const entry = await entryAt(file, at, length);
    if (entry === undefined) {
      if (at + 2 * blockBytes > length) throw new InvalidInput('it ends before its end marker: it was cut');
      return found;
    }
    take(found, entry, length);
    at = entry.next;
  }
};

const documentOf = async (file: FileHandle, { files }: Found, name: string): Promise<Buffer> => {
  const span = files.get(name);
  if (span === undefined) throw new InvalidInput(`it has no ${name}: it is not an OCI image layout`);
  if (span.size > mostDocumentBytes) throw new InvalidInput(`${name} has ${span.size} bytes, which is too large`);
  return readAt(file, span);
};

/** Throws InvalidInput that says what is wrong and where. */
export const openArchive = async (path: string): Promise<BundleArchive> => {
  const file = await open(path, 'r').catch((error: unknown) => {
    throw new InvalidInput(`${path} cannot be read: ${messageOf(error)}`, [], { cause: error });
  });
  try {
    return await reading(path, () => readArchive(path, file));
  } catch (error) {
    await file.close();
    throw error;
  }
};

const readArchive = async (path: string, file: FileHandle): Promise<BundleArchive> => {
  const found = await walk(file);
  const layout = await documentOf(file, found, layoutFile);
  if (!/"imageLayoutVersion"\s*:\s*"1\.0\.0"/.test(layout.toString('utf8')))
    throw new InvalidInput(`${layoutFile} names no version of image layouts that is known here`);
  return {
    path,
    blobs: found.blobs,
    index: await documentOf(file, found, indexFile),
    read: (digest, from = 0) => {
      const span = found.blobs.get(digest);
      if (span === undefined) throw damaged(path, `lacks ${blobName(digest)}`);
      return bytesAt(file, { position: span.position + from, size: span.size - from });
    },
    close: () => file.close(),
  };
};

/** A manifest or document, compared with its digest each time that it is read. Throws InvalidInput if it is another one, or too large to be one. */
export const readSmall = async (archive: BundleArchive, digest: string, most = mostDocumentBytes): Promise<Buffer> => {
  const size = archive.blobs.get(digest)?.size ?? 0;
  if (size > most) throw damaged(archive.path, `has ${size} bytes in ${blobName(digest)}, which should be a document`);
  const bytes = await readWhole(archive.read(digest));
  const found = digestOf(bytes);
  if (found !== digest)
    throw damaged(archive.path, `is damaged in ${blobName(digest)}: its ${size} bytes have digest ${found}`);
  return bytes;
};
