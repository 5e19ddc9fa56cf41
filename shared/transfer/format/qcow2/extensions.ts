// Extensions of a qcow2 header: one after the other after its fixed part, up to the end of the first cluster.
import { type DiskReader, corrupt } from '#shared/transfer/format/disk.ts';

/** Fields of the header that the extensions must be consistent with. */
export interface ExtensionArea {
  readonly headerLength: number;
  readonly clusterSize: number;
  /** The header marks the bitmaps as consistent; otherwise their extension is ignored. */
  readonly hasBitmaps: boolean;
}

const types = { end: 0, backingFormat: 0xe279_2aca, encryption: 0x0537_be77, bitmaps: 0x2385_2875 } as const;
const maxBackingFormatBytes = 15;
const bitmapsBytes = 24;
/** Limits of qemu. */
const maxBitmaps = 65_535;
const maxDirectoryBytes = 1024 * maxBitmaps;
/** Real files have five. Each may require a request. */
const maxExtensions = 256;

/** Beyond the end of the file are zeroes, which end the list. */
const readPadded = async (reader: DiskReader, offset: number, length: number): Promise<Buffer> => {
  const bytes = await reader.read(offset, length);
  return bytes.length === length ? bytes : Buffer.concat([bytes], length);
};

const checkBitmaps = (content: Buffer, clusterSize: number): void => {
  const [count, reserved] = [content.readUInt32BE(0), content.readUInt32BE(4)];
  const [directoryBytes, directoryOffset] = [content.readBigUInt64BE(8), content.readBigUInt64BE(16)];
  const what = 'the bitmaps extension of the qcow2 header';
  if (reserved !== 0) throw corrupt(`${what} has ${reserved} in its reserved field`);
  if (count === 0 || count > maxBitmaps) throw corrupt(`${what} says there are ${count} bitmaps`);
  if (directoryOffset % BigInt(clusterSize) !== 0n)
    throw corrupt(`${what} has a directory at ${directoryOffset}, which is not aligned to clusters`);
  if (directoryBytes === 0n || directoryBytes > BigInt(maxDirectoryBytes))
    throw corrupt(`${what} has a directory of ${directoryBytes} bytes`);
};

/** Whether there are valid bitmaps. Throws ImageCorrupt. */
const checkOne = async (
  { clusterSize, hasBitmaps }: ExtensionArea,
  { type, length, at }: { readonly type: number; readonly length: number; readonly at: number },
  reader: DiskReader,
): Promise<boolean> => {
  if (type === types.encryption)
    throw corrupt('the qcow2 header has an extension for encryption, but says that nothing is encrypted');
  if (type === types.backingFormat && length > maxBackingFormatBytes)
    throw corrupt(`the backing format extension of the qcow2 header has ${length} bytes; names of formats are shorter`);
  if (type !== types.bitmaps) return false;
  if (length !== bitmapsBytes)
    throw corrupt(`the bitmaps extension of the qcow2 header has ${length} bytes; ${bitmapsBytes} are defined`);
  if (hasBitmaps) checkBitmaps(await readPadded(reader, at, bitmapsBytes), clusterSize);
  return hasBitmaps;
};

/** Whether the file has valid bitmaps. Throws ImageCorrupt for invalid extensions. */
export const readExtensions = async (area: ExtensionArea, reader: DiskReader): Promise<boolean> => {
  const { headerLength, clusterSize } = area;
  let hasBitmaps = false;
  let at = headerLength;
  for (let count = 0; at < clusterSize; count++) {
    // The position of the next one depends on the one before.
    const head = await readPadded(reader, at, 8);
    const [type, length] = [head.readUInt32BE(0), head.readUInt32BE(4)];
    at += head.length;
    if (count === maxExtensions) throw corrupt(`the qcow2 header has more than ${maxExtensions} extensions`);
    if (length > clusterSize - at) {
      const name = `0x${type.toString(16)}`;
      throw corrupt(`extension ${name} of the qcow2 header has ${length} bytes, and its area ${clusterSize - at}`);
    }
    if (type === types.end) break;
    hasBitmaps = (await checkOne(area, { type, length, at }, reader)) || hasBitmaps;
    at += Math.ceil(length / 8) * 8;
  }
  return hasBitmaps;
};
