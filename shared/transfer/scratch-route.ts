// Formats with a structure: downloaded to scratch space, verified as a whole, then converted by qemu-img.
import { TransferError, writing } from '#shared/transfer/fault.ts';
import { type DiskReader, roundToSector } from '#shared/transfer/format/disk.ts';
import { type StructuredFormat, inspectDisk, isStructured, verifyDisk } from '#shared/transfer/format/inspect.ts';
import { type Pass, type PassResult, complete } from '#shared/transfer/pass.ts';
import { checkCapacity } from '#shared/transfer/plan.ts';
import { contentOf, verifiedDigests } from '#shared/transfer/published.ts';
import { type Inspection, archiveFormat } from '#shared/transfer/report.ts';
import { flushWhile } from '#shared/transfer/sink/flushing.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import { type Scratch, fileReader, withScratch } from '#shared/transfer/sink/file.ts';
import { createSparseWriter } from '#shared/transfer/sink/writer.ts';
import { checkQcow2, convertImage, requireQemuImg } from '#shared/transfer/tool/qemu-img.ts';

/** Limit of a valid image file: twice its disk, plus space for tables and snapshots. */
const mostFileBytes = (virtualSize: number): number => 2 * virtualSize + 1024 ** 3;

const download = async (pass: Pass, { file }: Scratch): Promise<number> => {
  const where = pass.spec.scratchDir;
  const limit = mostFileBytes(
    pass.plan.inspection.virtualSize ?? pass.spec.target?.capacityBytes ?? Number.MAX_SAFE_INTEGER,
  );
  const writer = createSparseWriter(file, where);
  let position = 0;
  try {
    for await (const chunk of contentOf(pass)) {
      pass.signal.throwIfAborted();
      if (position + chunk.length > limit) {
        throw new TransferError(
          'ImageTooLarge',
          `the image file has more than ${limit} bytes, far more than its disk needs`,
        );
      }
      await writer.write(chunk, position);
      position += chunk.length;
    }
  } finally {
    await writer.settle();
  }
  await writer.finish();
  await writing(where, () => file.truncate(position));
  return position;
};

const formatOf = ({ format }: Inspection): StructuredFormat => {
  if (format !== archiveFormat && isStructured(format)) return format;
  throw new TransferError('InternalFault', `${format} needs no scratch space`);
};

/** Downloads, verifies digests and reads the header again, now from the whole file. */
const fetchWhole = async (pass: Pass, scratch: Scratch) => {
  const size = await download(pass, scratch);
  const digests = verifiedDigests(pass);
  const reader = fileReader(scratch.file, size);
  const { virtualSize } = await inspectDisk(formatOf(pass.plan.inspection), reader);
  const inspection: Inspection & { readonly virtualSize: number } = {
    ...pass.plan.inspection,
    virtualSize: roundToSector(virtualSize),
  };
  return { digests, reader, inspection };
};

/** For `inspect`, if the header requires the whole file. */
export const measureScratch = (pass: Pass): Promise<PassResult> =>
  withScratch(pass.spec.scratchDir, async (scratch) => {
    const { digests, inspection } = await fetchWhole(pass, scratch);
    return { digests, inspection, writtenBytes: 0 };
  });

const proveStructure = async (
  format: StructuredFormat,
  reader: DiskReader,
  pass: Pass,
  path: string,
): Promise<void> => {
  if (format === 'qcow2') await checkQcow2(path, pass.signal);
  else await verifyDisk(format, reader);
};

/** The sink is prepared only after the whole image was verified. */
export const importScratch = async (pass: Pass, sink: Sink): Promise<PassResult> => {
  await requireQemuImg(pass.signal);
  return withScratch(pass.spec.scratchDir, async (scratch) => {
    const { digests, reader, inspection } = await fetchWhole(pass, scratch);
    const format = formatOf(inspection);
    await proveStructure(format, reader, pass, scratch.path);
    checkCapacity(inspection.virtualSize, sink.limitBytes);
    if (pass.plan.inspection.virtualSize === undefined) await pass.meter.inspected(inspection);
    pass.meter.enter('Converting', 95);
    await sink.prepare(inspection.virtualSize);
    const flusher = flushWhile(sink);
    try {
      await convertImage({
        path: scratch.path,
        format,
        target: sink.path,
        virtualSize: inspection.virtualSize,
        signal: pass.signal,
        onProgress: (fraction) => pass.meter.advance(fraction),
      });
    } finally {
      await flusher.stop();
    }
    pass.meter.enter('Verifying', 99);
    const writtenBytes = await sink.writtenBytes();
    await complete(pass, sink, inspection.virtualSize);
    return { digests, inspection, writtenBytes };
  });
};
