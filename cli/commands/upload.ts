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
import { InvalidInput, NotFound, messageOf } from '#shared/runtime/errors.ts';

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

const digestOf = async ({ path, size }: LocalFile, line: Line, signal: AbortSignal): Promise<string> => {
  const hash = createHash('sha256');
  let read = 0;
  const bytes: AsyncIterable<Buffer> = createReadStream(path, { highWaterMark: 4 * 1024 * 1024, signal });
  for await (const chunk of bytes) {
    hash.update(chunk);
    read += chunk.length;
    line.count(`checking ${path}: ${String(Math.floor((100 * read) / size)).padStart(3)}%`);
  }
  return hash.digest('hex');
};

/** The digest that the file must have, if the caller says one. */
const expectedOf = ({ values }: Call): string | undefined => {
  const asked = textOf(values, 'checksum');
  if (asked === undefined) return undefined;
  const parsed = parseChecksum(asked, 'sha256');
  if ('problem' in parsed || parsed.value.algorithm !== 'sha256')
    throw new InvalidInput(`--checksum is sha256:<hex>, not ${asked}`);
  return parsed.value.hex;
};

const requireSame = (expected: string | undefined, found: string): void => {
  if (expected === undefined || expected === found) return;
  const message = `sha256 of the file is ${found}, expected ${expected}`;
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
    const volume = await kube.get(dataVolumeKind.type, { namespace, name });
    if (volume === undefined) throw new NotFound(`datavolume ${name} was deleted meanwhile`);
    const { phase = 'Pending', conditions = [] } = volume.status ?? {};
    if (phases.includes(phase)) return phase;
    line.show(`${name}: ${phase} ${conditions.find(({ type }) => type === 'Ready')?.message ?? ''}`.trimEnd());
    await sleep(lookMs, undefined, { signal });
  }
};

const uploadWith = async (call: Call, line: Line): Promise<ExitCode> => {
  const { kube, bearer, namespace, positionals, values, terminal, signal } = call;
  const [name = '', path = ''] = positionals;
  const isImage = kindOf(values) === 'image';
  const expected = expectedOf(call);
  const file = await lookAtFile(path);
  const diskBytes = diskBytesOf(call, file);
  // Said now: to read all of a large file takes minutes.
  if (isImage && diskBytes === undefined) throw needsSize(file);
  const hex = await digestOf(file, line, signal);
  requireSame(expected, hex);
  const target: TargetName = { plural: isImage ? 'virtualmachineimages' : 'datavolumes', namespace, name };
  const image = isImage ? await ensureImage(call, name) : undefined;
  if (!isImage) {
    if ((await ensureVolume(call, name, diskBytes)) === undefined) throw needsSize(file);
    await untilPhase(call, name, ['UploadReady', 'Succeeded', 'Failed'], line);
  }
  await sendFile({
    file: path,
    size: file.size,
    checksum: `sha256:${hex}`,
    virtualSize: diskBytes,
    signal,
    tries,
    getTicket: () => getTicket({ kube, bearer, operation: 'upload', target, server: textOf(values, 'server') }),
    onRetry: (why, seconds) => line.show(`${name}: ${why}; again in ${seconds} s`),
    onProgress: (sent) => {
      const share = String(Math.floor((100 * sent) / file.size)).padStart(3);
      line.count(`${name}: ${share}% ${formatBytes(sent)} of ${formatBytes(file.size)}`);
    },
  });
  if (image === undefined) {
    const phase = await untilPhase(call, name, ['Succeeded', 'Failed'], line);
    return phase === 'Succeeded' ? exitCodes.done : exitCodes.failed;
  }
  line.end();
  return waitUntilOver({ kube, terminal, signal }, { type: imageTypes.harvester, image });
};

const run = async (call: Call): Promise<ExitCode> => {
  if (kindOf(call.values) === 'claim')
    throw new InvalidInput('files go into an image or a datavolume: a claim alone takes none');
  const line = createLine(call.terminal);
  try {
    return await uploadWith(call, line);
  } finally {
    line.end();
  }
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
