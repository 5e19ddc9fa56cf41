// What an annotation on an image says of the backup it is made from. Written by who restores, read by the dialects of images.
import { z } from 'zod';
import { annotations } from '#shared/api/names.ts';
import type { Source } from '#shared/populate/source.ts';

export const RestoreMark = z.object({
  /** Where the disk is; left out where the storage itself restores it. */
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
  /** Target, object and image that it was restored from: what its deletion is told of. */
  target: z.string(),
  object: z.string(),
  uid: z.string(),
  /** Name that the golden volume had: what refers to it goes on doing so. */
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
  try {
    return { is: 'restored', mark: RestoreMark.parse(JSON.parse(text)) };
  } catch {
    return { is: 'unreadable', field };
  }
};

/** Where the disk of a restored image is; `undefined` for others, and where the storage itself restores it. */
export const restoredFrom = (restored: Restored): Source<'s3' | 'nfs'> | undefined =>
  restored.is === 'restored' ? restored.mark.from : undefined;
