// A local container has no file system of its own: the paths it is told are replaced by those on the host. Pure.

/** What a path inside the container is on the host. */
export interface PathMapping {
  /** Absolute path in the container, without a slash at the end. */
  readonly from: string;
  readonly to: string;
}

export const mappingOf = (from: string, to: string): PathMapping => ({ from: from.replace(/(?<=.)\/+$/, ''), to });

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);

/**
 * Replaces every mapped path in `text`, also as the beginning of a longer path and inside JSON or `key=value` text. Something is a path only
 * where it does not continue another one: neither `/data2` nor `http://host/data` contains `/data`. The longest mapping wins, and what was
 * put in is not looked at again.
 */
export const mapPaths = (text: string, mappings: readonly PathMapping[]): string => {
  if (mappings.length === 0) return text;
  const targets = new Map(mappings.map(({ from, to }) => [from, to]));
  const longestFirst = [...targets.keys()].toSorted((a, b) => b.length - a.length).map(escaped);
  const pattern = new RegExp(String.raw`(?<![\w./-])(?:${longestFirst.join('|')})(?=\/|[^\w.-]|$)`, 'g');
  return text.replaceAll(pattern, (found) => targets.get(found) ?? found);
};
