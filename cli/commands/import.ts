// `bullion import` and `bullion retry`: starts an import, for the first time or again, and follows it to its end.
import { type Call, type ClusterCommand, type Values, exitCodes, textOf } from '#cli/command.ts';
import { type AnyImage, type ImageGroup, imageGroups, imageTypes, findImage } from '#cli/image.ts';
import { printImage } from '#cli/output.ts';
import { outputOption } from '#cli/output.ts';
import { type ImportSource, parseSource } from '#cli/target.ts';
import { timeoutOf, waitOptions, waitUntilOver } from '#cli/wait.ts';
import { backendNames } from '#shared/api/harvester/image.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import { annotations } from '#shared/api/names.ts';

type Spec = AnyImage['spec'];

const defined = (fields: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

const refuse = (values: Values, names: readonly string[], group: ImageGroup): void => {
  const given = names.find((name) => values[name] !== undefined);
  if (given !== undefined) throw new InvalidInput(`--${given} does not apply to a ${group} image`);
};

const hyperCloudSpec = (source: ImportSource, values: Values): Spec => {
  refuse(values, ['backend', 'display-name'], 'hypercloud');
  const size = textOf(values, 'size');
  if (size !== undefined && parseQuantity(size) === undefined)
    throw new InvalidInput(`--size is a quantity such as 20Gi, not ${size}`);
  return defined({
    source:
      source.type === 'http'
        ? { http: source.url }
        : { objectStore: { bucketName: source.bucket, objectName: source.key } },
    storageClassName: textOf(values, 'storage-class'),
    checksum: textOf(values, 'checksum'),
    pvc: size === undefined ? undefined : { resources: { requests: { storage: size } } },
  }) as Spec;
};

const harvesterSpec = (source: ImportSource, values: Values, name: string): Spec => {
  refuse(values, ['size'], 'harvester');
  if (source.type !== 'http') throw new InvalidInput('a harvester image is downloaded over http or https');
  return defined({
    displayName: textOf(values, 'display-name') ?? name,
    sourceType: 'download',
    url: source.url,
    backend: textOf(values, 'backend') ?? 'csi',
    checksum: textOf(values, 'checksum'),
    targetStorageClassName: textOf(values, 'storage-class'),
  }) as Spec;
};

/** The image object a command line asks for. Throws InvalidInput. */
export const imageOf = (name: string, namespace: string, place: string, values: Values): AnyImage => {
  const group = imageGroups.find((known) => known === textOf(values, 'group')) ?? 'hypercloud';
  const source = parseSource(place);
  const { kind, ...type } = imageTypes[group];
  const spec = group === 'harvester' ? harvesterSpec(source, values, name) : hyperCloudSpec(source, values);
  return { apiVersion: apiVersionOf(type), kind, metadata: { name, namespace }, spec };
};

const run = async (call: Call) => {
  const { kube, namespace, positionals, values, terminal, signal } = call;
  const [name = '', place = ''] = positionals;
  const timeoutMs = timeoutOf(values);
  const wanted = imageOf(name, namespace, place, values);
  const type = imageTypes[textOf(values, 'group') === 'harvester' ? 'harvester' : 'hypercloud'];
  const isDryRun = values['dry-run'] === true;
  const image = await kube.create(type, wanted, { dryRun: isDryRun });
  const onEnd = (made: AnyImage): void => printImage(call, made);
  if (isDryRun) terminal.err(`image ${name} would be made\n`);
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
  more: 'Ctrl-C ends the wait, not the import. With -o the image is printed as it is at the end.',
  options: {
    group: { type: 'string', value: 'GROUP', help: 'kind of image (hypercloud)', oneOf: imageGroups },
    'storage-class': { type: 'string', value: 'CLASS', help: 'storage class of the golden volume (the default class)' },
    size: { type: 'string', value: 'SIZE', help: 'size of the golden volume (that of the disk); hypercloud only' },
    checksum: { type: 'string', value: 'ALG:HEX', help: 'what the file must hash to, as sha256:… or sha512:…' },
    'display-name': { type: 'string', value: 'TEXT', help: 'free text (the name); harvester only' },
    backend: {
      type: 'string',
      value: 'BACKEND',
      help: 'how it is stored (csi); harvester only',
      oneOf: backendNames,
    },
    'dry-run': { type: 'boolean', help: 'only ask the cluster whether it would take the image' },
    ...waitOptions,
    ...outputOption,
  },
  run,
};

/** `bullion retry <image>`: starts a failed import again. */
const retry = async (call: Call) => {
  const { kube, namespace, positionals, values, terminal, signal } = call;
  const timeoutMs = timeoutOf(values);
  const found = await findImage(kube, namespace, positionals[0] ?? '');
  const { metadata, status } = found.image;
  if (status?.phase !== 'Failed') {
    const phase = status?.phase ?? 'Pending';
    terminal.err(
      `AnyImage ${metadata.name} has not failed, it is ${phase}: bullion why ${metadata.name} -n ${namespace}\n`,
    );
    return exitCodes.failed;
  }
  const value = terminal.now().toISOString();
  const key = { namespace: metadata.namespace, name: metadata.name };
  const patch = {
    metadata: { resourceVersion: metadata.resourceVersion, annotations: { [annotations.retry]: value } },
  };
  const image = await kube.mergePatch(found.type, key, patch);
  terminal.err(`AnyImage ${metadata.name} starts again.\n`);
  const onEnd = (made: AnyImage): void => printImage(call, made);
  if (values['no-wait'] === true) {
    onEnd(image);
    return exitCodes.done;
  }
  return waitUntilOver({ kube, terminal, signal, timeoutMs, retry: value, onEnd }, { ...found, image });
};

export const retryCommand: ClusterCommand = {
  name: 'retry',
  arguments: '<image>',
  summary: 'Starts a failed import again.',
  options: { ...waitOptions, ...outputOption },
  completes: 'images',
  run: retry,
};
