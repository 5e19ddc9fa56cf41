// The layer of a containerDisk: a tar archive with one file below /disk, as KubeVirt mounts it. Pure.
import { directoryHead, endBytes, fileHead, paddingOf } from '#shared/transfer/archive/tar-write.ts';

/** QEMU's user and group, as KubeVirt expects them. */
const owner = 107;

/** What surrounds the file: a directory, and for large files an entry with its size. */
export const layerAround = (name: string, size: number): { readonly head: Buffer; readonly tail: Buffer } => ({
  head: Buffer.concat([
    directoryHead({ name: 'disk/', mode: 0o555, owner }),
    fileHead({ name: `disk/${name}`, size, mode: 0o440, owner }),
  ]),
  tail: Buffer.alloc(paddingOf(size) + endBytes),
});
