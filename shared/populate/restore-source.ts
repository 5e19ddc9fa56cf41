// The annotation on an image that describes the backup it is restored from. Written by the restore, read by the dialects of images.
import { z } from 'zod';
import { annotations } from '#shared/api/names.ts';
import type { Source } from '#shared/populate/source.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

export const RestoreMark = z.object({
  /** Location of the disk. Default: the storage itself restores it. */
  from: z
    .discriminatedUnion('type', [
      z.object({
        type: z.literal('s3'),
        endpoint: z.url({ protocol: /^https?$/ }),
        region: z.string(),
        bucket: z.string(),
        key: z.string(),
        pathStyle: z.boolean(),
        secretName: z.string().optional(),
        caBundle: z.string().optional(),
      }),
      z.object({ type: z.literal('nfs'), server: z.string(), path: z.string(), key: z.string() }),
    ])
    .optional(),
  /** Target, object and image it was restored from, for the report of its deletion. */
  target: z.string(),
  object: z.string(),
  uid: z.string(),
  /** Former name of the golden volume, so that references to it stay valid. */
  volume: z.string().optional(),
});
export type RestoreMark = z.infer<typeof RestoreMark>;

export type Restored =
  | { readonly is: 'not' }
  | { readonly is: 'restored'; readonly mark: RestoreMark }
  | { readonly is: 'unreadable'; readonly field: string };

export const toRestoreText = (mark: RestoreMark): string => JSON.stringify(mark);

const field = `metadata.annotations[${annotations.restore}]`;

export const readRestored = (marks: Readonly<Record<string, string>> | undefined): Restored => {
  const text = marks?.[annotations.restore];
  if (text === undefined) return { is: 'not' };
  const mark = parseJsonAs(RestoreMark, text);
  return mark === undefined ? { is: 'unreadable', field } : { is: 'restored', mark };
};

/** Location of the disk of a restored image; `undefined` for other images, and if the storage itself restores it. */
export const restoredFrom = (restored: Restored): Source<'s3' | 'nfs'> | undefined =>
  restored.is === 'restored' ? restored.mark.from : undefined;
