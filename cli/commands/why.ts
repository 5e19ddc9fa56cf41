// `bullion why <name>`: reads everything that tells where an object stands, of whichever kind we serve.
import { type Call, type ClusterCommand, exitCodes } from '#cli/command.ts';
import { reasonsPage } from '#shared/catalogue/reasons.ts';
import { type Paint, paintOn, stateOfWord } from '#cli/paint.ts';
import { explained } from '#cli/commands/explain.ts';
import { alignColumns, outputOf, outputOption, printedList, wrap } from '#cli/output.ts';
import type { KubeEvent } from '#shared/api/foreign/core.ts';
import { findAny, gather } from '#shared/catalogue/objects.ts';
import { isImage, readyOf } from '#shared/catalogue/image.ts';
import { childRow, isRetryAsked, refOf, shownOf, type Story, summaryOf, timeOf } from '#shared/catalogue/story.ts';
import { toAge } from '#shared/runtime/age.ts';

// One screen that answers "why is this object where it is", 80 columns wide.

/** A message that is shown above, or for the event before, is not repeated. */
const eventLines = (events: readonly KubeEvent[], shown: readonly string[], now: Date): readonly string[] => {
  const known = [...shown];
  return events.flatMap((event) => {
    const { type = 'Normal', reason = '', involvedObject, message = '', count = 1 } = event;
    const when = `${toAge(timeOf(event), now)}${count > 1 ? ` (x${count})` : ''}`;
    const head = `${when.padEnd(10)} ${type.padEnd(7)} ${reason} ${refOf(involvedObject.kind, involvedObject.name)}`;
    const isKnown = known.some((text) => text.includes(message));
    known.push(message);
    return [...wrap(head, '           '), ...(isKnown ? [] : wrap(`           ${message}`, '           '))];
  });
};

const renderStory = (
  story: Story,
  now: Date,
  { hasAllEvents = false, paint }: { readonly hasAllEvents?: boolean; readonly paint?: Paint | undefined } = {},
): string => {
  const { found, children } = story;
  const { image, type } = found;
  const name = `${image.metadata.namespace}/${image.metadata.name}`;
  const kind = isImage(type) ? 'Image' : type.kind;
  const heading = `${kind} ${name} (${type.group || 'v1'}), made ${toAge(image.metadata.creationTimestamp, now)} ago`;
  const rows = summaryOf(found, now).filter((row): row is [string, string] => (row[1] ?? '') !== '');
  const width = Math.max(...rows.map(([word]) => word.length));
  const summary = rows.flatMap(([word, text]) => wrap(`  ${word.padEnd(width)}  ${text}`, ' '.repeat(width + 4)));
  const unobserved = isRetryAsked(found) ? ['  a retry was asked for'] : [];
  const made = children.map((child) => childRow(child, now));
  const events = shownOf(story, hasAllEvents);
  const shown = rows.map(([, text]) => text);
  return [
    ...wrap(heading, '  '),
    ...summary,
    ...unobserved,
    '',
    ...(made.length === 0
      ? ['No children.']
      : alignColumns([['CHILD', 'STATE', 'AGE'], ...made], (cell, row, column) => {
          const state = row > 0 && column === 1 ? stateOfWord(cell) : undefined;
          return state === undefined || paint === undefined ? cell : paint(state, cell);
        })),
    '',
    ...(events.length === 0 ? ['No events in the last hour.'] : ['EVENTS', ...eventLines(events, shown, now)]),
  ]
    .map((line) => `${line}\n`)
    .join('');
};

/** Of its state, of the last failure, and of Events that are warnings. */
const reasonsOf = (story: Story): readonly string[] => {
  const { image } = story.found;
  const warnings = shownOf(story, false).filter(({ type }) => type === 'Warning');
  const all = [
    readyOf(story.found)?.reason,
    image.status?.lastFailure?.reason,
    ...warnings.map(({ reason }) => reason),
  ];
  return [...new Set(all)].filter((reason) => reason !== undefined);
};

const run = async ({ kube, namespace, positionals, values, terminal }: Call) => {
  const found = await findAny(kube, namespace, positionals[0] ?? '');
  const story = await gather(kube, found);
  const format = outputOf(values);
  const printed = printedList([story.found.image, ...story.children, ...story.events], format);
  terminal.out(
    printed ?? renderStory(story, terminal.now(), { hasAllEvents: format === 'wide', paint: paintOn(terminal) }),
  );
  if (printed === undefined && values['explain'] === true)
    terminal.out(
      `\n${reasonsOf(story)
        .map((reason) => explained(reason, found.type.kind))
        .join('')}`,
    );
  return exitCodes.done;
};

export const whyCommand: ClusterCommand = {
  name: 'why',
  arguments: '<name>',
  summary: 'Shows the state of an object on one screen, the reason, and what happens next.',
  more: `An image, or any other object that Bullion serves: <kind>/<name> where several have the name (datavolume/x, dataimportcron/x, pvc/x).\nWith -o json or yaml: the object, what was made for it, and the events of both, as one list. With -o wide: every event, not the newest alone.\nThe page of a reason is ${reasonsPage}#<Reason>.\n\n  bullion why jammy\n  bullion why datavolume/root --explain`,
  options: {
    ...outputOption,
    explain: { type: 'boolean', help: 'also what its reasons mean, as bullion explain says it' },
  },
  completes: 'all',
  run,
};
