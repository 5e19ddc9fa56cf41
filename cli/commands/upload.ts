// `bullion upload <name> <file>`: makes an image or a volume and fills it with a file of this machine.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Call, type ClusterCommand, type ExitCode, exitCodes, textOf } from '#cli/command.ts';
import { sendFile } from '#cli/exchange/send.ts';
import { getTicket } from '#cli/exchange/ticket.ts';
import { type Image, imageTypes } from '#cli/image.ts';
import { type Line, createLine } from '#cli/line.ts';
import { kindOf, targetOptions } from '#cli/target.ts';
import { waitUntilOver } from '#cli/wait.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { formatBytes, formatQuantity, parseQuantity } from '#shared/api/quantity.ts';
import { parseChecksum } from '#shared/backends/rules/checksum.ts';
import type { TargetName } from '#shared/exchange/target-name.ts';
import { lookAhead } from '#shared/exchange/upload/look-ahead.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';

/** Tries in a row that bring nothing. */
const tries = 8;

interface LocalFile {
  readonly path: string;
  readonly size: number;
  /** Bytes of the disk in it, where its beginning tells. */
  readonly virtualSize: number | undefined;
}

const lookAtFile = async (path: string): Promise<LocalFile> => {
  try {
    const { size } = await stat(path);
    const { inspection, stream } = await lookAhead(createReadStream(path), size);
    stream.destroy();
    return { path, size, virtualSize: inspection.virtualSize };
  } catch (error) {
    throw new InvalidInput(`${path} cannot be uploaded: ${messageOf(error)}`, [], { cause: error });
  }
};

const digestOf = async ({ path, size }: LocalFile, line: Line): Promise<string> => {
  const hash = createHash('sha256');
  let read = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 4 * 1024 * 1024 }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    read += chunk.length;
    line.count(`checking ${path}: ${String(Math.floor((100 * read) / size)).padStart(3)}%`);
  }
  return hash.digest('hex');
};

const requireSame = (asked: string | undefined, found: string): void => {
  if (asked === undefined) return;
  const parsed = parseChecksum(asked, 'sha256');
  if ('problem' in parsed || parsed.value.algorithm !== 'sha256')
    throw new InvalidInput(`--checksum is sha256:<hex>, not ${asked}`);
  if (parsed.value.hex === found) return;
  const message = `sha256 of the file is ${found}, expected ${parsed.value.hex}`;
  throw new InvalidInput(message, [{ field: 'file', message }]);
};

const diskBytesOf = ({ values }: Call, file: LocalFile): number | undefined => {
  const size = textOf(values, 'size');
  const bytes = size === undefined ? file.virtualSize : parseQuantity(size);
  if (size !== undefined && bytes === undefined)
    throw new InvalidInput(`--size is a quantity such as 20Gi, not ${size}`);
  return bytes;
};

const needsSize = (file: LocalFile): InvalidInput =>
  new InvalidInput(`${file.path} does not tell how large its disk is until all of it was read: say it with --size`);

const ensureImage = async ({ kube, namespace, values }: Call, name: string): Promise<Image> => {
  const className = textOf(values, 'storage-class');
  const wanted: Image = {
    apiVersion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImage',
    metadata: { name, namespace },
    spec: {
      backend: 'csi',
      displayName: textOf(values, 'display-name') ?? name,
      sourceType: 'upload',
      ...(className === undefined ? {} : { targetStorageClassName: className }),
    },
  };
  const type = imageTypes.harvester;
  return (await kube.get(type, { namespace, name })) ?? (await kube.create(type, wanted));
};

const ensureVolume = async ({ kube, namespace, values }: Call, name: string, bytes: number | undefined) => {
  const { type } = dataVolumeKind;
  const found = await kube.get(type, { namespace, name });
  if (found !== undefined || bytes === undefined) return found;
  const className = textOf(values, 'storage-class');
  const wanted: DataVolume = {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { name, namespace },
    spec: {
      source: { upload: {} },
      storage: {
        resources: { requests: { storage: formatQuantity(bytes) } },
        ...(className === undefined ? {} : { storageClassName: className }),
      },
    },
  };
  return kube.create(type, wanted);
};

/** Milliseconds between two looks at a volume that is being made. */
const lookMs = 500;

const untilPhase = async (
  { kube, namespace, signal }: Call,
  name: string,
  ...[phases, line]: [readonly string[], Line]
): Promise<string> => {
  for (;;) {
    const { phase = 'Pending', conditions = [] } =
      (await kube.get(dataVolumeKind.type, { namespace, name }))?.status ?? {};
    if (phases.includes(phase)) return phase;
    line.show(`${name}: ${phase} ${conditions.find(({ type }) => type === 'Ready')?.message ?? ''}`.trimEnd());
    await sleep(lookMs, undefined, { signal });
  }
};

const run = async (call: Call): Promise<ExitCode> => {
  const { kube, namespace, positionals, values, terminal, signal } = call;
  const [name = '', path = ''] = positionals;
  const kind = kindOf(values);
  if (kind === 'claim') throw new InvalidInput('files go into an image or a datavolume: a claim alone takes none');
  const file = await lookAtFile(path);
  const diskBytes = diskBytesOf(call, file);
  const line = createLine(terminal);
  const hex = await digestOf(file, line);
  requireSame(textOf(values, 'checksum'), hex);
  const isImage = kind === 'image';
  const target: TargetName = { plural: isImage ? 'virtualmachineimages' : 'datavolumes', namespace, name };
  const image = isImage ? await ensureImage(call, name) : undefined;
  if (isImage ? diskBytes === undefined : (await ensureVolume(call, name, diskBytes)) === undefined)
    throw needsSize(file);
  if (!isImage) await untilPhase(call, name, ['UploadReady', 'Succeeded', 'Failed'], line);
  await sendFile({
    file: path,
    size: file.size,
    checksum: `sha256:${hex}`,
    virtualSize: diskBytes,
    signal,
    tries,
    getTicket: () => getTicket({ kube, operation: 'upload', target, server: textOf(values, 'server') }),
    onRetry: (why, seconds) => line.show(`${name}: ${why}; again in ${seconds} s`),
    onProgress: (sent) => {
      const share = String(Math.floor((100 * sent) / file.size)).padStart(3);
      line.count(`${name}: ${share}% ${formatBytes(sent)} of ${formatBytes(file.size)}`);
    },
  });
  if (image === undefined) {
    const phase = await untilPhase(call, name, ['Succeeded', 'Failed'], line);
    line.end();
    return phase === 'Succeeded' ? exitCodes.done : exitCodes.failed;
  }
  line.end();
  return waitUntilOver({ kube, terminal, signal }, { type: imageTypes.harvester, image });
};

export const uploadCommand: ClusterCommand = {
  name: 'upload',
  arguments: '<name> <file>',
  summary: 'Uploads a disk image of this machine into an image or a volume, which is made where it is missing.',
  more: 'The file is checked by its sha256. What was cut is gone on with: start the same command again, here or elsewhere.',
  options: {
    ...targetOptions,
    'storage-class': { type: 'string', value: 'CLASS', help: 'storage class of the volume (the default class)' },
    size: { type: 'string', value: 'SIZE', help: 'bytes of the disk (what the file says)' },
    checksum: { type: 'string', value: 'sha256:HEX', help: 'what the file must hash to, checked before it is sent' },
    'display-name': { type: 'string', value: 'TEXT', help: 'free text (the name); images only' },
  },
  run,
};
