// The file of this machine that is to be sent: how large it and its disk are, and what it hashes to.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type Call, textOf } from '#cli/command.ts';
import type { Line } from '#cli/line.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import { lookAhead } from '#shared/exchange/upload/look-ahead.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';

export interface LocalFile {
  readonly path: string;
  readonly size: number;
  /** Bytes of the disk in it, where its beginning tells. */
  readonly virtualSize: number | undefined;
}

export const lookAtFile = async (path: string): Promise<LocalFile> => {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw new InvalidInput('it is not a file');
    if (found.size === 0) throw new InvalidInput('it is empty');
    const { size } = found;
    const { inspection, stream } = await lookAhead(createReadStream(path), size);
    stream.destroy();
    return { path, size, virtualSize: inspection.virtualSize };
  } catch (error) {
    throw new InvalidInput(`${path} cannot be uploaded: ${messageOf(error)}`, [], { cause: error });
  }
};

export const digestOf = async ({ path, size }: LocalFile, line: Line, signal: AbortSignal): Promise<string> => {
  const hash = createHash('sha256');
  let read = 0;
  const bytes: AsyncIterable<Buffer> = createReadStream(path, { highWaterMark: 4 * 1024 * 1024, signal });
  for await (const chunk of bytes) {
    hash.update(chunk);
    read += chunk.length;
    line.count(`checking ${path}: ${String(Math.floor((100 * read) / size)).padStart(3)}%`);
  }
  return hash.digest('hex');
};

/** The digest that the file must have, if the caller says one. */
export const expectedOf = ({ values }: Call): string | undefined => {
  const asked = textOf(values, 'checksum');
  if (asked === undefined) return undefined;
  const parsed = parseChecksum(asked, 'sha256');
  if ('problem' in parsed || parsed.value.algorithm !== 'sha256')
    throw new InvalidInput(`--checksum is sha256:<hex>, not ${asked}`);
  return parsed.value.hex;
};

export const requireSame = (expected: string | undefined, found: string): void => {
  if (expected === undefined || expected === found) return;
  const message = `sha256 of the file is ${found}, expected ${expected}`;
  throw new InvalidInput(message, [{ field: 'file', message }]);
};

export const diskBytesOf = ({ values }: Call, file: LocalFile): number | undefined => {
  const size = textOf(values, 'size');
  const bytes = size === undefined ? file.virtualSize : parseQuantity(size);
  if (size !== undefined && bytes === undefined)
    throw new InvalidInput(`--size is a quantity such as 20Gi, not ${size}`);
  return bytes;
};

export const needsSize = (file: LocalFile): InvalidInput =>
  new InvalidInput(`${file.path} says how large its disk is only once all of it was read: give the size with --size`);
