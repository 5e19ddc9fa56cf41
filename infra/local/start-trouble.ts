// Messages of `npm start` if the cluster cannot start, or takes long. Called by main.ts.
import { open } from 'node:fs/promises';
import { AppError, messageOf } from '#shared/runtime/errors.ts';

/** Messages for faults of the machine or the command line; undefined for bugs. */
export const complaintOf = (error: unknown): string | undefined => {
  if (error instanceof AppError) return messageOf(error);
  if (!isSystemError(error)) return undefined;
  return `${describe(error)} (${error.message})`;
};

interface SystemError extends Error {
  readonly code: string;
  readonly syscall: string;
  readonly path?: string;
  readonly port?: number;
}

const isSystemError = (error: unknown): error is SystemError =>
  error instanceof Error && 'code' in error && 'syscall' in error;

const describe = ({ code, path = 'a file', port }: SystemError): string => {
  switch (code) {
    case 'EADDRINUSE':
      return `something else listens on port ${port} of this machine: end it, or choose another --port`;
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return port === undefined
        ? `${path} cannot be written: choose another --data-dir`
        : `port ${port} requires more privileges: choose another --port`;
    case 'EEXIST':
    case 'ENOTDIR':
      return `${path} is not a directory: choose another --data-dir`;
    case 'ENOSPC':
      return `the disk with ${path} is full: free some space, or choose another --data-dir`;
    default:
      return 'the system refused';
  }
};

/** Bytes at the end of the log that contain its last line. */
const tailBytes = 8192;

/** Reports every `everyMs`, until the returned function is called, that the start continues, with the last line of the log. */
export const watchStart = (logFile: string, say: (text: string) => void, everyMs = 15_000): (() => void) => {
  const begun = performance.now();
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - begun) / 1000);
    void lastEntry(logFile).then((entry) => say(`still starting after ${seconds} s; ${logFile} ends with: ${entry}`));
  }, everyMs);
  return () => clearInterval(timer);
};

const lastEntry = async (logFile: string): Promise<string> => {
  try {
    const line = (await tailOf(logFile)).trimEnd().split('\n').at(-1) ?? '';
    const { message, error } = JSON.parse(line) as { readonly message: string; readonly error?: unknown };
    return error === undefined ? message : `${message}: ${errorText(error)}`;
  } catch {
    return 'nothing yet';
  }
};

const errorText = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error);

const tailOf = async (file: string): Promise<string> => {
  await using handle = await open(file);
  const { size } = await handle.stat();
  const buffer = Buffer.alloc(Math.min(size, tailBytes));
  await handle.read(buffer, 0, buffer.length, size - buffer.length);
  return buffer.toString();
};
