// A containerDisk in an OCI registry as a source: located by one request for the manifest, streamed by one for the layer.
import { z } from 'zod';
import type { ServedFrom } from '#shared/clients/http/served.ts';
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import { type Descriptor, type ImageManifest, selectPlatform } from '#shared/clients/registry/manifest.ts';
import { formatReference, type Reference } from '#shared/clients/registry/reference.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';
import { readWhole } from '#shared/runtime/read-bytes.ts';
import { type BackOffOptions, createBackOff, withBackOff } from '#shared/transfer/back-off.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { findDisk, type FoundDisk } from './disk.ts';
import { type Labels, labelsOfEnvironment } from './labels.ts';
import { blobBytes, type LayerContext, toTransferError } from './layer.ts';
import { type ByteSource, headBytes, type SourceFacts } from '#shared/transfer/source/source.ts';

const ImageConfig = z.looseObject({
  config: z.looseObject({ Env: z.array(z.string()).nullish() }).nullish(),
});

/** A larger configuration is ignored. */
const mostBytes = 1024 * 1024;

/** Labels of an image; empty if its configuration is missing or not that of an image. */
const readLabels = async (context: LayerContext, { config }: ImageManifest): Promise<Labels> => {
  if (config.size > mostBytes) return {};
  try {
    const bytes = await readWhole(blobBytes(context, config));
    return labelsOfEnvironment(parseJsonAs(ImageConfig, bytes.toString('utf8'))?.config?.Env ?? []);
  } catch (error) {
    if (error instanceof TransferError && error.code === 'SourceNotFound') return {};
    throw error;
  }
};

interface RegistrySourceOptions {
  readonly client: RegistryClient;
  readonly image: Reference;
  /** Name in registries: `amd64`, `arm64`. */
  readonly architecture: string;
  readonly retries: number;
  readonly signal: AbortSignal;
  readonly onRetry: (error: unknown, waitMs: number) => void;
  readonly wait?: BackOffOptions['wait'];
  readonly close: () => Promise<void>;
  readonly servedFrom?: ServedFrom | undefined;
}

/** A disk whose first bytes were read already. */
interface Opened {
  readonly disk: FoundDisk;
  readonly head: readonly Buffer[];
}

const readImage = async ({ client, image, architecture }: RegistrySourceOptions): Promise<ImageManifest> => {
  const where = formatReference(image);
  const manifest = await client.manifest(image);
  if (manifest.is === 'image') return manifest.image;
  const { digest } = selectPlatform(manifest.entries, architecture, where);
  const chosen = await client.manifest({ ...image, digest });
  if (chosen.is === 'image') return chosen.image;
  throw new TransferError('NotADiskImage', `${where} is an index of indexes; use an index of images`);
};

const open = async (context: LayerContext, layers: readonly Descriptor[]): Promise<Opened> => {
  const disk = await findDisk(context, layers);
  const head: Buffer[] = [];
  for (let got = 0; got < headBytes;) {
    const next = await disk.content.next();
    if (next.done === true) break;
    head.push(next.value);
    got += next.value.length;
  }
  return { disk, head };
};

const refuseRanges = (): Promise<never> =>
  Promise.reject(new TransferError('InternalFault', 'a file in a layer cannot be read in ranges'));

export const createRegistrySource = (options: RegistrySourceOptions): ByteSource => {
  let receivedBytes = 0;
  let layers: readonly Descriptor[] = [];
  let opened: Opened | undefined;
  const context: LayerContext = {
    client: options.client,
    image: options.image,
    createBackOff: () => createBackOff(options),
    received: (bytes) => {
      receivedBytes += bytes;
    },
  };
  const drop = async (): Promise<void> => {
    const before = opened;
    opened = undefined;
    await before?.disk.content.return();
  };
  return {
    probe: async (): Promise<SourceFacts> => {
      await drop();
      const found = await withBackOff(options, () => readImage(options), toTransferError);
      layers = found.layers;
      const labels = await readLabels(context, found);
      opened = await open(context, layers);
      const { disk } = opened;
      const head = Buffer.concat(opened.head).subarray(0, headBytes);
      const isWhole = disk.size <= head.length;
      return { size: disk.size, head, isWhole, hasRanges: false, isPinned: true, labels };
    },
    read: refuseRanges,
    readInto: refuseRanges,
    stream: async function* stream() {
      // The layer that the probe has opened is used further, so that its bytes are requested once.
      const { disk, head } = opened ?? (await open(context, layers));
      opened = undefined;
      try {
        yield* head;
        yield* disk.content;
      } finally {
        await disk.content.return();
      }
    },
    servedFrom: options.servedFrom,
    receivedBytes: () => receivedBytes,
    close: async () => {
      await drop();
      await options.close();
    },
  };
};
