// `bullion upload <name> <file>`: makes an image or a volume and fills it with a file of this machine.
import { type Call, type ClusterCommand, type ExitCode, exitCodes, textOf } from '#cli/command.ts';
import { printImage } from '#cli/output.ts';
import { type Connection, openConnection, TimeIsOver } from '#cli/exchange/answer.ts';
import { sendFile } from '#cli/exchange/send.ts';
import { getTicket, resumableBackends } from '#shared/catalogue/ticket.ts';
import { type AnyImage, imageTypes } from '#shared/catalogue/image.ts';
import { type Line, countBytes, createLine } from '#cli/line.ts';
import { outputOf, outputOption, printedObject } from '#cli/output.ts';
import { kindOf, targetOptions } from '#cli/target.ts';
import {
  digestOf,
  diskBytesOf,
  ensureImage,
  ensureVolume,
  expectedOf,
  type LocalFile,
  lookAtFile,
  needsSize,
  requireSame,
  untilPhase,
} from '#cli/upload.ts';
import { timeoutOf, waitUntilOver } from '#cli/wait.ts';
import type { TargetName } from '#shared/exchange/target-name.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** Tries in a row that bring nothing. */
const tries = 8;

/** Milliseconds for a volume to take bytes, where --timeout does not say. */
const patienceMs = 300_000;

interface Work {
  readonly line: Line;
  readonly connection: Connection;
  readonly timeoutMs: number | undefined;
}

/** The image, or `undefined` for a volume, once it takes bytes. */
const ensureTarget = async (
  call: Call,
  name: string,
  file: LocalFile,
  { line, timeoutMs }: Work,
): Promise<AnyImage | undefined> => {
  if (kindOf(call.values) === 'image') return ensureImage(call, name);
  if ((await ensureVolume(call, name, diskBytesOf(call, file))) === undefined) throw needsSize(file);
  const phases = ['UploadReady', 'Succeeded', 'Failed'];
  await untilPhase(call, name, { phases, line, patienceMs: timeoutMs ?? patienceMs });
  return undefined;
};

const untilOver = async (
  call: Call,
  name: string,
  image: AnyImage | undefined,
  { line, timeoutMs }: Work,
): Promise<ExitCode> => {
  const { kube, terminal, signal, values } = call;
  if (image !== undefined) {
    line.end();
    const onEnd = (made: AnyImage): void => printImage(call, made);
    return waitUntilOver({ kube, terminal, signal, timeoutMs, onEnd }, { type: imageTypes.harvester, image });
  }
  const volume = await untilPhase(call, name, { phases: ['Succeeded', 'Failed'], line, patienceMs: timeoutMs });
  line.end();
  terminal.out(printedObject(volume, outputOf(values)) ?? '');
  return volume.status?.phase === 'Succeeded' ? exitCodes.done : exitCodes.failed;
};

const uploadWith = async (call: Call, work: Work): Promise<ExitCode> => {
  const { kube, bearer, namespace, positionals, values, signal } = call;
  const { line, connection } = work;
  const [name = '', path = ''] = positionals;
  const isImage = kindOf(values) === 'image';
  const expected = expectedOf(call);
  const file = await lookAtFile(path);
  const virtualSize = diskBytesOf(call, file);
  // Said now: to read all of a large file takes minutes.
  if (isImage && virtualSize === undefined) throw needsSize(file);
  const hex = await digestOf(file, line, signal);
  requireSame(expected, hex);
  const target: TargetName = { plural: isImage ? 'virtualmachineimages' : 'datavolumes', namespace, name };
  const image = await ensureTarget(call, name, file, work);
  await sendFile({
    file: path,
    size: file.size,
    checksum: `sha256:${hex}`,
    virtualSize,
    signal,
    tries,
    patienceMs: work.timeoutMs,
    connection,
    getTicket: () => getTicket({ kube, bearer, operation: 'upload', target, server: textOf(values, 'transfer-url') }),
    onRetry: (why, seconds) => line.show(`${name}: ${why}; retrying in ${seconds} s`),
    onProgress: (sent) => countBytes(line, `uploading ${name}`, sent, file.size),
  });
  return untilOver(call, name, image, work);
};

const run = async (call: Call): Promise<ExitCode> => {
  if (kindOf(call.values) === 'claim')
    throw new InvalidInput('files go into an image or a datavolume: a claim alone accepts no file');
  if (call.positionals[0]?.includes('/') === true)
    throw new InvalidInput(
      `${call.positionals[0]} is not a valid name: an upload goes into a harvester image, or --kind datavolume`,
    );
  const timeoutMs = timeoutOf(call.values);
  const line = createLine(call.terminal);
  const connection = await openConnection(call.values);
  try {
    return await uploadWith(call, { line, connection, timeoutMs });
  } catch (error) {
    line.end();
    if (!(error instanceof TimeIsOver)) throw error;
    call.terminal.err(`Timed out; ${error.message}\n`);
    return exitCodes.timedOut;
  } finally {
    line.end();
    await connection.close();
  }
};

export const uploadCommand: ClusterCommand = {
  name: 'upload',
  arguments: '<name> <file>',
  summary: 'Uploads a local disk image into an image or a volume, which is created if it does not exist.',
  more: 'The file is checked by its sha256. An interrupted upload resumes: run the same command again, here or on another machine.\n\n  bullion upload mine ./disk.qcow2 --storage-class local\n  bullion upload root ./disk.raw --kind datavolume',
  options: {
    ...targetOptions,
    'storage-class': { type: 'string', value: 'CLASS', help: 'storage class of the volume (the default class)' },
    backend: {
      type: 'string',
      value: 'BACKEND',
      help: 'storage backend of a new image (csi); backingimage accepts its file by POST only',
      oneOf: resumableBackends,
    },
    size: { type: 'string', value: 'SIZE', help: 'size of the disk, such as 20Gi (that in the file)' },
    checksum: {
      type: 'string',
      value: 'sha256:HEX',
      help: 'expected checksum of the file, verified before it is sent',
    },
    'display-name': { type: 'string', value: 'TEXT', help: 'free text (the name); images only' },
    timeout: { type: 'string', value: 'TIME', help: 'longest time without progress, such as 10m' },
    ...outputOption,
  },
  run,
};
