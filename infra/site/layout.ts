// The frame around each page, and its style, which begins with that of the console.
import { style as consoleStyle } from '#shared/console/assets.ts';
import { hrefFrom, placeOf } from './pages.ts';
import { reasonsDocument } from './reasons.ts';
import { type SitePage, escape } from './render.ts';

/** Links of the navigation: a group for each section of the index. */
export interface Group {
  readonly heading: string;
  readonly links: readonly { readonly path: string; readonly name: string }[];
}

/** From the tables of docs/README.md, the index of all guides. */
export const navigationOf = (index: string): readonly Group[] =>
  index
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      heading: section.split('\n')[0] ?? '',
      links: [...section.matchAll(/^\| \[([^\]]+)\]\(([^)#]+\.md)\)/gm)].map(([, name = '', link = '']) => ({
        name,
        path: new URL(link, 'file:///docs/').pathname.slice(1),
      })),
    }))
    .filter(({ links }) => links.length > 0);

export const style = `${consoleStyle}
body > .columns { display: grid; grid-template-columns: 230px minmax(0, 1fr) 210px; gap: 24px; max-width: 1500px; margin: 0 auto; }
.columns > nav { padding: 16px 12px 32px; font-size: 13px; }
.columns > nav ul { list-style: none; margin: 0 0 12px; padding: 0; }
.columns > nav a { display: block; padding: 3px 8px; border-radius: 4px; text-decoration: none; color: var(--text); }
.columns > nav a:hover, .columns > nav a[aria-current] { background: var(--raised); color: var(--accent); }
.columns > nav h2 { margin: 12px 8px 4px; font-size: 12px; color: var(--dim); }
main { max-width: 110ch; font-size: 15px; line-height: 1.55; }
main h1 { font-size: 26px; } main h2 { font-size: 20px; margin-top: 36px; } main h3 { font-size: 16px; margin-top: 24px; }
main img { max-width: 100%; border: 1px solid var(--line); border-radius: 4px; }
pre { overflow-x: auto; max-width: none; padding: 10px 12px; background: var(--raised); border: 1px solid var(--line); border-radius: 4px; font-size: 13px; line-height: 1.4; }
code { font-family: ui-monospace, monospace; font-size: 0.92em; }
p, li { overflow-wrap: anywhere; }
.target, :is(h2, h3, h4)[id] { scroll-margin-top: 12px; }
tr:has(.target:target) { background: var(--raised); outline: 2px solid var(--accent); outline-offset: -2px; }
form[role=search] { margin-left: auto; position: relative; }
form[role=search] input { width: min(320px, 70vw); }
#found { position: absolute; right: 0; z-index: 1; width: min(560px, 92vw); max-height: 70vh; overflow: auto; list-style: none; margin: 4px 0 0; padding: 6px; background: var(--ground); border: 1px solid var(--line); border-radius: 4px; }
#found a { display: block; padding: 5px 8px; } #found a:focus, #found a:hover { background: var(--raised); }
#count { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
@media (max-width: 1100px) { body > .columns { grid-template-columns: 200px minmax(0, 1fr); } .contents { display: none; } }
@media (max-width: 760px) { body > .columns { display: flex; flex-direction: column; } .columns > nav { order: 2; } form[role=search] { margin-left: 0; } #found { left: 0; right: auto; } }
`;

const list = (items: readonly string[]): string => `<ul>${items.map((item) => `<li>${item}</li>`).join('')}</ul>`;

/** `version`: of Bullion, as the site describes it. */
export const frame = (page: SitePage, navigation: readonly Group[], version: string): string => {
  const place = placeOf(page.path);
  const to = (other: string): string => escape(hrefFrom(place, other));
  const root = hrefFrom(place, 'index.html').replace(/index\.html$/, '');
  const link = (path: string, name: string): string =>
    `<a href="${to(placeOf(path))}"${path === page.path ? ' aria-current="page"' : ''}>${escape(name)}</a>`;
  const groups = navigation.map(
    ({ heading, links }) => `<h2>${escape(heading)}</h2>${list(links.map(({ path, name }) => link(path, name)))}`,
  );
  const contents = page.contents.map(({ anchor, heading }) => `<a href="#${escape(anchor)}">${escape(heading)}</a>`);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="content-security-policy" content="default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'none'">
<title>${page.path === 'README.md' ? 'Bullion' : `${escape(page.title)} · Bullion`}</title>
<link rel="stylesheet" href="${to('style.css')}">
<script src="${to('search.js')}" defer></script>
<body>
<a class="skip" href="#content">To the text</a>
<header><a class="brand" href="${to('index.html')}">Bullion ${escape(version)}</a>
<form role="search" hidden data-root="${escape(root)}"><input type="search" aria-label="Search" placeholder="Search: a reason, a setting, a task (/)" autocomplete="off"><p id="count" role="status"></p><ul id="found" hidden></ul></form></header>
<div class="columns">
<nav aria-label="Pages">${list([link('README.md', 'Start'), link(reasonsDocument, 'Reasons and alerts')])}${groups.join('')}</nav>
<main id="content" tabindex="-1">${page.html}</main>
${contents.length < 2 ? '' : `<nav class="contents" aria-label="On this page"><h2>On this page</h2>${list(contents)}</nav>`}
</div>
</body>
</html>
`;
};
