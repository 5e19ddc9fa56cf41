// Which documents become pages, where each one is on the site, and where its links lead. Reads files; writes nothing.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, join, normalize, relative } from 'node:path';

/** Documents that are pages even if no other one links to them; `/` at the end: all of a folder. */
const starts = ['README.md', 'CHANGELOG.md', 'docs/', 'infra/runbooks/'];

const isDocument = (path: string): boolean => path.endsWith('.md');

/** Markdown by its path in the repository: the starts, and all that they link to, directly or not. */
export const collectPages = (root: string): ReadonlyMap<string, string> => {
  const pages = new Map<string, string>();
  const queue = starts.flatMap((start) =>
    start.endsWith('/') ? readdirSync(join(root, start)).map((name) => `${start}${name}`) : [start],
  );
  for (const path of queue) {
    if (!isDocument(path) || pages.has(path) || !existsSync(join(root, path))) continue;
    const text = readFileSync(join(root, path), 'utf8');
    pages.set(path, text);
    for (const [, link = ''] of text.matchAll(/\]\(([^)\s#]+)/g)) if (isLocal(link)) queue.push(targetOf(path, link));
  }
  return pages;
};

/** Paths on the site mirror those of the repository. */
export const placeOf = (path: string): string =>
  join(dirname(path), `${basename(path, '.md')}.html`).replace(/(^|\/)README\.html$/, '$1index.html');

/** Address of `to` as a page at `from` writes it; both are places on the site. */
export const hrefFrom = (from: string, to: string): string => relative(dirname(from), to) || basename(to);

export const isLocal = (link: string): boolean => !/^[a-z][a-z+.-]*:/i.test(link);

/** Path in the repository of what a link of the document at `path` names, without its anchor. */
export const targetOf = (path: string, link: string): string => {
  const [file = ''] = link.split('#');
  return file === '' ? path : normalize(join(dirname(path), file)).replace(/\/$/, '');
};

/** The anchor of a heading, which it adds to `taken`. */
export type AnchorOf = (heading: string, taken: Set<string>) => string;

/** Of headings that are names: the name, as it is written everywhere else. */
export const nameAnchorOf: AnchorOf = (heading, taken) => {
  taken.add(heading);
  return heading;
};

/** As GitHub makes them of headings: letters, digits and dashes, a number behind a repeat. */
export const anchorOf: AnchorOf = (heading, taken) => {
  const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
  const plain = words.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-');
  let anchor = plain;
  for (let count = 1; taken.has(anchor); count += 1) anchor = `${plain}-${count}`;
  taken.add(anchor);
  return anchor;
};
