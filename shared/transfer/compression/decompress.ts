// The uncompressed bytes of a stream, one decoder for each compression.
import type { Compression } from '#shared/transfer/format/detect.ts';
import { gunzip } from '#shared/transfer/compression/gzip.ts';
import { unxz } from '#shared/transfer/compression/xz.ts';
import { unzstd } from '#shared/transfer/compression/zstd.ts';

/** Throws what `input` throws, and TransferError: ImageTruncated, ImageCorrupt, UnsupportedFormat. */
export const decompress = (compression: Compression, input: AsyncIterable<Buffer>): AsyncIterable<Buffer> => {
  switch (compression) {
    case 'none':
      return input;
    case 'gz':
      return gunzip(input);
    case 'xz':
      return unxz(input);
    case 'zst':
      return unzstd(input);
  }
};
