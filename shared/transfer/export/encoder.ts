// Reads and compresses the data of a volume in workers, and yields it in order. Everything between two pieces is zero.
import { availableParallelism } from 'node:os';
import { type SharedDigester, createSharedDigester } from '#shared/transfer/decode/shared-digester.ts';
import type { DataExtent } from './volume.ts';
import type {
  EncodeAnswer,
  EncodeRequest,
  EncoderSetup,
  Packer,
  Seal,
  SealRequest,
} from '#shared/transfer/export/message.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { type WorkerPool, createWorkerPool } from '#shared/transfer/workers/pool.ts';

/** Read and compressed at once. */
export const pieceBytes = 1024 * 1024;
/** Compressed data may be slightly larger than its input. */
const packedSlack = 64 * 1024;
const mostWorkers = 4;

/** Valid until the next piece is requested. */
export interface Encoded {
  /** Position on the guest's disk. */
  readonly offset: number;
  readonly length: number;
  /** As in EncodeAnswer. */
  readonly lengths: Int32Array;
  readonly plain: Uint8Array;
  readonly packed: Uint8Array;
}

export interface Encoder {
  /** Pieces of `extents`, in order. Throws TransferError: SourceChanged, SourceInterrupted. */
  encode(extents: readonly DataExtent[]): AsyncGenerator<Encoded, void, undefined>;
  /** Digests of the first `length` bytes of a part. */
  seal(request: SealRequest): Promise<Seal>;
  /** Hex sha256 of the whole disk, after all of it was encoded; `undefined` if not requested. */
  guestDigest(): Promise<string | undefined>;
  kill(): Promise<void>;
}

export interface EncoderOptions {
  readonly path: string;
  /** Bytes of the guest's disk. */
  readonly size: number;
  readonly packer: Packer;
  readonly level: number;
  readonly unitBytes: number;
  readonly parts?: readonly SharedArrayBuffer[];
  /** Compute the sha256 of the guest's bytes, including zeroes. */
  readonly hasGuestDigest?: boolean;
  readonly signal: AbortSignal;
}

function* piecesOf(extents: readonly DataExtent[]): Generator<Omit<EncodeRequest, 'slot'>, void, undefined> {
  for (const { start, end } of extents) {
    for (let offset = start; offset < end;) {
      const length = Math.min(end, (Math.floor(offset / pieceBytes) + 1) * pieceBytes) - offset;
      yield { offset, length };
      offset += length;
    }
  }
}

const answerOf = (answer: EncodeAnswer, path: string): Exclude<EncodeAnswer, { fault: object }> => {
  if (!('fault' in answer)) return answer;
  const { message, isShorter } = answer.fault;
  throw new TransferError(
    isShorter ? 'SourceChanged' : 'SourceInterrupted',
    `cannot read the volume at ${path}: ${message}`,
  );
};

/** Digests pieces and the zeroes between them. */
const createGuestDigest = ({ hasGuestDigest = false, size }: EncoderOptions, plain: readonly SharedArrayBuffer[]) => {
  const digester: SharedDigester | undefined = hasGuestDigest
    ? createSharedDigester({ buffers: plain, algorithms: ['sha256'] })
    : undefined;
  let position = 0;
  const skipTo = (offset: number): void => {
    const zeroes = offset - position;
    if (zeroes > 0) void digester?.update({ zeroes }).catch(() => {});
    position = offset;
  };
  return {
    /** Resolves once the buffer may be reused. */
    add: async ({ slot, offset, length }: EncodeRequest): Promise<void> => {
      skipTo(offset);
      position += length;
      await digester?.update({ buffer: slot, offset: 0, length });
    },
    finish: async (): Promise<string | undefined> => {
      if (digester === undefined) return undefined;
      skipTo(size);
      return (await digester.finish())['sha256'];
    },
    kill: async () => digester?.kill(),
  };
};

interface UnderWay {
  readonly request: EncodeRequest;
  readonly answer: Promise<EncodeAnswer>;
}

type EncodePool = WorkerPool<EncodeRequest | SealRequest, EncodeAnswer>;

interface Buffers {
  readonly plain: readonly SharedArrayBuffer[];
  readonly packed: readonly SharedArrayBuffer[];
}

/** Three pieces per worker: one being compressed, one waiting, one being consumed. */
const createBuffers = (packer: Packer, workers: number): Buffers => {
  const many = (bytes: number) => Array.from({ length: 3 * workers }, () => new SharedArrayBuffer(bytes));
  return { plain: many(pieceBytes), packed: packer === 'none' ? [] : many(pieceBytes + packedSlack) };
};

const viewOf = (buffer: SharedArrayBuffer | undefined): Uint8Array =>
  new Uint8Array(buffer ?? new SharedArrayBuffer(0));

interface Encoding extends Buffers {
  readonly options: EncoderOptions;
  readonly pool: EncodePool;
  readonly digest: ReturnType<typeof createGuestDigest>;
  /** Resolves when a buffer may be reused. */
  readonly busy: Promise<void>[];
}

/** Requests as many pieces ahead as there are buffers, and yields them in order. */
async function* encodeInOrder(
  { options, pool, digest, busy, plain, packed }: Encoding,
  extents: readonly DataExtent[],
): AsyncGenerator<Encoded, void, undefined> {
  const pieces = piecesOf(extents);
  const underWay: UnderWay[] = [];
  let asked = 0;
  let taken = 0;
  const askAhead = async (): Promise<void> => {
    while (asked - taken < plain.length) {
      const next = pieces.next();
      if (next.done === true) return;
      const slot = asked++ % plain.length;
      await busy[slot];
      const request = { slot, ...next.value };
      const answer = pool.ask(request);
      answer.catch(() => {});
      underWay.push({ request, answer });
    }
  };
  for (;;) {
    options.signal.throwIfAborted();
    await askAhead();
    const first = underWay.shift();
    if (first === undefined) return;
    const { slot, offset, length } = first.request;
    const answer = answerOf(await first.answer, options.path);
    if (!('lengths' in answer)) throw new TransferError('InternalFault', 'unexpected answer of an encoding worker');
    busy[slot] = digest.add(first.request);
    busy[slot]?.catch(() => {});
    yield { offset, length, lengths: answer.lengths, plain: viewOf(plain[slot]), packed: viewOf(packed[slot]) };
    taken++;
  }
}

export const createEncoder = (options: EncoderOptions): Encoder => {
  const { path, size, packer, level, unitBytes, parts = [] } = options;
  const workers = Math.min(availableParallelism(), mostWorkers);
  const buffers = createBuffers(packer, workers);
  const setup: EncoderSetup = { path, size, packer, level, unitBytes, ...buffers, parts };
  const script = new URL('./encode-worker.ts', import.meta.url);
  const pool: EncodePool = createWorkerPool({ script, setup, count: workers, work: 'encoding' });
  const digest = createGuestDigest(options, buffers.plain);
  const busy = buffers.plain.map(() => Promise.resolve());
  return {
    encode: (extents) => encodeInOrder({ options, pool, digest, busy, ...buffers }, extents),
    seal: async (request) => {
      const answer = answerOf(await pool.ask(request), path);
      if ('seal' in answer) return answer.seal;
      throw new TransferError('InternalFault', 'unexpected answer of an encoding worker');
    },
    guestDigest: () => digest.finish(),
    kill: async () => {
      await Promise.all([pool.kill(), digest.kill()]);
    },
  };
};
