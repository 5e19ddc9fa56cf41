// One request with a whole file, from its first byte to the verified disk. Shared by Harvester's action and CDI's paths.
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { uploadToLonghorn } from '#shared/exchange/longhorn.ts';
import type { ExchangeTarget } from '#shared/exchange/target.ts';
import type { FileBody } from '#shared/exchange/upload/file-part.ts';
import { lookAhead, requireRoom } from '#shared/exchange/upload/look-ahead.ts';
import { offer } from '#shared/exchange/upload/offer.ts';
import { openUpload, untilReceived } from '#shared/exchange/upload/open.ts';
import { type Sent, sendToUpload } from '#shared/exchange/upload/session.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { Checksum } from '#shared/transfer/spec.ts';

export interface Delivered {
  readonly target: ExchangeTarget;
  readonly file: FileBody;
  /** Bytes of the disk, if the client announces them. */
  readonly virtualSize?: number | undefined;
  readonly checksum?: Checksum | undefined;
  /** Seconds to wait for the result after the last byte. */
  readonly waits: number;
  readonly signal: AbortSignal;
}

export const tooLarge = (found: string, mostBytes: number): Problem =>
  new Problem(
    413,
    'RequestEntityTooLarge',
    `the file has ${found} bytes, and the limit is ${mostBytes}: compress it, or publish it on a web server and import it`,
  );

/** 413 with a message, before the body is read. */
export const requireSize = (length: number | undefined, mostBytes: number): void => {
  if (length !== undefined && length > mostBytes) throw tooLarge(String(length), mostBytes);
};

/** For a file of unknown length. */
export async function* atMost(stream: AsyncIterable<Buffer>, mostBytes: number): AsyncGenerator<Buffer> {
  let taken = 0;
  for await (const chunk of stream) {
    taken += chunk.length;
    if (taken > mostBytes) throw tooLarge(`more than ${mostBytes}`, mostBytes);
    yield chunk;
  }
}

const anArchive: Inspection = { format: 'tar', compression: 'none' };

/** Longhorn confirms a complete file without a further message. */
const taken: Sent = {
  status: 200,
  reason: '',
  message: '',
  offset: 0,
  length: undefined,
  isComplete: true,
  announced: undefined,
};

export const announcedSum = (checksum: Checksum | undefined) => (checksum === undefined ? {} : { checksum });

/** The volume of an image is as large as its first file required: the next file needs another volume. */
export const followed = ({ name }: ExchangeTarget) =>
  name.plural === 'virtualmachineimages' ? {} : { maybeFollowed: true };

/** Throws a Problem if the file cannot be sent; otherwise returns the result. */
export const deliver = async (deps: ExchangeDeps, delivered: Delivered): Promise<Sent> => {
  const { file, checksum, waits, signal } = delivered;
  requireSize(file.length, deps.mostBytes);
  // The size of the files in an archive is not known in advance; the Job checks whether it is an archive.
  const { inspection, stream } =
    delivered.target.holdsFiles === true
      ? { inspection: anArchive, stream: file.stream }
      : await lookAhead(file.stream, file.length);
  const target = await offer(deps, delivered.target, { inspection, virtualSize: delivered.virtualSize });
  const open = await untilReceived(deps, target, signal);
  const { backingImage } = open;
  if (backingImage !== undefined) {
    const kept = { target: { ...open, backingImage }, stream, length: file.length, inspection, signal };
    await uploadToLonghorn(deps, { ...kept, hasChecksum: checksum !== undefined });
    return taken;
  }
  const { worker, state } = await openUpload(deps, open, signal);
  await requireRoom(inspection.virtualSize, state.limitBytes);
  const begins = {
    id: randomUUID(),
    ...(file.length === undefined ? {} : { length: file.length }),
    ...announcedSum(checksum ?? open.checksum),
    ...followed(open),
  };
  const body =
    file.length === undefined ? Readable.from(atMost(stream, deps.mostBytes), { objectMode: false }) : stream;
  return sendToUpload(worker, { body, offset: 0, begins, isLast: true, takesOver: false, waits, signal });
};
