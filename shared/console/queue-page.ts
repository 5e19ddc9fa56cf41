// Transfers now, sources that asked to wait, and what the backup target holds: read with the rights of who looks, and shown.
import { html } from 'hono/html';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import type { BackupStatus } from '#shared/api/image-status.ts';
import { findCondition } from '#shared/api/conditions.ts';
import { type Pod, pods } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { type AnyImage, type Found, imageTypes } from '#shared/catalogue/image.ts';
import { listIfAny, readOr, withDetail } from '#shared/catalogue/objects.ts';
import { type Transfer, listTransfers } from '#shared/catalogue/transfers.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { ago, minor, section } from '#shared/console/golden-page.ts';
import { progressOf } from '#shared/console/list-page.ts';
import { type Markup, type Page, badge, notice, pathOf } from '#shared/console/markup.ts';
import { allTypes, objectPath } from '#shared/console/query.ts';
import { toAge, toSpan } from '#shared/runtime/age.ts';

/** Rows of each table; a thousand may wait. */
const mostRows = 100;

interface Moving extends Transfer {
  /** What it works for; `undefined`: it may not be seen, or is gone. */
  readonly found: Found | undefined;
  readonly node: string | undefined;
}

interface Backups {
  readonly kept: number;
  readonly bytes: number;
  readonly targets: readonly string[];
  /** Asked for, and not complete. */
  readonly missing: readonly Found[];
}

export interface Queue {
  readonly moving: readonly Moving[];
  /** Transfers that are not shown. */
  readonly more: number;
  readonly waiting: readonly DataImportCron[];
  readonly backups: Backups;
  readonly denied: string | undefined;
}

const typeOfOwner = ({ owner }: Transfer) => allTypes.find(({ kind, group }) => `${kind}.${group}` === owner.groupKind);

const readOwner = async (kube: KubeClient, transfer: Transfer): Promise<Found | undefined> => {
  const type = typeOfOwner(transfer);
  if (type === undefined) return undefined;
  const { namespace, owner } = transfer;
  const read = await readOr(async () => [await kube.get(type, { namespace, name: owner.name })]);
  const [image] = read.is === 'read' ? read.items : [];
  return image?.metadata.uid === owner.uid ? { type, image: withDetail(image) } : undefined;
};

const nodeOf = (running: readonly Pod[], { owner }: Transfer): string | undefined =>
  running.find(({ metadata }) => metadata.labels?.[labels.ownerUid] === owner.uid)?.spec.nodeName;

const conditionsOf = ({ status }: AnyImage) =>
  ['DataReady', 'MetadataReady'].map((type) => findCondition(status?.conditions, type));

const backupOf = ({ status }: AnyImage): BackupStatus | undefined =>
  (status as { readonly backup?: BackupStatus } | undefined)?.backup;

/** Object by object, so that ten thousand images are not kept at once. */
const readBackups = async (kube: KubeClient, namespace: string | undefined): Promise<Backups> => {
  let [kept, bytes] = [0, 0];
  const targets = new Set<string>();
  const missing: Found[] = [];
  for (const type of Object.values(imageTypes))
    await readOr(async () => {
      for await (const image of kube.listAll(type, { namespace })) {
        const conditions = conditionsOf(image).filter((condition) => condition !== undefined);
        const backup = backupOf(image);
        if (backup !== undefined) targets.add(backup.target);
        if (conditions.some(({ status }) => status !== 'True')) missing.push({ type, image });
        else if (backup !== undefined) [kept, bytes] = [kept + 1, bytes + (image.status?.virtualSize ?? 0)];
      }
      return [];
    });
  return { kept, bytes, targets: [...targets], missing };
};

export const readQueue = async (kube: KubeClient, namespace: string | undefined): Promise<Queue> => {
  const [transfers, crons, working, backups] = await Promise.all([
    listTransfers(kube, namespace),
    listIfAny(kube, dataImportCronKind.type, namespace),
    listIfAny(kube, pods, namespace, labels.ownerUid),
    readBackups(kube, namespace),
  ]);
  const all = transfers.is === 'read' ? transfers.items : [];
  const running = working.filter(({ status }) => status?.phase === 'Running');
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
    backups,
    denied: transfers.is === 'denied' ? transfers.message : undefined,
  };
};

const link = ({ type, image: { metadata } }: Found): Markup =>
  html`<a href="${objectPath(type, metadata)}">${metadata.name}</a>`;

const movingRow = ({ found, owner, namespace, role, host, node, isWaiting, place, since }: Moving, now: Date): Markup =>
  html`<tr>
    <th scope="row">${found === undefined ? owner.name : link(found)}</th>
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

const missingRow = (found: Found, now: Date): Markup => {
  const open = conditionsOf(found.image).find((condition) => condition !== undefined && condition.status !== 'True');
  return html`<tr>
    <th scope="row">${link(found)}</th>
    <td class="minor">${found.image.metadata.namespace}</td>
    <td>${badge('busy', open?.reason ?? '')} <small class="why">${open?.message}</small></td>
    <td class="minor">${ago(backupOf(found.image)?.time, now)}</td>
  </tr>`;
};

const backupWords = ({ kept, bytes, targets, missing }: Backups): string =>
  kept + missing.length === 0
    ? 'No image that you may see here is kept in a backup target.'
    : `${kept} of ${kept + missing.length} images are kept${targets.length === 0 ? '' : ` in ${targets.join(', ')}`}: disks of ${formatBytes(bytes)}.`;

export const queuePage = ({ moving, more, waiting, backups, denied }: Queue, namespace: string, now: Date): Page => ({
  title: 'Transfers',
  section: '/queue',
  live: pathOf('/live/queue', { namespace }),
  body: html`<h1>Transfers</h1>
    <form class="filters" method="get" action="/queue" role="search">
      <label>Namespace <input name="namespace" value="${namespace}" placeholder="all" autocomplete="off" /></label>
      <button>Show</button>
    </form>
    ${denied === undefined ? '' : notice('note', denied)}
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
    )}
    <h2>Backups</h2>
    <p>${backupWords(backups)}</p>
    ${section(
      'Images that are not kept yet',
      [{ heading: 'Name' }, minor('Namespace'), { heading: 'State' }, minor('Last kept')],
      backups.missing.slice(0, mostRows).map((found) => missingRow(found, now)),
    )}`,
});
