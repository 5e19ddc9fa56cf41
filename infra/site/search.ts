// The search of the site: a function that the browser runs, and the script around it. The index is loaded when somebody begins to search.
import type { SiteSection } from './sections.ts';

/** Sections that have every word of the query, the best first. It is sent to the browser as text, so that it uses nothing from outside. */
export const find = (sections: readonly SiteSection[], query: string): readonly SiteSection[] => {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const scoreOf = ({ heading, page, text }: SiteSection): number => {
    const [name, title, body] = [heading.toLowerCase(), page.toLowerCase(), text.toLowerCase()];
    let score = name === words.join(' ') ? 100 : 0;
    for (const word of words) {
      const found = (name.includes(word) ? 20 : 0) + (title.includes(word) ? 8 : 0) + (body.includes(word) ? 2 : 0);
      if (found === 0) return 0;
      score += found + (name.startsWith(word) ? 10 : 0);
    }
    return score;
  };
  return sections
    .map((section) => ({ section, score: scoreOf(section) }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, 12)
    .map(({ section }) => section);
};

/** A script, not JSON: a page that is opened as a file may load it, too. */
export const indexScript = (sections: readonly SiteSection[]): string =>
  `window.bullionSearch = ${JSON.stringify(sections)};\n`;

export const searchScript = `'use strict';
const find = ${find.toString()};
const form = document.querySelector('form[role=search]');
const input = form.querySelector('input');
const list = document.querySelector('#found');
const count = document.querySelector('#count');
const root = form.dataset.root;
form.hidden = false;
let loading;
const load = () => loading ??= new Promise((resolve, reject) => {
  const script = document.createElement('script');
  script.src = root + 'search-index.js';
  script.onload = resolve;
  script.onerror = reject;
  document.head.append(script);
});
const show = async () => {
  await load();
  const found = find(window.bullionSearch, input.value);
  list.replaceChildren(...found.map(({ url, page, heading, text }) => {
    const link = document.createElement('a');
    link.href = root + url;
    const small = document.createElement('small');
    small.textContent = text.slice(0, 120);
    link.append(page === heading ? page : page + ': ' + heading, document.createElement('br'), small);
    const item = document.createElement('li');
    item.append(link);
    return item;
  }));
  list.hidden = found.length === 0;
  count.textContent = input.value.trim() === '' ? '' : found.length === 0 ? 'Nothing was found' : found.length + ' results';
};
input.addEventListener('focus', load);
input.addEventListener('input', show);
form.addEventListener('submit', async (event) => {
  event.preventDefault();
  await show();
  list.querySelector('a')?.click();
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') { input.value = ''; void show(); }
  if (event.key === '/' && document.activeElement !== input) { event.preventDefault(); input.focus(); }
});
`;
