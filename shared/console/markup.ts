// Parts that every page is made of. Whatever comes from the API is text: `html` escapes each value.
import { html } from 'hono/html';
import { stringify } from 'yaml';
import { wordsOf } from '#shared/console/session.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

export type Markup = ReturnType<typeof html>;

const sections = [
  ['/objects', 'Images and volumes'],
  ['/golden', 'Golden images'],
  ['/queue', 'Transfers'],
  ['/backups', 'Backups'],
  ['/import', 'Import'],
  ['/upload', 'Upload'],
] as const;
export type Section = (typeof sections)[number][0];

export interface Page {
  readonly title: string;
  /** The entry of the navigation that the page belongs to. */
  readonly section?: Section;
  readonly body: Markup;
  /** Address of the events that keep the page up to date. */
  readonly live?: string | undefined;
}

/** A whole document. `user`: who looks; without one there is no navigation. */
export const toDocument = ({ title, section, body, live }: Page, user: string | undefined): Markup =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} · Bullion</title>
        <link rel="stylesheet" href="/console.css" />
        <link rel="icon" href="data:," />
        <script src="/console.js" defer></script>
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header>
          <a class="brand" href="/objects">Bullion</a>
          ${user === undefined ? '' : navigation(section, user)}
        </header>
        <main id="main" tabindex="-1" ${live === undefined ? '' : html`data-live="${live}"`}>${body}</main>
        <p id="live" role="status"></p>
      </body>
    </html>`;

const navigation = (current: Section | undefined, user: string): Markup =>
  html`<nav aria-label="Sections">
      ${sections.map(
        ([path, name]) => html`<a href="${path}" ${path === current ? html`aria-current="page"` : ''}>${name}</a>`,
      )}
    </nav>
    <form class="user" method="post" action="/logout">
      <span>${user}</span>
      <button class="quiet">Log out</button>
    </form>`;

/** Something that went wrong, or that somebody should know. */
export const notice = (kind: 'error' | 'note', text: unknown): Markup =>
  html`<p class="notice ${kind}" ${kind === 'error' ? html`role="alert"` : ''}>${text}</p>`;

/** What is wrong, and each fault that the message does not say already. */
export const trouble = (error: unknown): Markup => {
  const message = wordsOf(error);
  const faults = error instanceof InvalidInput ? error.faults.filter((fault) => !message.includes(fault.message)) : [];
  return html`${notice('error', message)}
  ${
    faults.length === 0
      ? ''
      : html`<ul>
          ${faults.map((fault) => html`<li><code>${fault.field}</code>: ${fault.message}</li>`)}
        </ul>`
  }`;
};

export type Tone = 'ok' | 'bad' | 'busy' | 'idle';

/** Shape and word, so that a state is seen without colours. */
const marks: Readonly<Record<Tone, string>> = { ok: '●', bad: '▲', busy: '◐', idle: '○' };

export const badge = (tone: Tone, text: string): Markup =>
  html`<span class="badge ${tone}"><span aria-hidden="true">${marks[tone]}</span> ${text}</span>`;

export const toRows = (rows: readonly (readonly [string, unknown])[]): Markup =>
  html`<dl>
    ${rows.map(
      ([word, value]) =>
        html`<dt>${word}</dt>
          <dd>${value}</dd>`,
    )}
  </dl>`;

export interface Column {
  readonly heading: unknown;
  /** Numbers and times stand at the right. */
  readonly isNumber?: true;
  /** Left out on a narrow screen. */
  readonly isMinor?: true;
  /** Of the heading: `ascending` or `descending`. */
  readonly sorted?: 'ascending' | 'descending' | undefined;
}

export const classOf = ({ isNumber, isMinor }: Column): string =>
  [isNumber === true ? 'number' : '', isMinor === true ? 'minor' : ''].join(' ').trim();

export const table = (caption: string, columns: readonly Column[], rows: readonly Markup[]): Markup =>
  html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0">
    <table>
      <caption>
        ${caption}
      </caption>
      <thead>
        <tr>
          ${columns.map(
            (column) =>
              html`<th
                scope="col"
                class="${classOf(column)}"
                ${column.sorted === undefined ? '' : html`aria-sort="${column.sorted}"`}
              >
                ${column.heading}
              </th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly value?: string | undefined;
  readonly hint?: string;
  readonly required?: boolean;
  /** All there are; left out: any text. */
  readonly oneOf?: readonly string[];
}

export const field = ({ name, label, value = '', hint, required = false, oneOf }: Field): Markup => {
  const described = hint === undefined ? '' : html`aria-describedby="${name}-hint"`;
  const needed = required ? html`required` : '';
  const input =
    oneOf === undefined
      ? html`<input id="${name}" name="${name}" value="${value}" autocomplete="off" ${described} ${needed} />`
      : html`<select id="${name}" name="${name}" ${described}>
          ${oneOf.map((one) => html`<option ${one === value ? html`selected` : ''}>${one}</option>`)}
        </select>`;
  const help = hint === undefined ? '' : html`<p class="hint" id="${name}-hint">${hint}</p>`;
  return html`<div class="field"><label for="${name}">${label}</label>${input}${help}</div>`;
};

export const hidden = (values: Readonly<Record<string, string>>): readonly Markup[] =>
  Object.entries(values).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`);

/** As a person would apply it. */
export const yamlOf = (object: object): Markup =>
  html`<pre tabindex="0" aria-label="YAML" id="yaml-text"><code>${stringify(object, { lineWidth: 0 })}</code></pre>`;

/** A path of ours with a query; empty values are left out. */
export const pathOf = (path: string, query: Readonly<Record<string, string | undefined>> = {}): string => {
  const set = Object.entries(query).filter((entry): entry is [string, string] => (entry[1] ?? '') !== '');
  return set.length === 0 ? path : `${path}?${new URLSearchParams(set).toString()}`;
};
