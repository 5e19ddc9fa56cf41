// What a file is sent into: an image or a DataVolume, made where it is missing.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Call, textOf } from './command.ts';
import { TimeIsOver } from '#cli/exchange/answer.ts';
import { type Line, countBytes } from './line.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { formatQuantity, parseQuantity } from '#shared/api/quantity.ts';
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import type { AnyImage } from '#shared/catalogue/image.ts';
import { ensureUploadImage, notForUploads } from '#shared/catalogue/ticket.ts';
import { lookAhead } from '#shared/exchange/upload/look-ahead.ts';
import { InvalidInput, messageOf, NotFound } from '#shared/runtime/errors.ts';

// The file of this machine that is to be sent: how large it and its disk are, and what it hashes to.

export interface LocalFile {
  readonly path: string;
  readonly size: number;
  /** Bytes of the disk in it, where its beginning tells. */
  readonly virtualSize: number | undefined;
}

export const lookAtFile = async (path: string): Promise<LocalFile> => {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw new InvalidInput('it is not a file');
    if (found.size === 0) throw new InvalidInput('it is empty');
    const { size } = found;
    const { inspection, stream } = await lookAhead(createReadStream(path), size);
    stream.destroy();
    return { path, size, virtualSize: inspection.virtualSize };
  } catch (error) {
    throw new InvalidInput(`${path} cannot be uploaded: ${messageOf(error)}`, [], { cause: error });
  }
};

export const digestOf = async ({ path, size }: LocalFile, line: Line, signal: AbortSignal): Promise<string> => {
  const hash = createHash('sha256');
  let read = 0;
  const bytes: AsyncIterable<Buffer> = createReadStream(path, { highWaterMark: 4 * 1024 * 1024, signal });
  for await (const chunk of bytes) {
    hash.update(chunk);
    read += chunk.length;
    countBytes(line, `checking ${path}`, read, size);
  }
  return hash.digest('hex');
};

/** The digest that the file must have, if the caller says one. */
export const expectedOf = ({ values }: Call): string | undefined => {
  const asked = textOf(values, 'checksum');
  if (asked === undefined) return undefined;
  const parsed = parseChecksum(asked, 'sha256');
  if ('problem' in parsed || parsed.value.algorithm !== 'sha256')
    throw new InvalidInput(`--checksum is sha256:<hex>, not ${asked}`);
  return parsed.value.hex;
};

export const requireSame = (expected: string | undefined, found: string): void => {
  if (expected === undefined || expected === found) return;
  const message = `sha256 of the file is ${found}, expected ${expected}`;
  throw new InvalidInput(message, [{ field: 'file', message }]);
};

export const diskBytesOf = ({ values }: Call, file: LocalFile): number | undefined => {
  const size = textOf(values, 'size');
  const bytes = size === undefined ? file.virtualSize : parseQuantity(size);
  if (size !== undefined && bytes === undefined)
    throw new InvalidInput(`--size is a quantity such as 20Gi, not ${size}`);
  return bytes;
};

export const needsSize = (file: LocalFile): InvalidInput =>
  new InvalidInput(`${file.path} says how large its disk is only once all of it was read: give the size with --size`);

/** Throws InvalidInput where one of the name is there that takes no upload. */
export const ensureImage = ({ kube, namespace, values }: Call, name: string): Promise<AnyImage> =>
  ensureUploadImage(kube, {
    name,
    namespace,
    storageClass: textOf(values, 'storage-class'),
    backend: textOf(values, 'backend'),
    displayName: textOf(values, 'display-name'),
  });

/** `undefined` where there is none, and `bytes`, which one would need, are not known. Throws InvalidInput as above. */
export const ensureVolume = async ({ kube, namespace, values }: Call, name: string, bytes: number | undefined) => {
  const { type } = dataVolumeKind;
  const found = await kube.get(type, { namespace, name });
  if (found !== undefined && found.spec.source?.upload === undefined) throw notForUploads(`datavolume ${name}`);
  if (found !== undefined || bytes === undefined) return found;
  const className = textOf(values, 'storage-class');
  const wanted: DataVolume = {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    // It is filled now, and nobody uses it before that.
    metadata: { name, namespace, annotations: { [cdiAnnotations.immediateBinding]: 'true' } },
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

/** Milliseconds between two looks at a volume that is being created. */
const pollMs = 500;

interface Awaited {
  readonly phases: readonly string[];
  readonly line: Line;
  readonly patienceMs: number | undefined;
}

/** Throws TimeIsOver. */
export const untilPhase = async (
  { kube, namespace, signal }: Call,
  name: string,
  { phases, line, patienceMs: most }: Awaited,
): Promise<DataVolume> => {
  const deadline = performance.now() + (most ?? Number.POSITIVE_INFINITY);
  for (;;) {
    const volume = await kube.get(dataVolumeKind.type, { namespace, name });
    if (volume === undefined) throw new NotFound(`datavolume ${name} was deleted meanwhile`);
    const { phase = 'Pending', conditions = [] } = volume.status ?? {};
    if (phases.includes(phase)) return volume;
    const message = conditions.find(({ type }) => type === 'Ready')?.message ?? '';
    line.show(`${name}: ${phase} ${message}`.trimEnd());
    if (performance.now() >= deadline) throw new TimeIsOver(`datavolume ${name} is still ${phase}: ${message}`);
    await sleep(pollMs, undefined, { signal });
  }
};
