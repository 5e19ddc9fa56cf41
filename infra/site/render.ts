// One document as HTML: headings and names in tables get anchors, links lead to pages, and what a reader may search for is listed. Pure.
import { dirname, join } from 'node:path';
import { Marked, type Tokens } from 'marked';
import { type SiteSection, namesIn, plain, sectionsOf } from './sections.ts';
import { type AnchorOf, anchorOf, hrefFrom, isLocal, placeOf, targetOf } from './pages.ts';
import { reasonsDocument } from './reasons.ts';
import { reasonsPage } from '#shared/catalogue/reasons.ts';

/** A link to a page of the site, to be compared with the anchors of that page. */
interface Reference {
  readonly link: string;
  readonly target: string;
  readonly anchor: string;
}

export interface SitePage {
  readonly path: string;
  readonly title: string;
  readonly html: string;
  /** Headings of the second level. */
  readonly contents: readonly { readonly anchor: string; readonly heading: string }[];
  readonly anchors: ReadonlySet<string>;
  readonly sections: readonly SiteSection[];
  readonly references: readonly Reference[];
  /** Paths in the repository of the pictures that it shows. */
  readonly pictures: readonly string[];
}

export interface Around {
  readonly isPage: (path: string) => boolean;
  /** Whether the repository has a file or folder. */
  readonly exists: (path: string) => boolean;
  /** Where the repository can be read, without a slash at the end; links to code are left out without it. */
  readonly source?: string | undefined;
  /** Default: that of GitHub. */
  readonly anchorOf?: AnchorOf | undefined;
}

export const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** Path in the repository of what a link leads to; `undefined`: it leads elsewhere. The address of a page of this site leads to the page. */
const documentAt = (path: string, link: string): string | undefined => {
  if (link.split('#')[0] === reasonsPage) return reasonsDocument;
  return isLocal(link) ? targetOf(path, link) : undefined;
};

export const renderPage = (path: string, markdown: string, around: Around): SitePage => {
  const place = placeOf(path);
  const marked = new Marked({ gfm: true });
  const tokens = marked.lexer(markdown);
  const title = plain(tokens.find((token): token is Tokens.Heading => token.type === 'heading')?.text ?? path);
  const [taken, references, pictures] = [new Set<string>(), [] as Reference[], [] as string[]];
  const contents: { anchor: string; heading: string }[] = [];

  const linkTo = (link: string, text: string): string => {
    const target = documentAt(path, link);
    if (target === undefined) return `<a href="${escape(link)}">${text}</a>`;
    const file = [target, join(target, 'README.md')].find(around.isPage);
    const anchor = link.split('#')[1] ?? '';
    if (file === undefined && around.exists(target))
      return around.source === undefined ? text : `<a href="${escape(`${around.source}/${target}`)}">${text}</a>`;
    references.push({ link, target: file ?? target, anchor });
    const href = hrefFrom(place, placeOf(file ?? target));
    return `<a href="${escape(`${file === path ? '' : href}${anchor === '' ? '' : `#${anchor}`}`)}">${text}</a>`;
  };

  marked.use({
    renderer: {
      heading({ depth, text, tokens: inner }) {
        const anchor = (around.anchorOf ?? anchorOf)(text, taken);
        if (depth === 2) contents.push({ anchor, heading: plain(text) });
        return `<h${depth} id="${escape(anchor)}">${this.parser.parseInline(inner)}</h${depth}>\n`;
      },
      link({ href, tokens: inner }) {
        return linkTo(href, this.parser.parseInline(inner));
      },
      image({ href, text }) {
        pictures.push(join(dirname(path), href));
        return `<img src="${escape(href)}" alt="${escape(text)}" loading="lazy">`;
      },
      code: ({ text }) => `<pre tabindex="0"><code>${escape(text)}\n</code></pre>\n`,
      html: ({ text }) => (text.startsWith('<!--') ? '' : escape(text)),
      table(token) {
        const head = token.header
          .map((cell) => `<th scope="col">${this.parser.parseInline(cell.tokens)}</th>`)
          .join('');
        const row = (cells: Tokens.TableCell[]): string => {
          const names = namesIn(cells).filter((name) => !taken.has(name));
          for (const name of names) taken.add(name);
          const targets = names.map((name) => `<a class="target" id="${escape(name)}"></a>`).join('');
          return `<tr>${cells.map(({ tokens: inner }, at) => `<td>${at === 0 ? targets : ''}${this.parser.parseInline(inner)}</td>`).join('')}</tr>`;
        };
        return `<div class="scroll" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>${token.rows.map(row).join('\n')}</tbody></table></div>\n`;
      },
    },
  });
  const html = marked.parser(tokens);
  const sections = sectionsOf(tokens, { place, title, anchorOf: around.anchorOf ?? anchorOf });
  return { path, title, html, contents, anchors: taken, sections, references, pictures };
};
