// `bullion images`: every image, whatever its group, in one table.
import { type Call, type ClusterCommand, exitCodes } from '#cli/command.ts';
import { listImages } from '#shared/catalogue/image.ts';
import { paintOn } from '#cli/paint.ts';
import { customTable, imageTable, listOutputOption, outputOf, printedList, screenOf } from '#cli/output.ts';

const run = async ({ kube, namespace, values, terminal }: Call) => {
  const isEverywhere = values['all-namespaces'] === true;
  const found = await listImages(kube, { namespace: isEverywhere ? undefined : namespace });
  const format = outputOf(values);
  const objects = found.map(({ image }) => image);
  const printed = customTable(values, objects) ?? printedList(objects, format);
  if (printed !== undefined) {
    terminal.out(printed);
    return exitCodes.done;
  }
  if (found.length === 0) {
    terminal.err(isEverywhere ? 'There are no images.\n' : `There are no images in namespace ${namespace}.\n`);
    return exitCodes.done;
  }
  terminal.out(
    imageTable(found, {
      isEverywhere,
      isWide: format === 'wide',
      now: terminal.now(),
      most: screenOf({ values, terminal }),
      paint: paintOn(terminal),
    }),
  );
  return exitCodes.done;
};

export const imagesCommand: ClusterCommand = {
  name: 'images',
  arguments: '',
  summary: 'Lists images and their state.',
  more: '  bullion images -A',
  options: {
    'all-namespaces': { type: 'boolean', short: 'A', help: 'of every namespace' },
    ...listOutputOption,
  },
  run,
};
