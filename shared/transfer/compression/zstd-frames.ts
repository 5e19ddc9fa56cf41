// Finds the ends of zstd frames without decoding them, since Node's decoder stops after the first one (RFC 8878, 3.1).
import { TransferError } from '#shared/transfer/fault.ts';

/** A part of a frame; `last` is set on the part that completes it. */
export interface FramePiece {
  readonly bytes: Buffer;
  readonly last: boolean;
}

export interface FrameSplitter {
  /** Parts of real frames in `chunk`; skippable frames are dropped. Throws ImageCorrupt. */
  push(chunk: Buffer): readonly FramePiece[];
  /** Whether all data so far ends with a complete frame. */
  isComplete(): boolean;
}

const frameMagic = 0xfd2fb528;
const skippableMagic = 0x184d2a50;
const broken = (message: string) => new TransferError('ImageCorrupt', `the zstd data is broken: ${message}`);

/** Length of a frame header after the magic number, from its descriptor byte. */
const headerBytesOf = (descriptor: number): number => {
  const sizeFlag = descriptor >> 6;
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const sizeBytes = sizeFlag === 0 ? Number(isSingleSegment) : 2 ** sizeFlag;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] ?? 0;
  return 1 + Number(!isSingleSegment) + dictionaryBytes + sizeBytes;
};

/** Decompressed size of the first frame of a file; `undefined` if it is not recorded, or if the file is not zstd. */
export const frameContentBytes = (head: Buffer): number | undefined => {
  if (head.length < 18 || head.readUInt32LE(0) !== frameMagic) return undefined;
  const descriptor = head.readUInt8(4);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const sizeFlag = descriptor >> 6;
  if (sizeFlag === 0 && !isSingleSegment) return undefined;
  const at = 5 + Number(!isSingleSegment) + ([0, 1, 2, 4][descriptor & 3] ?? 0);
  switch (sizeFlag) {
    case 0:
      return head.readUInt8(at);
    case 1:
      return head.readUInt16LE(at) + 256;
    case 2:
      return head.readUInt32LE(at);
    default:
      return Number(head.readBigUInt64LE(at));
  }
};

type State = 'magic' | 'descriptor' | 'header' | 'block' | 'payload' | 'checksum' | 'skipSize' | 'skip';

/** Bytes required at once in each state; `payload`, `checksum`, `header` and `skip` count down instead. */
const needed: Readonly<Partial<Record<State, number>>> = { magic: 4, descriptor: 1, block: 3, skipSize: 4 };

interface Splitting {
  state: State;
  /** Bytes of the current field, collected over several chunks. */
  field: number[];
  /** Bytes left to copy or skip. */
  left: number;
  hasChecksum: boolean;
  isLastBlock: boolean;
}

const little = (bytes: readonly number[]): number => bytes.reduceRight((value, byte) => value * 256 + byte, 0);

const enter = (splitting: Splitting, state: State, left = 0): void => {
  splitting.state = state;
  splitting.left = left;
  splitting.field = [];
};

const afterBlock = (splitting: Splitting): void => {
  if (!splitting.isLastBlock) return enter(splitting, 'block');
  return splitting.hasChecksum ? enter(splitting, 'checksum', 4) : enter(splitting, 'magic');
};

const enterPayload = (splitting: Splitting, header: number): void => {
  const type = (header >> 1) & 3;
  if (type === 3) throw broken('a block has the reserved type');
  splitting.isLastBlock = (header & 1) === 1;
  const length = type === 1 ? 1 : header >> 3;
  if (length === 0) afterBlock(splitting);
  else enter(splitting, 'payload', length);
};

const onMagic = (splitting: Splitting, magic: number): void => {
  if (magic === frameMagic) enter(splitting, 'descriptor');
  else if ((magic & 0xfffffff0) === skippableMagic) enter(splitting, 'skipSize');
  else throw broken('something other than a frame follows');
};

/** The current field is complete: selects the next state. */
const onField = (splitting: Splitting): void => {
  const value = little(splitting.field);
  switch (splitting.state) {
    case 'magic':
      return onMagic(splitting, value);
    case 'descriptor':
      splitting.hasChecksum = (value & 4) !== 0;
      if ((value & 8) !== 0) throw broken('a reserved bit is set');
      return enter(splitting, 'header', headerBytesOf(value) - 1);
    case 'block':
      return enterPayload(splitting, value);
    case 'skipSize':
      return value === 0 ? enter(splitting, 'magic') : enter(splitting, 'skip', value);
    default:
      return undefined;
  }
};

/** A counted run has ended: selects the next state. */
const onRunEnd = (splitting: Splitting): void => {
  if (splitting.state === 'payload') return afterBlock(splitting);
  return enter(splitting, splitting.state === 'header' ? 'block' : 'magic');
};

/** Consumes bytes of `chunk` from `at` on, as the current state requires; returns the position after them. */
const step = (splitting: Splitting, chunk: Buffer, at: number): number => {
  const want = needed[splitting.state];
  if (want === undefined) {
    const taken = Math.min(splitting.left, chunk.length - at);
    splitting.left -= taken;
    if (splitting.left === 0) onRunEnd(splitting);
    return at + taken;
  }
  const taken = Math.min(want - splitting.field.length, chunk.length - at);
  splitting.field.push(...chunk.subarray(at, at + taken));
  if (splitting.field.length === want) onField(splitting);
  return at + taken;
};

const isSkipping = (state: State): boolean => state === 'skipSize' || state === 'skip';

/** The magic number of a frame is emitted late, once the frame is known not to be skippable. */
const magicBytes = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

export const createFrameSplitter = (): FrameSplitter => {
  const splitting: Splitting = { state: 'magic', field: [], left: 0, hasChecksum: false, isLastBlock: false };
  return {
    isComplete: () => splitting.state === 'magic' && splitting.field.length === 0,
    push: (chunk) => {
      const pieces: FramePiece[] = [];
      let start = 0;
      for (let at = 0; at < chunk.length;) {
        const before = splitting.state;
        at = step(splitting, chunk, at);
        if (before === 'magic') {
          if (splitting.state === 'descriptor') pieces.push({ bytes: magicBytes, last: false });
          start = at;
        } else if (isSkipping(before)) start = at;
        else if (splitting.state === 'magic') {
          pieces.push({ bytes: chunk.subarray(start, at), last: true });
          start = at;
        }
      }
      if (start < chunk.length && splitting.state !== 'magic' && !isSkipping(splitting.state)) {
        pieces.push({ bytes: chunk.subarray(start), last: false });
      }
      return pieces;
    },
  };
};
