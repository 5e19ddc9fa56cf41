// What each reason and each alert means, as docs/reference.md and the runbooks say it: for `bullion explain`, which has no documents beside it.
import { marked, type Token, type Tokens } from 'marked';
import type { Outputs } from './outputs.ts';
import { plain } from '#infra/site/sections.ts';

/** Sections of the reference that list reasons. */
const sections = ['Reasons', 'Events'];

interface Row {
  readonly reasons: readonly string[];
  readonly section: string;
  readonly text: readonly (readonly [string, string])[];
}

const isHeading = (token: Token): token is Tokens.Heading => token.type === 'heading';
const isTable = (token: Token): token is Tokens.Table => token.type === 'table';

const rowsOf = ({ header, rows }: Tokens.Table, section: string): readonly Row[] => {
  let before: readonly string[] = [];
  return rows.map((cells) => {
    const texts = cells.map(({ text }, index) => {
      const own = plain(text);
      return own === 'the same' ? (before[index] ?? own) : own;
    });
    before = texts;
    const reasons = [...(cells[0]?.text ?? '').matchAll(/`([\w<>]+)`/g)].map(([, name = '']) => name);
    const text = header.map((cell, index) => [plain(cell.text), texts[index] ?? ''] as const).slice(1);
    return { reasons, section, text };
  });
};

const listRows = (reference: string): readonly Row[] => {
  let [chapter, section] = ['', ''];
  return marked.lexer(reference).flatMap((token) => {
    if (isHeading(token)) [chapter, section] = token.depth === 2 ? [token.text, token.text] : [chapter, token.text];
    return isTable(token) && sections.includes(chapter) && token.header[0]?.text === 'reasons'
      ? rowsOf(token, section)
      : [];
  });
};

/** What the command line prints, without the name. */
const textOf = ({ reasons, text }: Row): string => {
  const shared = reasons.length === 1 ? '' : `${reasons.join(', ')}: `;
  return text.map(([heading, cell]) => (heading === 'meaning' ? `${shared}${cell}` : `${heading}: ${cell}`)).join('\n');
};

/** One meaning of a reason or an alert, and the part of the reference that has it. */
interface Explanation {
  readonly section: string;
  readonly text: string;
}
export type Explanations = Readonly<Record<string, readonly Explanation[]>>;

/** `runbooks`: their Markdown by the name of the alert. */
export const explanationsOf = (reference: string, runbooks: Readonly<Record<string, string>>): Explanations => {
  const found: Record<string, Explanation[]> = {};
  for (const row of listRows(reference))
    for (const reason of row.reasons) (found[reason] ??= []).push({ section: row.section, text: textOf(row) });
  for (const [alert, markdown] of Object.entries(runbooks)) {
    const text = markdown
      .replace(/^# .*\n+/, '')
      .replaceAll(/^#+ /gm, '')
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
    (found[alert] ??= []).push({ section: 'Alerts', text: text.trim() });
  }
  return found;
};

export const explanationOutputs = (...of: Parameters<typeof explanationsOf>): Outputs => ({
  'cli/explanations.json': `${JSON.stringify(explanationsOf(...of), undefined, 2)}\n`,
});
