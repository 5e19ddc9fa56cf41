// Lines up rows of text: the first column to the left, the others to the right. Called by benchmarks.

export const toTable = (rows: readonly (readonly string[])[]): string => {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, cell.length)));
  const align = (cell: string, index: number): string =>
    index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[index] ?? 0);
  return rows.map((row) => row.map(align).join('  ').trimEnd()).join('\n');
};

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
