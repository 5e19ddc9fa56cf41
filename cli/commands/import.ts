// `bullion import` and `bullion retry`: starts an import, for the first time or again, and follows it to its end.
import { type Call, type ClusterCommand, type Values, exitCodes, textOf } from '#cli/command.ts';
import { type AnyImage, imageGroups, imageTypes, isImage, startAgain } from '#shared/catalogue/image.ts';
import { createNew } from '#cli/create.ts';
import { printImage, whyName } from '#cli/output.ts';
import { findAny } from '#shared/catalogue/objects.ts';
import { outputOption } from '#cli/output.ts';
import { imageFrom } from '#shared/catalogue/import.ts';
import { timeoutOf, waitOptions, waitUntilOver } from '#cli/wait.ts';
import { backendNames } from '#shared/api/harvester/image.ts';

/** The image object a command line asks for. Throws InvalidInput. */
export const imageOf = (name: string, namespace: string, place: string, values: Values): AnyImage =>
  imageFrom({
    name,
    namespace,
    place,
    group: imageGroups.find((known) => known === textOf(values, 'group')),
    storageClass: textOf(values, 'storage-class'),
    size: textOf(values, 'size'),
    checksum: textOf(values, 'checksum'),
    displayName: textOf(values, 'display-name'),
    backend: textOf(values, 'backend'),
  });

const run = async (call: Call) => {
  const { kube, namespace, positionals, values, terminal, signal } = call;
  const [name = '', place = ''] = positionals;
  const timeoutMs = timeoutOf(values);
  const wanted = imageOf(name, namespace, place, values);
  const type = imageTypes[textOf(values, 'group') === 'harvester' ? 'harvester' : 'hypercloud'];
  const isDryRun = values['dry-run'] === true;
  const at = `${name} -n ${namespace}`;
  const image = await createNew(kube, type, wanted, {
    what: `an image ${name}`,
    otherwise: `bullion why ${at} shows it; delete it (bullion delete ${at}), or take another name`,
    dryRun: isDryRun,
  });
  const onEnd = (made: AnyImage): void => printImage(call, made);
  if (isDryRun) terminal.err(`image ${name} would be created\n`);
  if (isDryRun || values['no-wait'] === true) {
    onEnd(image);
    return exitCodes.done;
  }
  return waitUntilOver({ kube, terminal, signal, timeoutMs, onEnd }, { type, image });
};

export const importCommand: ClusterCommand = {
  name: 'import',
  arguments: '<name> <source>',
  summary: 'Imports an image from http(s)://… or s3://bucket/key and shows progress.',
  more: 'Ctrl-C ends the wait, not the import. With -o the image is printed as it is at the end.\n\n  bullion import jammy https://images.example/jammy.img --storage-class local\n  bullion import jammy s3://vmimage/jammy.img --checksum sha256:…',
  options: {
    group: { type: 'string', value: 'GROUP', help: 'kind of image (hypercloud)', oneOf: imageGroups },
    'storage-class': { type: 'string', value: 'CLASS', help: 'storage class of the golden volume (the default class)' },
    size: { type: 'string', value: 'SIZE', help: 'size of the golden volume (that of the disk); hypercloud only' },
    checksum: { type: 'string', value: 'ALG:HEX', help: 'expected checksum of the file, as sha256:… or sha512:…' },
    'display-name': { type: 'string', value: 'TEXT', help: 'free text (the name); harvester only' },
    backend: {
      type: 'string',
      value: 'BACKEND',
      help: 'storage backend (csi); harvester only',
      oneOf: backendNames,
    },
    'dry-run': { type: 'boolean', help: 'only ask the cluster whether it would accept the image' },
    ...waitOptions,
    ...outputOption,
  },
  run,
};

/** `bullion retry <name>`: starts what failed again. */
const retry = async (call: Call) => {
  const { kube, namespace, positionals, values, terminal, signal } = call;
  const timeoutMs = timeoutOf(values);
  const found = await findAny(kube, namespace, positionals[0] ?? '');
  const { metadata, status } = found.image;
  const shown = isImage(found.type) ? `image ${metadata.name}` : whyName(found);
  const more = `bullion why ${isImage(found.type) ? metadata.name : shown} -n ${namespace}`;
  if (status?.phase !== 'Failed') {
    const phase = status?.phase ?? 'Pending';
    terminal.err(`${shown} has not failed, it is ${phase}: ${more}\n`);
    return exitCodes.failed;
  }
  const value = terminal.now().toISOString();
  const image = await startAgain(kube, found, value);
  if (!isImage(found.type)) {
    terminal.err(`${shown} starts again: ${more}\n`);
    return exitCodes.done;
  }
  terminal.err(`${shown} starts again.\n`);
  const onEnd = (made: AnyImage): void => printImage(call, made);
  if (values['no-wait'] === true) {
    onEnd(image);
    return exitCodes.done;
  }
  return waitUntilOver({ kube, terminal, signal, timeoutMs, retry: value, onEnd }, { ...found, image });
};

export const retryCommand: ClusterCommand = {
  name: 'retry',
  arguments: '<name>',
  summary: 'Retries a failed import, clone or export.',
  more: 'Of an image, shows progress until it is ready or has failed again. <kind>/<name> where several objects have the name.\n\n  bullion retry jammy\n  bullion retry datavolume/root -n vms',
  options: { ...waitOptions, ...outputOption },
  completes: 'all',
  run: retry,
};
