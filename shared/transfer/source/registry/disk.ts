// The disk of a containerDisk: the file under /disk/ of the uppermost layer that has one.
import type { Descriptor } from '#shared/clients/registry/manifest.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { type LayerContext, layerContent } from '#shared/transfer/source/registry/layer.ts';
import { type TarEntry, readTar } from '#shared/transfer/archive/tar.ts';

const folder = 'disk';
const whiteout = '.wh.';
const opaque = '.wh..wh..opq';

/** A disk whose content was not read yet. */
export interface FoundDisk {
  /** Path in the image. */
  readonly name: string;
  readonly size: number;
  /** Its bytes; before the end, the rest of the layer is read to detect another disk in it, or a wrong digest. */
  readonly content: AsyncGenerator<Buffer, void, undefined>;
}

type Role = 'disk' | 'opaque' | 'removed' | 'other';

/** The role of a layer's entry in the search. Throws TransferError for entries that must not be followed. */
const roleOf = ({ name, kind }: TarEntry): Role => {
  if (name === `${whiteout}${folder}` || name === `${folder}/${opaque}` || name === opaque) return 'opaque';
  const [first, file, ...deeper] = name.split('/');
  if (first !== folder || deeper.length > 0) return 'other';
  if (file === undefined) {
    if (kind !== 'directory') throw unusable(name, kind);
    return 'other';
  }
  if (file.startsWith(whiteout)) return 'removed';
  if (kind === 'directory') return 'other';
  if (kind !== 'file') throw unusable(name, kind);
  return 'disk';
};

const unusable = (name: string, kind: string): TransferError =>
  new TransferError(
    'UnsupportedFormat',
    `/${name} in the image is ${kind}; the disk must be a plain file in /${folder}/`,
  );

const several = ([name, other]: readonly [string, string]): TransferError =>
  new TransferError(
    'NotADiskImage',
    name === other
      ? `a layer of the image has /${name} twice; build the image again, with one`
      : `the image has several files in /${folder}/ (/${name}, /${other}); it must have one`,
  );

/** Files removed by upper layers. */
interface Hidden {
  readonly names: Set<string>;
  /** Characters in them. */
  length: number;
  everything: boolean;
}

const tooMany = ({ digest }: Descriptor): TransferError =>
  new TransferError(
    'UnsupportedFormat',
    `layer ${digest} removes too many files from /${folder}/; build the image again, in one layer`,
  );

/** Characters in the names of all files that the layers of an image remove from /disk/: they are held until its disk is found. */
const mostRemoved = 256 * 1024;

const removedName = (name: string): string => name.replace(`/${whiteout}`, '/');

async function* diskContent(
  entry: TarEntry,
  rest: AsyncGenerator<TarEntry, void, undefined>,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* entry.content;
    for await (const other of rest) if (roleOf(other) === 'disk') throw several([entry.name, other.name]);
  } finally {
    await rest.return();
  }
}

/** The disk in one layer, or the files that the layer hides. */
const searchLayer = async (
  context: LayerContext,
  layer: Descriptor,
  hidden: Hidden,
): Promise<FoundDisk | undefined> => {
  const entries = readTar(layerContent(context, layer));
  const removed: string[] = [];
  let isOpaque = false;
  for (;;) {
    const next = await entries.next();
    if (next.done === true) break;
    const role = roleOf(next.value);
    isOpaque ||= role === 'opaque';
    if (role === 'removed') {
      removed.push(removedName(next.value.name));
      hidden.length += next.value.name.length;
      if (hidden.length > mostRemoved) throw tooMany(layer);
    }
    if (role === 'disk' && !hidden.names.has(next.value.name)) {
      const { name, size } = next.value;
      return { name, size, content: diskContent(next.value, entries) };
    }
  }
  hidden.everything ||= isOpaque;
  for (const name of removed) hidden.names.add(name);
  return undefined;
};

/**
 * Layers are ordered from lowest to uppermost, as in a manifest. The search stops at the first disk: another one in a lower layer is ignored,
 * because upper layers take precedence. Throws TransferError.
 */
export const findDisk = async (context: LayerContext, layers: readonly Descriptor[]): Promise<FoundDisk> => {
  const hidden: Hidden = { names: new Set(), length: 0, everything: false };
  for (const layer of layers.toReversed()) {
    if (hidden.everything) break;
    // Sequential: each layer decides whether the next one is needed.
    const disk = await searchLayer(context, layer, hidden);
    if (disk !== undefined) return disk;
  }
  throw new TransferError('NotADiskImage', `the image has no file in /${folder}/: it is not a containerDisk`);
};
