// Which disks were made from a golden image that offers another version by now. Pure.
import type { DataSource } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import {
  type Consumer,
  consumersOf,
  contentOf,
  contentOfDisk,
  type Inventory,
  isDataSource,
  keyOf,
  placeOf,
  pointedTo,
} from '#shared/resources/consumers.ts';

export interface OutdatedDisk extends Consumer {
  readonly dataSource: DataSource;
  /** The version it was made from; `undefined` once that has been removed. */
  readonly version: string | undefined;
  /** The version that its DataSource offers. */
  readonly current: string;
  /** How many versions the offered one is newer, of those that are kept; negative after a rollback, `undefined` where its own version is not kept. */
  readonly behind: number | undefined;
}

interface Version {
  readonly name: string;
  readonly content: string | undefined;
  /** RFC 3339. */
  readonly since: string;
}

/**
 * Disks made from a golden image that follows a source, when that offered another version than now. A disk that names a DataSource is outdated by that
 * one alone: another channel of the same image may be further on.
 */
export const outdatedDisks = (inventory: Inventory): readonly OutdatedDisk[] => {
  const managed = inventory.objects.filter(isDataSource).filter(isManaged);
  const keys = new Set(managed.map((one) => keyOf(placeOf(one))));
  return managed.flatMap((dataSource) => {
    const own = keyOf(placeOf(dataSource));
    const isOfAnother = ({ from }: Consumer): boolean => keys.has(keyOf(from)) && keyOf(from) !== own;
    const [current] = pointedTo(dataSource);
    const content = current && contentOf(current, inventory);
    if (current === undefined || content === undefined) return [];
    const versions = versionsOf(dataSource, inventory);
    const offered = versions.findIndex(({ name }) => name === current.name);
    return consumersOf(dataSource, inventory).flatMap((consumer): readonly OutdatedDisk[] => {
      if (isOfAnother(consumer) || isDataSource(consumer.object)) return [];
      const held = contentOfDisk(consumer.object, inventory);
      if (held === undefined || held === content) return [];
      const at = versions.findIndex((version) => version.content === held);
      const version = versions[at]?.name;
      return [{ ...consumer, dataSource, version, current: current.name, behind: at < 0 ? undefined : at - offered }];
    });
  });
};

const isManaged = ({ metadata }: DataSource): boolean => (metadata.labels?.[cdiLabels.cron] ?? '') !== '';

/** Newest first. */
const versionsOf = ({ metadata }: DataSource, inventory: Inventory): readonly Version[] => {
  const forms = [...inventory.claims, ...inventory.snapshots].filter(
    (form) =>
      form.metadata.namespace === metadata.namespace &&
      form.metadata.labels?.[cdiLabels.cron] === metadata.labels?.[cdiLabels.cron],
  );
  const versions = forms.map((form) => ({
    name: form.metadata.name,
    content: contentOf(placeOf(form), inventory),
    since: form.metadata.creationTimestamp ?? '',
  }));
  const byName = new Map(versions.map((version) => [version.name, version]));
  return [...byName.values()].toSorted((a, b) => b.since.localeCompare(a.since) || a.name.localeCompare(b.name));
};
