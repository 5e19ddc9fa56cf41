// The received part of an uploaded file: bytes in order, on disk, so that an upload resumes after the client has disconnected, and after this
// process or its node has died: the directory is in a separate claim. One writer; readers wait for missing bytes.
import { type FileHandle, mkdir, open, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { writing } from '#shared/transfer/fault.ts';
import { Checksum } from '#shared/transfer/spec.ts';
import { readFully } from '#shared/transfer/file-bytes.ts';
import { syncDirectory } from '#shared/transfer/resume/journal.ts';
import { createSparseWriter } from '#shared/transfer/sink/writer.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

/** Bytes between two records of the synced length. Later bytes are sent again after a crash. */
const noteEveryBytes = 64 * 1024 * 1024;
/** Milliseconds between two records if bytes arrive slowly: limits what is sent again. */
const noteEveryMs = 1_000;

/** Announcement of a file by a client, before any byte. */
export const Announcement = z.object({
  /** Distinguishes uploads into the same volume. */
  id: z.string().max(200),
  /** Bytes of the whole file, if known. */
  length: z.number().int().nonnegative().optional(),
  /** Of the whole file. */
  checksum: Checksum.optional(),
  /** Metadata of the client, returned unchanged. */
  metadata: z.string().max(4096).optional(),
  /** The volume waits for another file if this one cannot become its disk. Default: the transfer ends. */
  maybeFollowed: z.boolean().optional(),
});
export type Announcement = z.infer<typeof Announcement>;

const Note = z.object({
  /** Bytes that were flushed. */
  offset: z.number().int().nonnegative(),
  /** Of the whole file, once the client has sent it. */
  length: z.number().int().nonnegative().optional(),
  isComplete: z.boolean(),
  announced: Announcement.optional(),
});
type Note = z.infer<typeof Note>;

const empty: Note = { offset: 0, isComplete: false };

export interface Spool {
  /** Bytes that have arrived. */
  offset(): number;
  length(): number | undefined;
  isComplete(): boolean;
  /** Increases when the file is restarted; bytes read before are then invalid. */
  generation(): number;
  /** The next bytes. */
  append(bytes: Buffer): Promise<void>;
  announced(): Announcement | undefined;
  /** Syncs the received bytes to disk. */
  flush(): Promise<void>;
  /** No more bytes follow. */
  complete(): Promise<void>;
  /** Discards everything; the next file is the announced one, or is announced later. */
  begin(announced?: Announcement): Promise<void>;
  /** Fills `target` from received bytes. */
  readInto(offset: number, target: Uint8Array): Promise<void>;
  /** Resolves at the next change of any value above. */
  changed(): Promise<void>;
  close(): Promise<void>;
}

const noteFileOf = (directory: string): string => join(directory, 'note.json');

const readNote = async (file: string): Promise<Note> =>
  parseJsonAs(Note, await readFile(file, 'utf8').catch(() => undefined)) ?? empty;

/** The file with the bytes; the record is beside it. */
const openData = (path: string): Promise<FileHandle> =>
  writing(path, () => open(path, 'r+').catch(() => open(path, 'w+')));

/** Fills `target`; the part beyond the end of the file was received as zeroes, which are not written. */
const readArrived = async (file: FileHandle, from: number, target: Uint8Array): Promise<void> => {
  target.fill(0, await readFully(file, target, from));
};

const viewOf = (now: () => Note): Pick<Spool, 'offset' | 'length' | 'isComplete' | 'announced'> => ({
  offset: () => now().offset,
  length: () => now().length,
  isComplete: () => now().isComplete,
  announced: () => now().announced,
});

/** The record of a file without received bytes. */
const begun = (announced: Announcement | undefined): Note => ({
  ...empty,
  ...(announced === undefined ? {} : { announced }),
  ...(announced?.length === undefined ? {} : { length: announced.length }),
});

/** Wakes all waiters. */
const createBell = () => {
  let next = Promise.withResolvers<void>();
  return {
    ring: (): void => {
      next.resolve();
      next = Promise.withResolvers();
    },
    rung: () => next.promise,
  };
};

/** Written atomically, also in case of a power failure. */
const writeNote = (directory: string, note: Note): Promise<void> =>
  writing(directory, async () => {
    const file = noteFileOf(directory);
    await writeFile(`${file}.part`, JSON.stringify(note), { flush: true });
    await rename(`${file}.part`, file);
    await syncDirectory(directory);
  });

/** Resumes with the content of `directory`. */
export const openSpool = async (directory: string, clock: () => number = Date.now): Promise<Spool> => {
  await writing(directory, () => mkdir(directory, { recursive: true }));
  const file = await openData(join(directory, 'data'));
  let now: Note = await readNote(noteFileOf(directory));
  let noted = { offset: now.offset, at: clock() };
  let generation = 0;
  let writer = createSparseWriter(file, directory);
  const bell = createBell();
  const note = async (): Promise<void> => {
    await writer.flush();
    // Zeroes at the end were not written: the recorded length includes them.
    await writing(directory, () => file.truncate(now.offset));
    await writeNote(directory, now);
    noted = { offset: now.offset, at: clock() };
  };
  const isDue = (): boolean => now.offset - noted.offset >= noteEveryBytes || clock() - noted.at >= noteEveryMs;
  await writing(directory, () => file.truncate(now.offset));
  return {
    ...viewOf(() => now),
    generation: () => generation,
    append: async (bytes) => {
      await writer.write(bytes, now.offset);
      // Before the new offset becomes visible: readers read everything below it.
      await writer.finish();
      now = { ...now, offset: now.offset + bytes.length };
      if (isDue()) await note();
      bell.ring();
    },
    flush: note,
    complete: async () => {
      now = { ...now, length: now.offset, isComplete: true };
      await note();
      bell.ring();
    },
    begin: async (announced) => {
      await writer.settle();
      writer = createSparseWriter(file, directory);
      now = begun(announced);
      generation += 1;
      // The record first: one that includes bytes that are already cut off would restore them as zeroes.
      await note();
      await writing(directory, () => file.truncate(0));
      bell.ring();
    },
    readInto: (from, target) => readArrived(file, from, target),
    changed: bell.rung,
    close: async () => {
      await writer.settle();
      await file.close();
    },
  };
};
