// The cluster's log: lines appended to a file, which makes room for itself. Called by cluster.ts.
import { type WriteStream, createWriteStream, existsSync, openSync, renameSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface LogFile {
  readonly write: (line: string) => void;
  /** Resolves when everything is written; later lines are dropped. */
  readonly close: () => Promise<void>;
}

/** Bytes after which a new file is begun; the one before is kept beside it, so a log never takes more than twice this. */
const defaultLimit = 32 * 1024 * 1024;

/** What came before is kept in `<file>.1`. */
export const openLogFile = async (file: string, limitBytes = defaultLimit): Promise<LogFile> => {
  await mkdir(dirname(file), { recursive: true });
  let size = existsSync(file) ? statSync(file).size : 0;
  let stream = open(file);
  /** Ends of files that were begun before. */
  const ended: Promise<void>[] = [];

  /** What the old stream has not written yet follows it under its new name. */
  const turn = (): void => {
    size = 0;
    try {
      renameSync(file, `${file}.1`);
      const next = open(file);
      ended.push(end(stream));
      stream = next;
    } catch {
      // Somebody took the folder away: on with the file that is open.
    }
  };
  return {
    write: (line) => {
      if (!stream.writable) return;
      if (size >= limitBytes) turn();
      size += Buffer.byteLength(line);
      stream.write(line);
    },
    close: async () => {
      await Promise.all([...ended, end(stream)]);
    },
  };
};

const open = (file: string): WriteStream => {
  const stream = createWriteStream(file, { fd: openSync(file, 'a') });
  // A log that cannot be written (a full disk) ends no cluster.
  stream.on('error', () => undefined);
  return stream;
};

const end = (stream: WriteStream): Promise<void> =>
  new Promise((done) => {
    if (stream.destroyed) done();
    else stream.once('close', () => done()).end();
  });
