// `bullion events <policy>`: the events that were sent about versions of a golden image, from what the policy keeps.
import { type Call, type ClusterCommand, type ExitCode, exitCodes, textOf } from '#cli/command.ts';
import { screenOf, tableOf } from '#cli/output.ts';
import type { CloudEvent } from '#events/event.ts';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { eventsOf } from '#shared/resources/golden-image-policy/history.ts';
import { parseSpan } from '#shared/runtime/age.ts';
import { InvalidInput, NotFound } from '#shared/runtime/errors.ts';

/** Milliseconds since the epoch: of a time, or of a span before now. */
const sinceOf = ({ values, terminal }: Call): number => {
  const text = textOf(values, 'since');
  if (text === undefined) return 0;
  const span = parseSpan(text);
  const time = span === undefined ? Date.parse(text) : terminal.now().getTime() - span;
  if (Number.isNaN(time))
    throw new InvalidInput(`--since ${text} is neither a duration such as 24h nor a time such as 2026-01-31T12:00:00Z`);
  return time;
};

/** As an event that is sent in structured mode. */
const structured = ({ extensions, data, ...attributes }: CloudEvent): string =>
  JSON.stringify({ specversion: '1.0', ...attributes, ...extensions, data });

const events = async (call: Call): Promise<ExitCode> => {
  const { kube, namespace, positionals, values, terminal } = call;
  const [name = ''] = positionals;
  const policy = await kube.get(goldenImagePolicyKind.type, { namespace, name });
  if (policy === undefined) throw new NotFound(`there is no GoldenImagePolicy ${name} in namespace ${namespace}`);
  const since = sinceOf(call);
  const found = eventsOf(policy).filter(({ time }) => Date.parse(time ?? '') >= since);
  if (textOf(values, 'output') === 'json') {
    for (const event of found) terminal.out(`${structured(event)}\n`);
    return exitCodes.done;
  }
  if (found.length === 0) {
    terminal.err(`No events found of ${name} in namespace ${namespace}.\n`);
    return exitCodes.done;
  }
  const rows = found.map(({ time, type: what, data }) => {
    const { channel, version, message } = data as Readonly<Record<string, string>>;
    return [time, what.split('.').at(-1), channel, version, message];
  });
  terminal.out(tableOf(['TIME', 'WHAT', 'CHANNEL', 'VERSION', 'MESSAGE'], rows, screenOf(call)));
  return exitCodes.done;
};

export const eventsCommand: ClusterCommand = {
  name: 'events',
  arguments: '<policy>',
  summary: 'Shows the events that were sent about versions of a golden image.',
  more: 'From the last 50 entries that the policy keeps, oldest first. With -o json: one CloudEvent a line, with its original ID.\n\n  bullion events fedora --since 24h\n  bullion events fedora --since 2026-01-31T12:00:00Z -o json',
  options: {
    since: {
      type: 'string',
      value: 'TIME',
      help: 'since that time, or for that long, such as 24h (all that is kept)',
    },
    output: { type: 'string', short: 'o', value: 'FORMAT', help: 'form of what is printed', oneOf: ['json', 'wide'] },
  },
  completes: 'goldenimagepolicies',
  run: events,
};
