// The order of API versions: general availability first, then beta, then alpha, newest first; odd names last.

const parse = (version: string): readonly [number, number, number] | undefined => {
  const found = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (found === null) return undefined;
  const stage = found[2] === undefined ? 2 : found[2] === 'beta' ? 1 : 0;
  return [stage, Number(found[1]), Number(found[3] ?? 0)];
};

/** Compares for sorting, most preferred first. */
export const compareVersions = (left: string, right: string): number => {
  const [a, b] = [parse(left), parse(right)];
  if (a === undefined || b === undefined) {
    return a === b ? left.localeCompare(right) : a === undefined ? 1 : -1;
  }
  return b[0] - a[0] || b[1] - a[1] || b[2] - a[2];
};
