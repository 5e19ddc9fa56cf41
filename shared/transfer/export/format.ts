// Formats of an export, and their properties.
import { z } from 'zod';
import type { Packer } from '#shared/transfer/export/message.ts';

/** `zlib` and `zstd` compress the clusters of a qcow2; `gz` and `zst` are for raw disks. */
export const exportCompressions = ['none', 'zlib', 'zstd', 'gz', 'zst'] as const satisfies readonly Packer[];

export const ExportFormat = z
  .object({
    format: z.enum(['qcow2', 'raw']),
    compression: z.enum(exportCompressions).default('none'),
    /** 1 (fast) to 9 (small) for zlib and gz, 1 to 19 for zstd and zst. Default: 1, or 3 for zstd. */
    level: z.number().int().min(1).max(19).optional(),
  })
  .superRefine(({ format, compression, level = 1 }, context) => {
    const fits = compression === 'none' || (format === 'qcow2') === (compression === 'zlib' || compression === 'zstd');
    if (!fits) context.addIssue({ code: 'custom', path: ['compression'], message: `is not one of a ${format} export` });
    if (level > 9 && (compression === 'zlib' || compression === 'gz'))
      context.addIssue({ code: 'custom', path: ['level'], message: 'is 1 to 9 for zlib and gz' });
  });
export type ExportFormat = z.infer<typeof ExportFormat>;

export const levelOf = ({ compression, level }: ExportFormat): number =>
  level ?? (compression === 'zstd' || compression === 'zst' ? 3 : 1);

export const fileKindOf = ({ format, compression }: ExportFormat) => {
  if (format === 'qcow2') return { extension: 'qcow2', contentType: 'application/x-qemu-disk' } as const;
  if (compression === 'gz') return { extension: 'raw.gz', contentType: 'application/gzip' } as const;
  if (compression === 'zst') return { extension: 'raw.zst', contentType: 'application/zstd' } as const;
  return { extension: 'raw', contentType: 'application/octet-stream' } as const;
};
