// Raw disks, plain or compressed: written to the target as they arrive, without scratch space.
import type { FileHandle } from 'node:fs/promises';
import { createCollector } from '#shared/transfer/collect.ts';
import { canUnpackToFile, unpackToFile } from '#shared/transfer/compression/unpack-to-file.ts';
import { roundToSector } from '#shared/transfer/format/disk.ts';
import { smallestDiskBytes } from '#shared/transfer/format/detect.ts';
import { fixedVhdSize, vhdFooterBytes } from '#shared/transfer/format/vhd.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { type Pass, type PassResult, complete } from '#shared/transfer/pass.ts';
import { checkCapacity } from '#shared/transfer/plan.ts';
import { contentOf, publishedBytes, verifiedDigests } from '#shared/transfer/published.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import { withKeptBytes } from '#shared/transfer/resume/mark.ts';
import { type Mark, findMark, markKey } from '#shared/transfer/resume/mark.ts';
import { type Saver, createSaver } from '#shared/transfer/resume/saver.ts';
import { flushWhile } from '#shared/transfer/sink/flushing.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';

const regroupBytes = 1024 * 1024;

/** The same bytes in pieces of `regroupBytes`, the last one shorter, so that writes are large and aligned. */
async function* regrouped(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let group = Buffer.allocUnsafe(regroupBytes);
  let filled = 0;
  for await (const chunk of input) {
    for (let at = 0; at < chunk.length;) {
      if (filled === 0 && chunk.length - at >= regroupBytes) {
        yield chunk.subarray(at, at + regroupBytes);
        at += regroupBytes;
        continue;
      }
      const copied = chunk.copy(group, filled, at);
      at += copied;
      filled += copied;
      if (filled < regroupBytes) continue;
      yield group;
      group = Buffer.allocUnsafe(regroupBytes);
      filled = 0;
    }
  }
  if (filled > 0) yield group.subarray(0, filled);
}

interface Measured {
  /** Bytes of the uncompressed file. */
  readonly length: number;
  /** The guest's bytes in it, if a footer at its end makes it a fixed vhd. */
  readonly fixedSize: number | undefined;
}

type Take = (bytes: Buffer, position: number) => Promise<void>;

/** Passes everything except the footer of a vhd to `take`: the last group is held back until the end is known. */
const drain = async (pass: Pass, take: Take): Promise<Measured> => {
  const collectGarbage = createCollector();
  let held: Buffer = Buffer.alloc(0);
  let position = 0;
  for await (const group of regrouped(contentOf(pass))) {
    pass.signal.throwIfAborted();
    collectGarbage(group.length);
    if (held.length > 0) await take(held, position);
    position += held.length;
    held = group;
  }
  const length = position + held.length;
  const fixedSize = pass.plan.facts.isGuestDisk === true ? undefined : fixedVhdSize(held, length);
  await take(fixedSize === undefined ? held : held.subarray(0, -vhdFooterBytes), position);
  return { length, fixedSize };
};

/** A file of unknown length ends with the connection, even if that was interrupted. An earlier inspection must have found the same end. */
const checkExpected = ({ plan, spec }: Pass, virtualSize: number): void => {
  const expected = spec.expected?.virtualSize;
  const isProven = plan.inspection.size !== undefined || spec.checksum !== undefined;
  if (expected === undefined || isProven || virtualSize === expected) return;
  throw new TransferError(
    'SourceChanged',
    `the disk ended after ${virtualSize} bytes, and an earlier inspection found ${expected}; the server does not report the length of the file, so it may be truncated`,
  );
};

/** The actual result for the whole file. Throws if it differs from what its start announced. */
const settle = (pass: Pass, { length, fixedSize }: Measured): Inspection & { readonly virtualSize: number } => {
  const { inspection } = pass.plan;
  if (length < smallestDiskBytes)
    throw new TransferError('NotADiskImage', `the file has ${length} bytes, less than one sector`);
  const virtualSize = roundToSector(fixedSize ?? length);
  if (inspection.virtualSize !== undefined && inspection.virtualSize < virtualSize) {
    throw new TransferError('InternalFault', `the file holds ${length} bytes, ${inspection.virtualSize} were expected`);
  }
  checkExpected(pass, virtualSize);
  return { ...inspection, ...(fixedSize === undefined ? {} : { format: 'vhd' as const }), virtualSize };
};

/** Only counts: for `inspect`, if the size is not known otherwise. */
export const measureStream = async (pass: Pass): Promise<PassResult> => {
  const measured = await drain(pass, () => Promise.resolve());
  return { digests: verifiedDigests(pass), inspection: settle(pass, measured), writtenBytes: 0 };
};

/** Stops at the size of the target, which limits a decompression bomb. Bytes before `from` are already written. */
const takeInto =
  (
    sink: Sink,
    { from = 0, saver }: { readonly from?: number | undefined; readonly saver?: Saver | undefined } = {},
  ): Take =>
  async (bytes, position) => {
    const end = position + bytes.length;
    checkCapacity(end, sink.limitBytes, true);
    if (end <= from) return;
    await sink.write(bytes, position);
    saver?.see(end, Promise.resolve(true));
  };

/** Only for an uncompressed disk: its bytes on the target equal the published ones, so digests can be computed from there on resume. */
const saverOf = (pass: Pass, sink: Sink, virtualSize: number, mark: Mark | undefined): Saver | undefined => {
  const { size = 0, compression } = pass.plan.inspection;
  const key = markKey(pass, virtualSize);
  const journal = sink.journal();
  if (key === undefined || journal === undefined || compression !== 'none') return undefined;
  return createSaver({
    journal,
    key,
    size,
    from: mark?.position ?? 0,
    overlapBytes: 0,
    flush: () => sink.flush(),
    writtenBytes: async () => (mark?.writtenBytes ?? 0) + (await sink.writtenBytes()),
    policy: pass.saving,
    now: () => performance.now(),
  });
};

const tooLarge = ({ limitBytes }: Sink): TransferError => {
  try {
    checkCapacity(limitBytes + 1, limitBytes, true);
  } catch (error) {
    if (error instanceof TransferError) return error;
  }
  return new TransferError('ImageTooLarge', 'the image is larger than the volume');
};

interface Unpacking {
  readonly pass: Pass;
  readonly sink: Sink;
  readonly file: FileHandle;
  readonly compression: 'xz' | 'zst';
}

/** A decoder program writes the file; its end is examined afterwards. */
const unpackInto = async ({ pass, sink, file, compression }: Unpacking): Promise<Measured> => {
  // xz leaves holes only beyond the end of a file.
  await file.truncate(0);
  const flusher = flushWhile(sink);
  try {
    await unpackToFile({
      compression,
      input: publishedBytes(pass),
      descriptor: file.fd,
      path: sink.path,
      limitBytes: sink.limitBytes + vhdFooterBytes,
      tooLarge: () => tooLarge(sink),
      signal: pass.signal,
    });
  } finally {
    await flusher.stop();
  }
  const { size } = await file.stat();
  const tail = Buffer.alloc(Math.min(size, vhdFooterBytes));
  await file.read(tail, 0, tail.length, size - tail.length);
  return { length: size, fixedSize: fixedVhdSize(tail, size) };
};

const fill = async (pass: Pass, sink: Sink, virtualSize: number, mark: Mark | undefined): Promise<Measured> => {
  const { compression } = pass.plan.inspection;
  const file = sink.file();
  if (file !== undefined && canUnpackToFile(compression)) return unpackInto({ pass, sink, file, compression });
  const saver = saverOf(pass, sink, virtualSize, mark);
  try {
    const rest = mark === undefined ? pass : withKeptBytes(pass, sink.path, mark);
    return await drain(rest, takeInto(sink, { from: mark?.position, saver }));
  } finally {
    await saver?.stop();
  }
};

/** `announced`: bytes of the disk, 0 if unknown. */
export const importStream = async (pass: Pass, sink: Sink, announced: number): Promise<PassResult> => {
  const mark =
    pass.plan.inspection.compression === 'none' ? await findMark(pass, sink, announced, () => true) : undefined;
  if (mark === undefined) await sink.prepare(announced);
  const measured = await fill(pass, sink, announced, mark);
  pass.meter.enter('Verifying', 99);
  const digests = verifiedDigests(pass);
  const inspection = settle(pass, measured);
  checkCapacity(inspection.virtualSize, sink.limitBytes);
  const writtenBytes = (mark?.writtenBytes ?? 0) + (await sink.writtenBytes());
  await complete(pass, sink, inspection.virtualSize);
  return { digests, inspection, writtenBytes };
};
