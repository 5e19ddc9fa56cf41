// An encoding worker: reads a piece of the volume, detects zeroes, compresses the rest. Started by encoder.ts.
import { createHash } from 'node:crypto';
import { constants as fsConstants, openSync, readSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { crc32, gzipSync } from 'node:zlib';
import { messageOf } from '#shared/runtime/errors.ts';
import { createCollector } from '#shared/transfer/collect.ts';
import type { EncodeAnswer, EncodeRequest, EncoderSetup, SealRequest } from '#shared/transfer/export/message.ts';
import { type OneShot, createDeflater, createZstdPacker } from '#shared/transfer/one-shot.ts';

/** qemu stores a cluster uncompressed unless it becomes smaller by a sector. */
const leastGain = 512;

const setup = workerData as EncoderSetup;
const { unitBytes, level } = setup;
const file = openSync(setup.path, fsConstants.O_RDONLY | fsConstants.O_NOFOLLOW);
const plainBuffers = setup.plain.map((buffer) => Buffer.from(buffer));
const packedBuffers = setup.packed.map((buffer) => Buffer.from(buffer));
const parts = setup.parts.map((buffer) => Buffer.from(buffer));
const zeroes = Buffer.alloc(unitBytes);

/** Compresses a piece in the format of the file. */
const createPacker = (): OneShot => {
  if (setup.packer === 'zlib') return createDeflater(unitBytes, level);
  if (setup.packer === 'none') return (bytes) => bytes;
  if (setup.packer === 'gz')
    return (bytes) => {
      const packed = gzipSync(bytes, { level, memLevel: 9, chunkSize: unitBytes + 1024 });
      collectGarbage(packed.length);
      return packed;
    };
  return createZstdPacker(unitBytes, level, setup.packer === 'zst');
};

const collectGarbage = createCollector();
const pack = createPacker();

class VolumeShorter extends Error {}

/** The last sector may extend beyond the end of the volume, and the last cluster beyond the end of the disk: the rest is zero. */
const readPlain = (bytes: Buffer, offset: number): void => {
  let filled = 0;
  while (filled < bytes.length) {
    const count = readSync(file, bytes, filled, bytes.length - filled, offset + filled);
    if (count === 0) break;
    filled += count;
  }
  if (offset + filled + 512 <= Math.min(setup.size, offset + bytes.length))
    throw new VolumeShorter(`the volume ends at ${offset + filled} of ${setup.size} bytes`);
  bytes.fill(0, filled);
};

const isZero = (unit: Buffer): boolean =>
  unit[0] === 0 && unit[unit.length - 1] === 0 && zeroes.compare(unit, 0, unit.length, 0, unit.length) === 0;

const encode = ({ slot, offset, length }: EncodeRequest): EncodeAnswer => {
  const padded = Math.ceil(length / unitBytes) * unitBytes;
  const isCluster = setup.packer === 'zlib' || setup.packer === 'zstd';
  const isWhole = setup.packer !== 'gz' && setup.packer !== 'zst';
  const plain = plainBuffers[slot]?.subarray(0, isWhole ? padded : length) ?? Buffer.alloc(0);
  const packed = packedBuffers[slot];
  readPlain(plain, offset);
  const lengths = new Int32Array(padded / unitBytes);
  let end = 0;
  for (let unit = 0; unit < lengths.length; unit++) {
    const bytes = plain.subarray(unit * unitBytes, (unit + 1) * unitBytes);
    if (isZero(bytes)) continue;
    lengths[unit] = -1;
    if (packed === undefined) continue;
    const result = pack(bytes);
    if (isCluster && result.length > unitBytes - leastGain) continue;
    packed.set(result, end);
    lengths[unit] = result.length;
    end += result.length;
  }
  return { lengths };
};

const seal = ({ part, length }: SealRequest): EncodeAnswer => {
  const bytes = parts[part]?.subarray(0, length) ?? Buffer.alloc(0);
  return { seal: { sha256: createHash('sha256').update(bytes).digest('hex'), crc32: crc32(bytes) } };
};

parentPort?.on('message', (request: EncodeRequest | SealRequest) => {
  try {
    parentPort?.postMessage('part' in request ? seal(request) : encode(request));
  } catch (error) {
    const fault = { message: messageOf(error), isShorter: error instanceof VolumeShorter };
    parentPort?.postMessage({ fault } satisfies EncodeAnswer);
  }
});
