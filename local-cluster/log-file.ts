// The log of the cluster: lines appended to a file that is rotated. Called by cluster.ts.
import { type WriteStream, createWriteStream, existsSync, openSync, renameSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface LogFile {
  readonly write: (line: string) => void;
  /** Resolves when everything is written; later lines are dropped. */
  readonly close: () => Promise<void>;
}

/** Bytes after which the file is rotated; one previous file is kept, so a log never takes more than twice this. */
const defaultLimit = 32 * 1024 * 1024;

/** Previous content is kept in `<file>.1`. */
export const openLogFile = async (file: string, limitBytes = defaultLimit): Promise<LogFile> => {
  await mkdir(dirname(file), { recursive: true });
  let size = existsSync(file) ? statSync(file).size : 0;
  let stream = open(file);
  /** Rotated files that are still being written. */
  const ended: Promise<void>[] = [];

  /** Data that the old stream has not written yet follows under its new name. */
  const turn = (): void => {
    size = 0;
    try {
      renameSync(file, `${file}.1`);
      const next = open(file);
      ended.push(end(stream));
      stream = next;
    } catch {
      // The folder was removed: continue with the open file.
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
  // A log that cannot be written (a full disk) must not stop the cluster.
  stream.on('error', () => undefined);
  return stream;
};

const end = (stream: WriteStream): Promise<void> =>
  new Promise((done) => {
    if (stream.destroyed) done();
    else stream.once('close', () => done()).end();
  });
