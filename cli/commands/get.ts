// `bullion get [kind]`: what Bullion serves, of every kind or of one, in one table.
import { type Call, type ClusterCommand, exitCodes } from '#cli/command.ts';
import { type Found, imageTypes } from '#shared/catalogue/image.ts';
import { namesOf, otherTypes, readAll, withDetail } from '#shared/catalogue/objects.ts';
import { objectTable, outputOf, outputOption, printedList } from '#cli/output.ts';
import { deprecationIn } from '#shared/golden/rollout/deprecation.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

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
    `${kind} is not a kind that Bullion serves: write images, ${known}, or a short name of theirs`,
  );
};

const orderOf = ({ image: { metadata } }: Found): string => `${metadata.namespace}/${metadata.name}`;
const byName = (a: Found, b: Found): number => orderOf(a).localeCompare(orderOf(b));

const run = async ({ kube, namespace, positionals, values, terminal }: Call) => {
  const isEverywhere = values['all-namespaces'] === true;
  const where = isEverywhere ? undefined : namespace;
  const reads = await Promise.all(
    typesOf(positionals[0]).map(async (type) => ({ type, read: await readAll(kube, type, { namespace: where }) })),
  );
  const all = reads.flatMap(({ type, read }): readonly Found[] =>
    read.is === 'read' ? read.items.map((image) => ({ type, image })).toSorted(byName) : [],
  );
  // Nobody is offered what disks should not be made from any more.
  const found = values['deprecated'] === true ? all : all.filter(({ image }) => deprecationIn(image) === undefined);
  if (found.length < all.length)
    terminal.err(`${all.length - found.length} deprecated or obsolete not listed: --deprecated lists them as well\n`);
  const denied = reads.flatMap(({ read }) => (read.is === 'denied' ? read.message : []));
  for (const message of denied) terminal.err(`not listed: ${message}\n`);
  const format = outputOf(values);
  const objects = found.map(({ image }) => image);
  const printed = printedList(objects, format);
  if (printed !== undefined) terminal.out(printed);
  else if (found.length > 0) {
    const shown = found.map(({ type, image }) => ({ type, image: withDetail(image) }));
    terminal.out(objectTable(shown, { isEverywhere, isWide: format === 'wide', now: terminal.now() }));
  } else if (denied.length === 0) {
    terminal.err(`No objects found${isEverywhere ? '' : ` in namespace ${namespace}`}.\n`);
  }
  return denied.length === 0 ? exitCodes.done : exitCodes.failed;
};

export const getCommand: ClusterCommand = {
  name: 'get',
  arguments: '[kind]',
  summary: 'Lists what Bullion serves: every kind, or one.',
  more: 'Kinds go by the names that kubectl takes: datavolumes or dv, dataimportcrons or dic, datasources or das, images for those of both groups.',
  options: {
    'all-namespaces': { type: 'boolean', short: 'A', help: 'of every namespace' },
    deprecated: { type: 'boolean', help: 'also DataSources that are deprecated or obsolete' },
    ...outputOption,
  },
  completes: ['images', ...new Set(types.map(({ plural }) => plural))],
  run,
};
