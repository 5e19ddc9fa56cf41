// `bullion get [kind]`: what Bullion serves, of every kind or of one, in one table; with `-w` also each change from then on.
import { type Call, type ClusterCommand, type Values, exitCodes } from '#cli/command.ts';
import { type AnyImage, type Found, imageTypes } from '#shared/catalogue/image.ts';
import { namesOf, otherTypes, readAll, withDetail } from '#shared/catalogue/objects.ts';
import {
  customTable,
  listOutputOption,
  objectTable,
  outputOf,
  printedList,
  printedObject,
  screenOf,
} from '#cli/output.ts';
import { paintOn } from '#cli/paint.ts';
import { runStream } from '#events/forward/stream.ts';
import { sleep } from '#events/sender.ts';
import { type LeftOut, leftOutWords, nameOf } from '#shared/catalogue/inventory.ts';
import { deprecationOfImage } from '#shared/golden/rollout/deprecation.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';

const types: readonly Found['type'][] = [
  ...Object.values(imageTypes),
  ...otherTypes.filter(({ kind }) => kind !== 'PersistentVolumeClaim'),
];

/** The images of both groups have the same plural: asking for it lists both. */
const typesOf = (kind: string | undefined): readonly Found['type'][] => {
  if (kind === undefined || kind === 'all') return types;
  if (kind === 'images' || kind === 'image') return Object.values(imageTypes);
  const asked = types.filter((type) => namesOf(type).includes(kind.toLowerCase()));
  if (asked.length > 0) return asked;
  const known = [...new Set(types.map(({ plural }) => plural))].join(', ');
  throw new InvalidInput(
    `${kind} is not a kind that Bullion serves: write images, ${known}, or one of their short names`,
  );
};

const orderOf = ({ metadata }: AnyImage): string => `${metadata.namespace}/${metadata.name}`;
const byName = (a: AnyImage, b: AnyImage): number => orderOf(a).localeCompare(orderOf(b));

/** Objects of a table that decide how wide its columns are. */
const alignedWith = 100;

interface Watched {
  readonly types: readonly Found['type'][];
  /** What was printed already. */
  readonly shown: readonly Found[];
  readonly where: string | undefined;
}

/** Nobody is offered what disks should not be made from any more. */
const isListed = (values: Values, image: AnyImage): boolean =>
  values['deprecated'] === true || deprecationOfImage(image) === undefined;

const customLine = (values: Values, object: AnyImage): string | undefined =>
  customTable(values, [object])?.replace(/^.*\n/, '');

/** A line for each change until Ctrl-C, across connections that end. */
const watchOn = async ({ kube, values, terminal, signal }: Call, { types, shown, where }: Watched) => {
  const format = outputOf(values);
  const versions = new Map(shown.map(({ image: { metadata } }) => [metadata.uid, metadata.resourceVersion]));
  const aligned = shown.slice(0, alignedWith);
  const lineOf = (found: Found): string => {
    const options = {
      isEverywhere: where === undefined,
      isWide: format === 'wide',
      now: terminal.now(),
      most: screenOf({ values, terminal }),
      paint: paintOn(terminal),
    };
    const [heading = '', ...lines] = objectTable([...aligned, found], options).split('\n');
    const line = `${lines.at(-2) ?? ''}\n`;
    const isFirst = aligned.length === 0;
    if (aligned.length < alignedWith) aligned.push(found);
    return isFirst ? `${heading}\n${line}` : line;
  };
  const show = (type: Found['type'], object: AnyImage, isDeleted: boolean): void => {
    const { uid, resourceVersion } = object.metadata;
    if ((!isDeleted && versions.get(uid) === resourceVersion) || !isListed(values, object)) return;
    versions.set(uid, resourceVersion);
    const image = isDeleted ? { ...object, status: { ...object.status, phase: 'Deleted' } } : withDetail(object);
    terminal.out(customLine(values, object) ?? printedObject(object, format) ?? lineOf({ type, image }));
  };
  const follow = (type: Found['type']): Promise<void> =>
    runStream({
      client: kube,
      type,
      namespace: where,
      replay: 'add',
      onChange: async (verb, object) => show(type, object as AnyImage, verb === 'delete'),
      onReady: () => undefined,
      log: { ...silentLogger, warn: () => terminal.err(`the watch of ${type.plural} was interrupted: resuming\n`) },
      sleep,
      signal,
    });
  await Promise.all(types.map(follow));
  return exitCodes.interrupted;
};

const deniedText = (denied: readonly LeftOut[], where: string | undefined): string => {
  const place = where === undefined ? 'in all namespaces: -n NAMESPACE lists one, without -A' : `in namespace ${where}`;
  return `Your account has no right to list ${leftOutWords(denied)} ${place}\n`;
};

const run = async (call: Call) => {
  const { kube, namespace, positionals, values, terminal } = call;
  const where = values['all-namespaces'] === true ? undefined : namespace;
  const isWatching = values['watch'] === true;
  const reads = await Promise.all(
    typesOf(positionals[0]).map(async (type) => ({ type, read: await readAll(kube, type, { namespace: where }) })),
  );
  const all = reads.flatMap(({ type, read }): readonly Found[] =>
    read.is === 'read' ? read.items.toSorted(byName).map((image) => ({ type, image })) : [],
  );
  const found = all.filter(({ image }) => isListed(values, image));
  if (found.length < all.length)
    terminal.err(`${all.length - found.length} deprecated or obsolete not listed: --deprecated lists them as well\n`);
  const denied = reads.flatMap(({ type, read }) => (read.is === 'denied' ? [{ kind: nameOf(type) }] : []));
  if (denied.length > 0) terminal.err(deniedText(denied, where));
  const format = outputOf(values);
  const objects = found.map(({ image }) => image);
  const shown = found.map(({ type, image }) => ({ type, image: withDetail(image) }));
  const printed = customTable(values, objects) ?? printedList(objects, format);
  if (printed !== undefined) terminal.out(printed);
  else if (shown.length > 0) {
    const options = {
      isEverywhere: where === undefined,
      isWide: format === 'wide',
      now: terminal.now(),
      most: screenOf({ values, terminal }),
      paint: paintOn(terminal),
    };
    terminal.out(objectTable(shown, options));
  } else if (denied.length === 0 && !isWatching) {
    terminal.err(`No objects found${where === undefined ? '' : ` in namespace ${namespace}`}.\n`);
  }
  if (!isWatching) return denied.length === 0 ? exitCodes.done : exitCodes.failed;
  // What may be listed may be watched.
  const types = reads.flatMap(({ type, read }) => (read.is === 'read' ? type : []));
  return watchOn(call, { types, shown, where });
};

export const getCommand: ClusterCommand = {
  name: 'get',
  arguments: '[kind]',
  summary: 'Lists what Bullion serves: every kind, or one.',
  more: 'Kinds go by the names that kubectl takes: datavolumes or dv, dataimportcrons or dic, datasources or das, images for those of both groups.\n\n  bullion get -A\n  bullion get dv -w\n  bullion get das -o custom-columns=NAME:.metadata.name,VERSION:.spec.source.pvc.name',
  options: {
    'all-namespaces': { type: 'boolean', short: 'A', help: 'of every namespace' },
    deprecated: { type: 'boolean', help: 'also DataSources and images that are deprecated or obsolete' },
    watch: { type: 'boolean', short: 'w', help: 'then print each change, until Ctrl-C' },
    ...listOutputOption,
  },
  completes: ['images', ...new Set(types.map(({ plural }) => plural))],
  run,
};

/** The kind that people ask for most by its name. */
export const dataSourcesCommand: ClusterCommand = {
  ...getCommand,
  name: 'datasources',
  arguments: '',
  summary: 'Lists DataSources: what each golden image offers now.',
  more: '  bullion datasources -n golden-images',
  completes: [],
  run: (call) => run({ ...call, positionals: ['datasources'] }),
};
