// The page of the site that `bullion explain` names: each reason and alert under its name, with the text that the command prints. Pure.
import { remedyFor } from '#shared/catalogue/story.ts';
import { reasonAnchor, reasonsPath } from '#shared/catalogue/reasons.ts';
import { type Explanations, explanationsOf } from '#infra/generate/explanations.ts';

/** As a document in a folder of its own, so that its address needs no suffix on any web server. */
export const reasonsDocument = `${reasonsPath}/README.md`;

const isRunbook = /^infra\/runbooks\/(\w+)\.md$/;

/** What the documents explain, by name. */
export const explainedIn = (documents: ReadonlyMap<string, string>): Explanations => {
  const runbooks = [...documents].flatMap(([path, text]) => {
    const name = isRunbook.exec(path)?.[1];
    return name === undefined || name === 'README' ? [] : [[name, text] as const];
  });
  return explanationsOf(documents.get('docs/reference.md') ?? '', Object.fromEntries(runbooks));
};

/** Names in angle brackets are no elements of HTML. Indented lines are code, which is shown as it is. */
const asMarkdown = (text: string): string =>
  text
    .split('\n')
    .map((line) => (line.startsWith('    ') || line === '' ? line : `${line.replaceAll('<', '&lt;')}  `))
    .join('\n');

export const reasonsText = (explanations: Explanations): string => {
  const entries = Object.entries(explanations).toSorted(([a], [b]) => a.localeCompare(b));
  const sections = entries.map(([name, meanings]) => {
    const remedy = remedyFor(name);
    const texts = meanings.map(({ section, text }) => `*${section}*\n\n${asMarkdown(text)}`);
    return [`## ${reasonAnchor(name)}`, ...texts, ...(remedy === undefined ? [] : [`To do: ${asMarkdown(remedy)}`])];
  });
  const head = [
    '# Reasons and alerts',
    'Each reason that Bullion gives, and each of its alerts, as `bullion explain <name>` prints it.',
  ];
  return [...head, ...sections.flat()].join('\n\n');
};
