// `bullion why <name>`: reads everything that tells where an object stands, of whichever kind we serve.
import { type Call, type ClusterCommand, exitCodes } from '#cli/command.ts';
import { findAny } from '#shared/catalogue/objects.ts';
import { gather } from '#shared/catalogue/gather.ts';
import { outputOf, outputOption, printedList } from '#cli/output.ts';
import { renderStory } from '#cli/why.ts';

const run = async ({ kube, namespace, positionals, values, terminal }: Call) => {
  const found = await findAny(kube, namespace, positionals[0] ?? '');
  const story = await gather(kube, found);
  const format = outputOf(values);
  const printed = printedList([story.found.image, ...story.children, ...story.events], format);
  terminal.out(printed ?? renderStory(story, terminal.now(), { hasAllEvents: format === 'wide' }));
  return exitCodes.done;
};

export const whyCommand: ClusterCommand = {
  name: 'why',
  arguments: '<name>',
  summary: 'Shows the state of an object on one screen, the reason, and what happens next.',
  more: 'An image, or any other object that Bullion serves: <kind>/<name> where several have the name (datavolume/x, dataimportcron/x, pvc/x).\nWith -o json or yaml: the object, what was made for it, and the events of both, as one list. With -o wide: every event, not the newest alone.',
  options: outputOption,
  completes: 'images',
  run,
};
