// What a reader may search for on a page: each heading with what is below it, and each name of a table. Pure.
import type { Token, Tokens } from 'marked';
import type { AnchorOf } from './pages.ts';

/** What one search result leads to. */
export interface SiteSection {
  /** Place on the site and anchor. */
  readonly url: string;
  readonly page: string;
  readonly heading: string;
  readonly text: string;
}

/** Text of Markdown as a reader sees it. */
export const plain = (markdown: string): string =>
  markdown
    .replaceAll(/<!--[\s\S]*?-->/g, '')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/^\|?[\s|:-]+\|$/gm, '')
    .replaceAll(/[`*|]+/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();

/** Names in the first column of a table: reasons, settings, metrics. */
export const namesIn = (cells: readonly Tokens.TableCell[]): readonly string[] =>
  (cells[0]?.tokens ?? []).flatMap((token) =>
    token.type === 'codespan' && /^[\w.-]+$/.test(token.text as string) ? [token.text as string] : [],
  );

const isTable = (token: Token): token is Tokens.Table => token.type === 'table';
const isHeading = (token: Token): token is Tokens.Heading => token.type === 'heading';

export const sectionsOf = (
  tokens: readonly Token[],
  { place, title, anchorOf }: { readonly place: string; readonly title: string; readonly anchorOf: AnchorOf },
): readonly SiteSection[] => {
  const at = (anchor: string) => ({ url: `${place}#${anchor}`, page: title });
  const taken = new Set<string>();
  const starts = tokens.flatMap((token, index) => (isHeading(token) ? [{ token, index }] : []));
  const headed = starts.map(({ token, index }, number): SiteSection => {
    const below = tokens.slice(index + 1, starts[number + 1]?.index);
    const text = below.map(({ raw }) => plain(raw)).join(' ');
    return { ...at(anchorOf(token.text, taken)), heading: plain(token.text), text };
  });
  const rows = tokens.filter(isTable).flatMap((table) => table.rows);
  const named = rows.flatMap((cells) =>
    namesIn(cells).map((name): SiteSection => ({
      ...at(name),
      heading: name,
      text: plain(cells.map(({ text }) => text).join(' | ')),
    })),
  );
  return [...headed, ...named];
};
