// One object: where it stands and why, what was made for it, who uses it, and what can be done.
import { html } from 'hono/html';
import type { KubeEvent } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type Found, readyOf } from '#shared/catalogue/image.ts';
import { isForUploads } from '#shared/catalogue/ticket.ts';
import { type Story, childRow, isRetryAsked, refOf, shownOf, summaryOf, timeOf } from '#shared/catalogue/story.ts';
import { progressOf, stateBadge } from '#shared/console/list-page.ts';
import {
  type Column,
  type Markup,
  type Page,
  badge,
  notice,
  pathOf,
  table,
  toRows,
  yamlOf,
} from '#shared/console/markup.ts';
import { stepsOf } from '#shared/console/steps.ts';
import { uploadPath } from '#shared/console/query.ts';
import { kindLabel, objectPath, typeName } from '#shared/console/query.ts';
import type { Consumer } from '#shared/resources/consumers.ts';
import { toAge } from '#shared/runtime/age.ts';

/** Whether the disk was made of the file that this browser sent. `sent`: its sha256; empty without one. */
const comparisonOf = ({ image: { status } }: Found, sent: string): Markup | '' => {
  if (!/^[0-9a-f]{64}$/.test(sent)) return '';
  const arrived = status?.digests?.['sha256'];
  if (arrived === undefined) return notice('note', 'The file was sent. It is compared once its disk is written.');
  return arrived === sent
    ? notice('note', `What arrived is the file that was sent: its sha256 is ${sent}.`)
    : notice(
        'error',
        `What arrived is not the file that was sent, whose sha256 is ${sent}: delete this image and upload it again.`,
      );
};

const digestRows = ({ image: { status } }: Found): readonly (readonly [string, unknown])[] =>
  Object.entries(status?.digests ?? {}).map(([name, digest]) => ['Digest', html`<code>${name}:${digest}</code>`]);

const childTable = (children: readonly KubeObject[], now: Date): Markup =>
  children.length === 0
    ? html`<p class="empty">No children.</p>`
    : table(
        'Made for it',
        [{ heading: 'Object' }, { heading: 'State' }, { heading: 'Age', isNumber: true }],
        children.map((child) => {
          const [ref, state, age] = childRow(child, now);
          return html`<tr>
            <th scope="row">${ref}</th>
            <td>${state}</td>
            <td class="number">${age}</td>
          </tr>`;
        }),
      );

const eventColumns: readonly Column[] = [
  { heading: 'When', isNumber: true },
  { heading: 'Reason' },
  { heading: 'About', isMinor: true },
  { heading: 'Message' },
];

const eventRow = (event: KubeEvent, now: Date): Markup => {
  const { type = 'Normal', reason = '', involvedObject, message = '', count = 1 } = event;
  return html`<tr>
    <td class="number">${toAge(timeOf(event), now)}${count > 1 ? ` ×${count}` : ''}</td>
    <td>${badge(type === 'Warning' ? 'bad' : 'idle', reason)}</td>
    <td class="minor">${refOf(involvedObject.kind, involvedObject.name)}</td>
    <td>${message}</td>
  </tr>`;
};

const eventTable = (events: readonly KubeEvent[], now: Date): Markup =>
  events.length === 0
    ? html`<p class="empty">No events in the last hour.</p>`
    : table(
        'Events, the newest first',
        eventColumns,
        events.toReversed().map((event) => eventRow(event, now)),
      );

/** Its bytes can be taken. */
const isDownloadable = ({ type, image }: Found): boolean =>
  ['virtualmachineimages', 'datavolumes', 'persistentvolumeclaims'].includes(type.plural) &&
  (image.status?.phase === 'Bound' || readyOf({ type, image })?.status === 'True');

const actionsOf = (found: Found, path: string): Markup => {
  const { image } = found;
  const { status, metadata } = image;
  if (metadata.deletionTimestamp !== undefined) return html``;
  return html`<div class="actions">
    ${
      status?.phase === 'Failed'
        ? html`<form method="post" action="${path}/retry"><button class="main" id="retry">Retry</button></form>`
        : ''
    }
    ${isForUploads(image) && status?.phase !== 'Imported' ? html`<a class="button main" id="upload" href="${uploadPath(metadata)}">Upload a file</a>` : ''}
    ${isDownloadable(found) ? html`<a class="button" id="download" href="${path}/download">Download</a>` : ''}
    <a class="button" id="consumers" href="${path}/consumers">Consumers</a>
    <a class="button" id="delete" href="${path}/delete">Delete…</a>
  </div>`;
};

const headingOf = (found: Found): Markup => html`<h1>${found.image.metadata.name} ${stateBadge(found)}</h1>`;

export const objectPage = (story: Story, now: Date, sent = ''): Page => {
  const { found, children } = story;
  const { image, type } = found;
  const { metadata } = image;
  const path = objectPath(type, metadata);
  const summary = summaryOf(found, now).filter(([, text]) => (text ?? '') !== '');
  const rows: readonly (readonly [string, unknown])[] = [
    ['Kind', html`${kindLabel(type)}, ${typeName(type)}`],
    ['Namespace', metadata.namespace],
    [
      'Created',
      html`<time datetime="${metadata.creationTimestamp ?? ''}">${toAge(metadata.creationTimestamp, now)} ago</time>`,
    ],
    ...summary,
    ...digestRows(found),
  ];
  const { managedFields: _fields, ...shown } = metadata as typeof metadata & { readonly managedFields?: unknown };
  const since = `${typeName(type)}:${metadata.resourceVersion ?? ''}`;
  return {
    title: metadata.name,
    section: '/objects',
    live: pathOf('/live/object', { namespace: metadata.namespace, name: metadata.name, since }),
    body: html`${headingOf(found)} ${stepsOf(story, now)} ${progressOf(found)} ${comparisonOf(found, sent)}
      ${isRetryAsked(found) ? notice('note', 'A retry was asked for.') : ''} ${actionsOf(found, path)} ${toRows(rows)}
      <h2>Made for it</h2>
      ${childTable(children, now)}
      <h2>Events</h2>
      ${eventTable(shownOf(story, true), now)}
      <details class="object" id="yaml">
        <summary>As YAML</summary>
        ${yamlOf({ ...image, metadata: shown })}
      </details>`,
  };
};

const consumerTable = (consumers: readonly Consumer[], now: Date): Markup =>
  table(
    'Disks made from it',
    [
      { heading: 'Name' },
      { heading: 'Namespace' },
      { heading: 'Used by' },
      { heading: 'Made from' },
      { heading: 'Age', isNumber: true },
    ],
    consumers.map(({ object, machines, from }) => {
      const { namespace = '', name } = object.metadata;
      return html`<tr>
        <th scope="row">${refOf(object.kind, name)}</th>
        <td>${namespace}</td>
        <td>${machines.length === 0 ? '–' : machines.join(', ')}</td>
        <td>${refOf(from.groupKind.split('.')[0], from.name)}</td>
        <td class="number">${toAge(object.metadata.creationTimestamp, now)}</td>
      </tr>`;
    }),
  );

export interface Usage {
  readonly consumers: readonly Consumer[];
  /** Whether other namespaces could not be looked at. */
  readonly isPartial: boolean;
}

const usageOf = ({ consumers, isPartial }: Usage, now: Date): Markup =>
  html`${consumers.length === 0 ? html`<p>No disk was made from it.</p>` : consumerTable(consumers, now)}
  ${isPartial ? notice('note', 'You may not list every namespace: there may be more that you cannot see.') : ''}`;

export const consumersPage = (found: Found, usage: Usage, now: Date): Page => ({
  title: `Consumers of ${found.image.metadata.name}`,
  section: '/objects',
  body: html`${headingOf(found)}
    <h2>Disks made from it</h2>
    ${usageOf(usage, now)}
    <p><a href="${objectPath(found.type, found.image.metadata)}">Back</a></p>`,
});

export const deletePage = (found: Found, usage: Usage, now: Date): Page => {
  const { metadata } = found.image;
  const path = objectPath(found.type, metadata);
  const isUsed = usage.consumers.length > 0;
  return {
    title: `Delete ${metadata.name}`,
    section: '/objects',
    body: html`<h1>Delete ${metadata.name}?</h1>
      <p>
        This deletes the ${kindLabel(found.type)} <b>${metadata.name}</b> in namespace ${metadata.namespace}, with
        everything that was made for it. It cannot be undone.
      </p>
      ${isUsed ? notice('note', 'It is in use. Disks that are filled keep their contents; new ones cannot be made from it.') : ''}
      ${usageOf(usage, now)}
      <form class="actions" method="post" action="${path}/delete">
        <input type="hidden" name="uid" value="${metadata.uid ?? ''}" />
        <button class="danger">Delete ${metadata.name}</button>
        <a class="button" href="${path}">Cancel</a>
      </form>`,
  };
};
