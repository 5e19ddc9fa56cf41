// The disk of an image of a bundle, as a stream: as its file was before it became a layer.
import { Readable } from 'node:stream';
import type { ReadBundle } from '#cli/bundle/check.ts';
import { inBundle } from '#cli/bundle/client.ts';
import type { BundledImage } from '#cli/bundle/layout.ts';
import { createBackOff } from '#shared/transfer/back-off.ts';
import { findDisk } from '#shared/transfer/source/registry/disk.ts';

/** What was compared before; it is read again, since no disk is held in memory. */
export async function* diskBytes(
  { client, manifests }: ReadBundle,
  { digest }: BundledImage,
  { from, signal }: { readonly from: number; readonly signal: AbortSignal },
): AsyncGenerator<Buffer, void, undefined> {
  const manifest = manifests.get(digest);
  const layers = manifest?.is === 'image' ? manifest.image.layers : [];
  const createOwn = () => createBackOff({ retries: 0, signal, onRetry: () => undefined });
  const found = await findDisk({ client, image: inBundle, createBackOff: createOwn, received: () => {} }, layers);
  let skip = from;
  try {
    for await (const part of found.content) {
      signal.throwIfAborted();
      const fresh = part.subarray(Math.min(skip, part.length));
      skip -= part.length - fresh.length;
      if (fresh.length > 0) yield fresh;
    }
  } finally {
    await found.content.return();
  }
}

export const diskStream = (bundle: ReadBundle, image: BundledImage, from: number, signal: AbortSignal): Readable =>
  Readable.from(diskBytes(bundle, image, { from, signal }), { objectMode: false });

/** `disk.qcow2` for `disk/disk.qcow2`. */
export const fileNameOf = ({ disk }: BundledImage): string => disk?.file.split('/').at(-1) ?? 'disk';
