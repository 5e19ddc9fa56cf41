// What the backup targets hold of the images here, and what they lack: every image is read, once a page.
import { html } from 'hono/html';
import type { BackupStatus } from '#shared/api/image-status.ts';
import { findCondition } from '#shared/api/conditions.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { type AnyImage, type Found, imageTypes } from '#shared/catalogue/image.ts';
import { readOr } from '#shared/catalogue/objects.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { ago, minor, section } from '#shared/console/golden-page.ts';
import { type Markup, type Page, badge, notice } from '#shared/console/markup.ts';
import { linkTo, mostRows, namespaceFilter } from '#shared/console/queue-page.ts';

interface Backups {
  readonly kept: number;
  readonly bytes: number;
  readonly targets: readonly string[];
  /** Asked for, and not complete: how many, and the first of them. */
  readonly lacking: number;
  readonly missing: readonly Found[];
  /** Why images of a kind may not be seen; `undefined`: they may. */
  readonly denied: string | undefined;
}

const conditionsOf = ({ status }: AnyImage) =>
  ['DataReady', 'MetadataReady'].map((type) => findCondition(status?.conditions, type));

const backupOf = ({ status }: AnyImage): BackupStatus | undefined =>
  (status as { readonly backup?: BackupStatus } | undefined)?.backup;

/** Object by object, so that ten thousand images are not kept at once. */
export const readBackups = async (kube: KubeClient, namespace: string | undefined): Promise<Backups> => {
  let [kept, bytes, lacking] = [0, 0, 0];
  let denied: string | undefined;
  const targets = new Set<string>();
  const missing: Found[] = [];
  for (const type of Object.values(imageTypes)) {
    const read = await readOr(async () => {
      for await (const image of kube.listAll(type, { namespace })) {
        const conditions = conditionsOf(image).filter((condition) => condition !== undefined);
        const backup = backupOf(image);
        if (backup !== undefined) targets.add(backup.target);
        if (conditions.some(({ status }) => status !== 'True')) {
          lacking += 1;
          if (lacking <= mostRows) missing.push({ type, image });
        } else if (backup !== undefined) [kept, bytes] = [kept + 1, bytes + (image.status?.virtualSize ?? 0)];
      }
      return [];
    });
    if (read.is === 'denied') denied = read.message;
  }
  return { kept, bytes, targets: [...targets], lacking, missing, denied };
};

const missingRow = (found: Found, now: Date): Markup => {
  const open = conditionsOf(found.image).find((condition) => condition !== undefined && condition.status !== 'True');
  return html`<tr>
    <th scope="row">${linkTo(found)}</th>
    <td class="minor">${found.image.metadata.namespace}</td>
    <td>${badge('busy', open?.reason ?? '')} <small class="why">${open?.message}</small></td>
    <td class="minor">${ago(backupOf(found.image)?.time, now)}</td>
  </tr>`;
};

const backupWords = ({ kept, bytes, targets, lacking }: Backups): string =>
  kept + lacking === 0
    ? 'No image that you may see here is kept in a backup target.'
    : `${kept} of ${kept + lacking} images are kept${targets.length === 0 ? '' : ` in ${targets.join(', ')}`}: disks of ${formatBytes(bytes)}.`;

export const backupsPage = (backups: Backups, namespace: string, now: Date): Page => ({
  title: 'Backups',
  section: '/backups',
  body: html`<h1>Backups</h1>
    ${namespaceFilter('/backups', namespace)} ${backups.denied === undefined ? '' : notice('note', backups.denied)}
    <p>${backupWords(backups)}</p>
    ${section(
      'Images that are not kept yet',
      [{ heading: 'Name' }, minor('Namespace'), { heading: 'State' }, minor('Last kept')],
      backups.missing.map((found) => missingRow(found, now)),
    )}
    ${backups.lacking > mostRows ? html`<p>${backups.lacking - mostRows} more are not kept yet.</p>` : ''}`,
});
