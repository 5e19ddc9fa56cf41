// Transfers now, and sources that asked to wait: read with the rights of who looks, and shown. Images are read one by one, for there may be thousands.
import { html } from 'hono/html';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type Pod, jobs, pods } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import type { Found } from '#shared/catalogue/image.ts';
import { listIfAny, readAll, readOr } from '#shared/catalogue/objects.ts';
import { type Transfer, listTransfers, readOwner } from '#shared/catalogue/transfers.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { minor, section } from '#shared/console/golden-page.ts';
import { progressOf } from '#shared/console/list-page.ts';
import { type Markup, type Page, badge, notice, pathOf } from '#shared/console/markup.ts';
import { type AnyType, listedTypes, objectPath, toSince, typeName } from '#shared/console/query.ts';
import { toAge, toSpan } from '#shared/runtime/age.ts';

/** Rows of each table; a thousand may wait. */
export const mostRows = 100;

interface Moving extends Transfer {
  /** What it works for; `undefined`: it may not be seen, or is gone. */
  readonly found: Found | undefined;
  readonly node: string | undefined;
}

export interface Queue {
  readonly moving: readonly Moving[];
  /** Transfers that are not shown. */
  readonly more: number;
  readonly waiting: readonly DataImportCron[];
  /** From which version on each kind is to be watched. */
  readonly since: Readonly<Record<string, string>>;
  readonly denied: string | undefined;
}

const nodeOf = (running: readonly Pod[], { owner }: Transfer): string | undefined =>
  running.find(({ metadata }) => metadata.labels?.[labels.ownerUid] === owner.uid)?.spec.nodeName;

/** What the page is about: a change of any of them may change it. */
export const queueTypes: readonly AnyType[] = [jobs as never, dataImportCronKind.type as never, ...listedTypes];

/** Without their objects. A kind that may not be listed is not watched. */
const readVersions = async (
  kube: KubeClient,
  namespace: string | undefined,
): Promise<Readonly<Record<string, string>>> => {
  const read = queueTypes.map(async (type) => {
    const versions = await readOr(async () => [
      (await kube.list(type, { namespace, limit: 1 })).metadata.resourceVersion,
    ]);
    return versions.is === 'read' ? versions.items.map((version) => [typeName(type), version] as const) : [];
  });
  return Object.fromEntries((await Promise.all(read)).flat());
};

export const readQueue = async (kube: KubeClient, namespace: string | undefined): Promise<Queue> => {
  const [since, transfers, crons, working] = await Promise.all([
    readVersions(kube, namespace),
    listTransfers(kube, namespace),
    listIfAny(kube, dataImportCronKind.type, namespace),
    readAll(kube, pods, { namespace, labelSelector: labels.ownerUid, fieldSelector: 'status.phase=Running' }),
  ]);
  const all = transfers.is === 'read' ? transfers.items : [];
  const running = working.is === 'read' ? working.items : [];
  const moving = await Promise.all(
    all.slice(0, mostRows).map(async (transfer) => ({
      ...transfer,
      found: await readOwner(kube, transfer),
      node: nodeOf(running, transfer),
    })),
  );
  return {
    moving,
    more: all.length - moving.length,
    waiting: crons.filter(({ status }) => status?.waiting !== undefined),
    since,
    denied: transfers.is === 'denied' ? transfers.message : undefined,
  };
};

export const linkTo = ({ type, image: { metadata } }: Found): Markup =>
  html`<a href="${objectPath(type, metadata)}">${metadata.name}</a>`;

const movingRow = ({ found, owner, namespace, role, host, node, isWaiting, place, since }: Moving, now: Date): Markup =>
  html`<tr>
    <th scope="row">${found === undefined ? owner.name : linkTo(found)}</th>
    <td class="minor">${namespace}</td>
    <td class="minor">${owner.groupKind.split('.')[0]}</td>
    <td>${role}${host === '' ? '' : html` <small class="why">${role === 'export' ? 'to' : 'from'} ${host}</small>`}</td>
    <td>
      ${isWaiting ? badge('idle', 'Waiting') : badge('busy', 'Running')}
      ${isWaiting ? html`<small class="why">${place}</small>` : found === undefined ? '' : progressOf(found)}
    </td>
    <td class="minor">${node ?? '–'}</td>
    <td class="number minor">${toAge(since, now)}</td>
  </tr>`;

const waitingRow = ({ metadata, status }: DataImportCron, now: Date): Markup => {
  const { message = '', until = '' } = status?.waiting ?? {};
  const left = Date.parse(until) - now.getTime();
  return html`<tr>
    <th scope="row"><a href="${objectPath(dataImportCronKind.type, metadata)}">${metadata.name}</a></th>
    <td class="minor">${metadata.namespace}</td>
    <td>${message}</td>
    <td class="number">${left > 0 ? `in ${toSpan(left)}` : 'due'}</td>
  </tr>`;
};

export const namespaceFilter = (path: string, namespace: string): Markup =>
  html`<form class="filters" method="get" action="${path}" role="search">
    <label>Namespace <input name="namespace" value="${namespace}" placeholder="all" autocomplete="off" /></label>
    <button>Show</button>
  </form>`;

export const queuePage = ({ moving, more, waiting, since, denied }: Queue, namespace: string, now: Date): Page => ({
  title: 'Transfers',
  section: '/queue',
  live: pathOf('/live/queue', { namespace, since: toSince(since) }),
  body: html`<h1>Transfers</h1>
    ${namespaceFilter('/queue', namespace)} ${denied === undefined ? '' : notice('note', denied)}
    ${moving.length === 0 ? html`<p class="empty">No import or export that you may see here runs or waits.</p>` : ''}
    ${section(
      'Imports and exports',
      [
        { heading: 'For' },
        minor('Namespace'),
        minor('Kind'),
        { heading: 'Transfer' },
        { heading: 'State' },
        minor('Node'),
        { ...minor('Age'), isNumber: true },
      ],
      moving.map((one) => movingRow(one, now)),
    )}
    ${more === 0 ? '' : html`<p>${more} more wait behind these.</p>`}
    ${section(
      'Sources that asked to wait',
      [{ heading: 'Source of' }, minor('Namespace'), { heading: 'Why' }, { heading: 'Next poll', isNumber: true }],
      waiting.map((cron) => waitingRow(cron, now)),
    )}`,
});
