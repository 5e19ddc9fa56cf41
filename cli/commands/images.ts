// `bullion images`: every image, whatever its group, in one table.
import { type Call, type ClusterCommand, exitCodes } from '#cli/command.ts';
import { type Found, groupOf, listImages, readyOf } from '#cli/image.ts';
import { outputOf, outputOption, printedList } from '#cli/output.ts';
import { tableOf } from '#cli/table.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { toAge } from '#shared/runtime/age.ts';

const bytes = (size: number | undefined): string | undefined => (size === undefined ? undefined : formatBytes(size));

interface Column {
  readonly heading: string;
  readonly cell: (found: Found, now: Date) => string | number | undefined;
}

const namespaceColumn: Column = { heading: 'NAMESPACE', cell: ({ image }) => image.metadata.namespace };
const columns: readonly Column[] = [
  { heading: 'NAME', cell: ({ image }) => image.metadata.name },
  { heading: 'GROUP', cell: groupOf },
  { heading: 'READY', cell: (found) => readyOf(found)?.status ?? 'False' },
  { heading: 'PHASE', cell: ({ image }) => image.status?.phase },
  {
    heading: 'PROGRESS',
    cell: ({ image: { status } }) => (status?.progress === undefined ? '' : `${status.progress}%`),
  },
  { heading: 'VIRTUAL SIZE', cell: ({ image }) => bytes(image.status?.virtualSize) },
  { heading: 'REASON', cell: (found) => readyOf(found)?.reason },
  { heading: 'AGE', cell: ({ image }, now) => toAge(image.metadata.creationTimestamp, now) },
];
const wideColumns: readonly Column[] = [
  { heading: 'SIZE', cell: ({ image }) => bytes(image.status?.size) },
  { heading: 'FORMAT', cell: ({ image }) => image.status?.format },
  { heading: 'STORAGE CLASS', cell: ({ image }) => image.status?.storageClassName },
  { heading: 'MESSAGE', cell: (found) => readyOf(found)?.message },
];

const run = async ({ kube, namespace, values, terminal }: Call) => {
  const isEverywhere = values['all-namespaces'] === true;
  const found = await listImages(kube, { namespace: isEverywhere ? undefined : namespace });
  const format = outputOf(values);
  const printed = printedList(
    found.map(({ image }) => image),
    format,
  );
  if (printed !== undefined) {
    terminal.out(printed);
    return exitCodes.done;
  }
  if (found.length === 0) {
    terminal.err(isEverywhere ? 'There are no images.\n' : `There are no images in namespace ${namespace}.\n`);
    return exitCodes.done;
  }
  const shown = [...(isEverywhere ? [namespaceColumn] : []), ...columns, ...(format === 'wide' ? wideColumns : [])];
  const now = terminal.now();
  terminal.out(
    tableOf(
      shown.map(({ heading }) => heading),
      found.map((image) => shown.map(({ cell }) => cell(image, now))),
    ),
  );
  return exitCodes.done;
};

export const imagesCommand: ClusterCommand = {
  name: 'images',
  arguments: '',
  summary: 'Lists images and where they stand.',
  options: {
    'all-namespaces': { type: 'boolean', short: 'A', help: 'of every namespace' },
    ...outputOption,
  },
  run,
};
