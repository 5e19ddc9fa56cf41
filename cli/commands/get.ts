// `bullion get [kind]`: what Bullion serves, of every kind or of one, in one table.
import { type Call, type ClusterCommand, exitCodes } from '#cli/command.ts';
import { type Found, imageTypes } from '#cli/image.ts';
import { listIfAny, namesOf, otherTypes, withDetail } from '#cli/objects.ts';
import { objectTable, outputOf, outputOption, printedList } from '#cli/output.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

const types: readonly Found['type'][] = [
  ...Object.values(imageTypes),
  ...otherTypes.filter(({ kind }) => kind !== 'PersistentVolumeClaim'),
];

/** Two groups have images of one plural: whoever asks for them gets both. */
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

const run = async ({ kube, namespace, positionals, values, terminal }: Call) => {
  const isEverywhere = values['all-namespaces'] === true;
  const where = isEverywhere ? undefined : namespace;
  const lists = await Promise.all(
    typesOf(positionals[0]).map(async (type): Promise<readonly Found[]> => {
      const objects = await listIfAny(kube, type, where);
      return objects.map((image) => ({ type, image })).toSorted((a, b) => orderOf(a).localeCompare(orderOf(b)));
    }),
  );
  const found = lists.flat();
  const format = outputOf(values);
  const objects = found.map(({ image }) => image);
  const printed = printedList(objects, format);
  if (printed !== undefined) terminal.out(printed);
  else if (found.length === 0) terminal.err(`There is nothing${isEverywhere ? '' : ` in namespace ${namespace}`}.\n`);
  else {
    const shown = found.map(({ type, image }) => ({ type, image: withDetail(image) }));
    terminal.out(objectTable(shown, { isEverywhere, isWide: format === 'wide', now: terminal.now() }));
  }
  return exitCodes.done;
};

export const getCommand: ClusterCommand = {
  name: 'get',
  arguments: '[kind]',
  summary: 'Lists what Bullion serves: every kind, or one.',
  more: 'Kinds go by the names that kubectl takes: datavolumes or dv, dataimportcrons or dic, datasources or das, images for those of both groups.',
  options: {
    'all-namespaces': { type: 'boolean', short: 'A', help: 'of every namespace' },
    ...outputOption,
  },
  completes: ['images', ...new Set(types.map(({ plural }) => plural))],
  run,
};
