// The table of internal snapshots of a qcow2. They are not imported, but a file with an invalid table is not sound.
import { type DiskReader, corrupt } from '#shared/transfer/format/disk.ts';
import { type Qcow2Header, maxSnapshots } from '#shared/transfer/format/qcow2/header.ts';
import { TransferError } from '#shared/transfer/fault.ts';

const entryBytes = 40;
/** Limits of qemu. */
const maxExtraBytes = 1024;
const maxTableBytes = 1024 * maxSnapshots;
/** Entries are small: one read covers many. */
const windowBytes = 256 * 1024;

/** Throws ImageCorrupt or ImageTruncated, with the number of the entry. */
export const checkSnapshots = async (header: Qcow2Header, reader: DiskReader): Promise<void> => {
  const { snapshots, snapshotsOffset } = header;
  let window: { readonly at: number; readonly bytes: Buffer } = { at: snapshotsOffset, bytes: Buffer.alloc(0) };
  let at = snapshotsOffset;
  for (let index = 0; index < snapshots; index++) {
    if (at + entryBytes > window.at + window.bytes.length) {
      // The position of the next entry depends on the one before.
      // oxlint-disable-next-line no-await-in-loop
      window = { at, bytes: await reader.read(at, windowBytes) };
    }
    const entry = window.bytes.subarray(at - window.at, at - window.at + entryBytes);
    if (entry.length < entryBytes) {
      const where = `entry ${index} of the qcow2 snapshot table at ${snapshotsOffset}`;
      throw new TransferError('ImageTruncated', `${where} lies beyond the end of the file`);
    }
    const extra = entry.readUInt32BE(36);
    if (extra > maxExtraBytes) {
      const limit = `${maxExtraBytes} are allowed; remove them with qemu-img check -r all`;
      throw corrupt(`entry ${index} of the qcow2 snapshot table has ${extra} bytes of extra data; ${limit}`);
    }
    const length = entryBytes + extra + entry.readUInt16BE(12) + entry.readUInt16BE(14);
    at += Math.ceil(length / 8) * 8;
    if (at - snapshotsOffset > maxTableBytes) throw corrupt('the qcow2 snapshot table is larger than any real one');
  }
};
