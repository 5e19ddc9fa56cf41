// `bullion explain <reason>`: what a reason or an alert means and what happens next, as the reference says it. Needs no cluster.
import explanations from '../explanations.json' with { type: 'json' };
import { type PlainCommand, exitCodes } from '#cli/command.ts';
import { didYouMean } from '#cli/nearest.ts';
import { wrap } from '#cli/output.ts';
import { reasonAddress, reasonsPage } from '#shared/catalogue/reasons.ts';
import { remedyFor } from '#shared/catalogue/story.ts';
import { NotFound } from '#shared/runtime/errors.ts';

interface Explanation {
  readonly section: string;
  readonly text: string;
}
const known: Readonly<Record<string, readonly Explanation[]>> = explanations;

/** `WorkerEvicted` is a `Worker<Reason>`. */
const isLike = (name: string, pattern: string): boolean =>
  pattern.includes('<') && new RegExp(`^${pattern.replace(/<\w+>/, '[A-Z]\\w+')}$`).test(name);

/** The name under which a reason is explained. */
const nameIn = (name: string): string =>
  Object.hasOwn(known, name) ? name : (Object.keys(known).find((pattern) => isLike(name, pattern)) ?? name);

const explanationsOf = (name: string): readonly Explanation[] => {
  const under = nameIn(name);
  return Object.hasOwn(known, under) ? (known[under] ?? []) : [];
};

/** Meanings that a reason has only elsewhere: in the answers to a client, in the metrics, or for one kind. */
const elsewhere: Readonly<Record<string, string | undefined>> = {
  'Policies of golden images': 'GoldenImagePolicy',
  'Crons and DataSources': 'DataImportCron DataSource',
  'Polls of sources': 'DataImportCron',
  'Answers of the transfer function': '',
  Alerts: '',
};
const concerns = (kind: string, { section }: Explanation): boolean =>
  elsewhere[section]?.split(' ').includes(kind) ?? true;

/** Empty for what has no explanation. `kind`: only what it may mean there. */
export const explained = (name: string, kind?: string): string => {
  const remedy = remedyFor(name);
  const all = explanationsOf(name);
  const here = all.filter((one) => kind === undefined || concerns(kind, one));
  const paragraphs = (here.length === 0 ? all : here).map(({ section, text }) =>
    [
      `${name} (${section})`,
      ...text.split('\n').flatMap((line) => (line.startsWith('    ') || line === '' ? line : wrap(`  ${line}`, '  '))),
      ...(remedy === undefined ? [] : wrap(`  to do: ${remedy}`, '  ')),
      `  page: ${reasonAddress(nameIn(name))}`,
      '',
    ].join('\n'),
  );
  return paragraphs.join('\n');
};

const nothingFor = (name: string): string => {
  const like = Object.keys(known).filter((one) => one.toLowerCase().includes(name.toLowerCase()));
  const near = like.length === 0 ? didYouMean(name, Object.keys(known)) : `; there is ${like.join(', ')}`;
  return `there is no reason or alert ${name}${near === '' ? ': bullion explain lists them' : near}`;
};

export const explainCommand: PlainCommand = {
  name: 'explain',
  arguments: '[reason]',
  summary: 'Says what a reason or an alert means and what to do; without an argument, lists them.',
  more: `Reasons of conditions, Events and answers. bullion why <name> --explain explains those of an object. The page of each is ${reasonsPage}#<Reason>, with the same text.\n\n  bullion explain ChecksumMismatch\n  bullion explain BullionPollOverdue`,
  options: {},
  completes: Object.keys(known).filter((name) => !name.includes('<')),
  runPlain: async ({ positionals, terminal }) => {
    const [name] = positionals;
    const text = name === undefined ? `${Object.keys(known).toSorted().join('\n')}\n` : explained(name);
    if (text === '') throw new NotFound(nothingFor(name ?? ''));
    terminal.out(text);
    return exitCodes.done;
  },
};
