// Columns as kubectl sets them: three spaces apart, nothing behind the last one.

const gap = '   ';

export const alignColumns = (rows: readonly (readonly string[])[]): readonly string[] => {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, cell.length)));
  return rows.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join(gap)
      .trimEnd(),
  );
};

/** A heading and rows; cells that say nothing become `-`. */
export const tableOf = (
  heading: readonly string[],
  rows: readonly (readonly (string | number | undefined)[])[],
): string =>
  alignColumns([
    heading,
    ...rows.map((row) => row.map((cell) => (cell === undefined || cell === '' ? '-' : `${cell}`))),
  ])
    .map((line) => `${line}\n`)
    .join('');
