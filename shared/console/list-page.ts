// The list of images and volumes: filters, the table, and what leads to the next page.
import { html } from 'hono/html';
import { apiVersionOf } from '#shared/api/object.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { type Found, readyOf, stateNames, stateOf } from '#shared/catalogue/image.ts';
import { paceOf } from '#shared/catalogue/story.ts';
import type { Listing } from '#shared/console/listing.ts';
import { type Column, type Markup, type Page, badge, notice, table } from '#shared/console/markup.ts';
import {
  type Query,
  type SortKey,
  kindLabel,
  listPath,
  listedTypes,
  toSince,
  objectPath,
  tones,
  typeName,
} from '#shared/console/query.ts';
import { toAge } from '#shared/runtime/age.ts';

export const stateBadge = (found: Found): Markup => {
  const { metadata, status } = found.image;
  if (metadata.deletionTimestamp !== undefined) return badge('idle', 'Terminating');
  const ready = readyOf(found);
  return badge(tones[stateOf(found)], status?.phase ?? ready?.reason ?? 'Not observed yet');
};

const percentOf = ({ image: { status } }: Found): number | undefined => {
  const percent = Number.parseFloat(String(status?.progress ?? ''));
  return Number.isFinite(percent) ? Math.min(100, Math.max(0, percent)) : undefined;
};

/** Of what is under way. */
export const progressOf = (found: Found): Markup | '' => {
  const percent = percentOf(found);
  if (percent === undefined || stateOf(found) !== 'working') return '';
  const label = `Progress of ${found.image.metadata.name}`;
  const pace = paceOf(found);
  return html`<span class="progress">
    <progress max="100" value="${percent}" aria-label="${label}"></progress> ${Math.floor(percent)}%
    ${pace === undefined ? '' : html`<small>${pace}</small>`}
  </span>`;
};

/** What it waits for or failed with; of what is ready nothing. */
const explanationOf = (found: Found): Markup | '' => {
  if (stateOf(found) === 'ready') return '';
  const { reason = '', message = '' } = readyOf(found) ?? {};
  const isSaid = reason === found.image.status?.phase;
  return html`<small class="why"><b>${isSaid ? '' : reason}</b> ${message}</small>`;
};

/** Begins with the UID: a watch knows no more of what was deleted. */
export const rowId = ({ image: { metadata } }: Found): string => `row-${metadata.uid ?? metadata.name}`;

export const rowOf = (found: Found, now: Date): Markup => {
  const { type, image } = found;
  const { metadata, status } = image;
  const size = status?.virtualSize;
  return html`<tr id="${rowId(found)}">
    <th scope="row">
      <a href="${objectPath(type, metadata)}">${metadata.name}</a>
      <small class="narrow">${metadata.namespace}</small>
    </th>
    <td class="minor">${metadata.namespace}</td>
    <td class="minor">${kindLabel(type)}</td>
    <td>${stateBadge(found)} ${progressOf(found)} ${explanationOf(found)}</td>
    <td class="number minor">${size === undefined ? '–' : formatBytes(size)}</td>
    <td class="number minor">
      <time datetime="${metadata.creationTimestamp ?? ''}">${toAge(metadata.creationTimestamp, now)}</time>
    </td>
  </tr>`;
};

const sortable = (query: Query, sort: SortKey, name: string): Pick<Column, 'heading' | 'sorted'> => {
  const isCurrent = query.sort === sort;
  const isDescending = isCurrent && !query.isDescending;
  const path = listPath({ ...query, sort, isDescending, after: '' });
  const arrow = isCurrent ? html`<span aria-hidden="true">${query.isDescending ? '↓' : '↑'}</span>` : '';
  return {
    heading: html`<a href="${path}">${name} ${arrow}</a>`,
    sorted: isCurrent ? (query.isDescending ? 'descending' : 'ascending') : undefined,
  };
};

const columnsOf = (query: Query): readonly Column[] => [
  sortable(query, 'name', 'Name'),
  { heading: 'Namespace', isMinor: true },
  { heading: 'Kind', isMinor: true },
  sortable(query, 'state', 'State'),
  { ...sortable(query, 'size', 'Size'), isNumber: true, isMinor: true },
  { ...sortable(query, 'age', 'Age'), isNumber: true, isMinor: true },
];

const choice = (name: string, label: string, current: string, all: readonly (readonly [string, string])[]): Markup =>
  html`<label>
    ${label}
    <select name="${name}">
      ${all.map(
        ([value, text]) => html`<option value="${value}" ${value === current ? html`selected` : ''}>${text}</option>`,
      )}
    </select>
  </label>`;

const filters = (query: Query): Markup =>
  html`<form class="filters" method="get" action="/objects" role="search">
    <label>Search <input type="search" name="q" value="${query.search}" placeholder="name or reason" /></label>
    <label>Namespace <input name="namespace" value="${query.namespace}" placeholder="all" autocomplete="off" /></label>
    ${choice('kind', 'Kind', query.kind, [
      ['', 'all'],
      ...listedTypes.map((type) => [typeName(type), kindLabel(type)] as const),
    ])}
    ${choice('state', 'State', query.state, [['', 'any'], ...stateNames.map((name) => [name, name] as const)])}
    ${query.sort === '' ? '' : html`<input type="hidden" name="sort" value="${query.sort}" />`}
    ${query.isDescending ? html`<input type="hidden" name="order" value="desc" />` : ''}
    <button>Show</button>
  </form>`;

const deniedNotice = ({ denied }: Listing, { namespace }: Query): Markup | '' => {
  if (denied.length === 0) return '';
  const kinds = denied.map((type) => `${typeName(type)} (${apiVersionOf(type)})`).join(', ');
  const what = namespace === '' ? 'in all namespaces: name a namespace that you may see' : `in namespace ${namespace}`;
  return notice('note', `You may not list ${kinds} ${what}.`);
};

const pager = ({ next, isCut }: Listing, query: Query): Markup | '' => {
  const first = query.after === '' ? '' : html`<a href="${listPath({ ...query, after: '' })}">First page</a>`;
  const more =
    next === undefined
      ? ''
      : html`<a rel="next" href="${listPath({ ...query, after: next })}">${isCut ? 'Search further' : 'Next page'}</a>`;
  return first === '' && more === '' ? '' : html`<nav class="pager" aria-label="Pages">${first} ${more}</nav>`;
};

export const listPage = (listing: Listing, query: Query, now: Date): Page => {
  const rows = listing.found.map((found) => rowOf(found, now));
  const isFiltered = query.search !== '' || query.state !== '' || query.kind !== '' || query.namespace !== '';
  const none = isFiltered
    ? html`<p class="empty">Nothing matches. <a href="/objects">Show everything</a></p>`
    : html`<p class="empty">
        There are no images yet. <a href="/import">Import one</a> or <a href="/upload">upload a file</a>.
      </p>`;
  const empty = listing.denied.length > 0 ? html`<p class="empty">There is nothing here that you may see.</p>` : none;
  return {
    title: 'Images and volumes',
    section: '/objects',
    live: listPath(query, '/live/objects', { since: toSince(listing.since) }),
    body: html`<h1>Images and volumes</h1>
      ${filters(query)} ${deniedNotice(listing, query)}
      ${rows.length === 0 ? empty : table('Images and volumes', columnsOf(query), rows)} ${pager(listing, query)}`,
  };
};
