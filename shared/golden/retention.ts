// Which versions of a golden image may go. Pure; called by the plan of crons.

export interface Version {
  readonly name: string;
  /** RFC 3339: when it was last what the cron offered; empty when unknown. */
  readonly lastUse: string;
}

export interface Retention {
  /** How many to keep, the current one included; at least 1 whatever is written here. */
  readonly keep: number;
  /** The version offered now. */
  readonly current: string;
  /** Versions that something refers to: a data source, a running clone, a backup, an import under way. */
  readonly inUse: ReadonlySet<string>;
}

const timeOf = ({ lastUse }: Version): number => {
  const time = Date.parse(lastUse);
  return Number.isNaN(time) ? 0 : time;
};

/** Newest first. The name decides between equals, so that two looks agree. */
const byUse = (a: Version, b: Version): number => timeOf(b) - timeOf(a) || a.name.localeCompare(b.name);

/** The versions to remove, oldest first. Never the current one, nor one in use; those count among the kept all the same. */
export const outdatedVersions = (
  versions: readonly Version[],
  { keep, current, inUse }: Retention,
): readonly string[] => {
  const others = versions.filter(({ name }) => name !== current).sort(byUse);
  return others
    .slice(Math.max(1, keep) - 1)
    .map(({ name }) => name)
    .filter((name) => !inUse.has(name))
    .reverse();
};
