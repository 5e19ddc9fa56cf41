// What has arrived of an uploaded file: bytes in order, on disk, so that an upload goes on where it was after the client has gone away, and
// after this process has died, or its node: the directory lies in a claim of its own. One writer; readers wait for what has not arrived yet.
import { type FileHandle, mkdir, open, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { writing } from '#shared/transfer/fault.ts';
import { Checksum } from '#shared/transfer/spec.ts';
import { readFully } from '#shared/transfer/file-bytes.ts';
import { syncDirectory } from '#shared/transfer/resume/journal.ts';
import { createSparseWriter } from '#shared/transfer/sink/writer.ts';

/** Bytes between two notes of what is surely on disk. What came after the last one is sent again. */
const noteEveryBytes = 64 * 1024 * 1024;
/** Milliseconds between two of them where bytes come slowly: nobody sends more than that again. */
const noteEveryMs = 1_000;

/** What a client says of a file before it sends any of it. */
export const Announcement = z.object({
  /** Tells this upload from others into the same volume. */
  id: z.string().max(200),
  /** Bytes of the whole file, if known. */
  length: z.number().int().nonnegative().optional(),
  /** Of the whole file. */
  checksum: Checksum.optional(),
  /** The client's own words, handed back as they are. */
  metadata: z.string().max(4096).optional(),
  /** The volume waits for another file where this one cannot become its disk. Left out: that is the end of the transfer. */
  maybeFollowed: z.boolean().optional(),
});
export type Announcement = z.infer<typeof Announcement>;

const Note = z.object({
  /** Bytes that were flushed. */
  offset: z.number().int().nonnegative(),
  /** Of the whole file, once the client said it. */
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
  /** Counts up when the file begins anew; what was read before is then void. */
  generation(): number;
  /** The next bytes. */
  append(bytes: Buffer): Promise<void>;
  announced(): Announcement | undefined;
  /** Makes sure of what has arrived. */
  flush(): Promise<void>;
  /** Nothing more comes. */
  complete(): Promise<void>;
  /** Forgets everything; what comes next is what is announced here, or later where nothing is. */
  begin(announced?: Announcement): Promise<void>;
  /** Fills `target` from what has arrived. */
  readInto(offset: number, target: Uint8Array): Promise<void>;
  /** Settles at the next change of anything above. */
  changed(): Promise<void>;
  close(): Promise<void>;
}

const noteFileOf = (directory: string): string => join(directory, 'note.json');

const readNote = async (file: string): Promise<Note> => {
  try {
    return Note.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return empty;
  }
};

/** Of the file that holds the bytes; the note lies beside it. */
const openData = (path: string): Promise<FileHandle> =>
  writing(path, () => open(path, 'r+').catch(() => open(path, 'w+')));

/** Fills `target`; what lies behind the end of the file has arrived as zeroes, which are not written. */
const readArrived = async (file: FileHandle, from: number, target: Uint8Array): Promise<void> => {
  target.fill(0, await readFully(file, target, from));
};

const lookingAt = (now: () => Note): Pick<Spool, 'offset' | 'length' | 'isComplete' | 'announced'> => ({
  offset: () => now().offset,
  length: () => now().length,
  isComplete: () => now().isComplete,
  announced: () => now().announced,
});

/** The note of a file of which nothing has come. */
const begun = (announced: Announcement | undefined): Note => ({
  ...empty,
  ...(announced === undefined ? {} : { announced }),
  ...(announced?.length === undefined ? {} : { length: announced.length }),
});

/** Wakes all who wait. */
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

/** Written whole, or as it was; also after the node has lost its power. */
const writeNote = (directory: string, note: Note): Promise<void> =>
  writing(directory, async () => {
    const file = noteFileOf(directory);
    await writeFile(`${file}.part`, JSON.stringify(note), { flush: true });
    await rename(`${file}.part`, file);
    await syncDirectory(directory);
  });

/** Goes on with what `directory` holds from before. */
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
    // Zeroes at the end were not written: the length says that they are there.
    await writing(directory, () => file.truncate(now.offset));
    await writeNote(directory, now);
    noted = { offset: now.offset, at: clock() };
  };
  const isDue = (): boolean => now.offset - noted.offset >= noteEveryBytes || clock() - noted.at >= noteEveryMs;
  await writing(directory, () => file.truncate(now.offset));
  return {
    ...lookingAt(() => now),
    generation: () => generation,
    append: async (bytes) => {
      await writer.write(bytes, now.offset);
      // Only then: readers look at what lies before the offset.
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
      // The note first: one that tells of bytes that are cut off already would have them back as zeroes.
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
