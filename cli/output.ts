// How objects are printed: `-o json|yaml|wide|name|custom-columns=…` for scripts, tables for people.
import { stringify } from 'yaml';
import { type OptionSpec, type Values, textOf, type Call } from '#cli/command.ts';
import { type Paint, paintOn } from '#cli/paint.ts';
import { type KubeObject, apiVersionOf } from '#shared/api/object.ts';
import { type Found, type AnyImage, groupOf, imageTypes, isImage, readyOf, stateOf } from '#shared/catalogue/image.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { toAge } from '#shared/runtime/age.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

const formats = ['json', 'yaml', 'wide', 'name'] as const;
export type OutputFormat = (typeof formats)[number] | 'table';

export const outputOption = {
  output: { type: 'string', short: 'o', value: 'FORMAT', help: 'form of what is printed', oneOf: formats },
} as const satisfies Readonly<Record<string, OptionSpec>>;

const columnsPrefix = 'custom-columns=';

/** Of commands that list: columns of the caller's own, too. */
export const listOutputOption = {
  output: {
    ...outputOption.output,
    help: `form of what is printed (${columnsPrefix}HEADING:.field,… has columns of your own)`,
    orPrefix: columnsPrefix,
  },
} as const satisfies Readonly<Record<string, OptionSpec>>;

export const outputOf = (values: Values): OutputFormat =>
  formats.find((format) => format === textOf(values, 'output')) ?? 'table';

export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

/** A path as kubectl takes them: `.status.phase`, `.spec.channels[0].name`, `.metadata.labels.a\.b/c`. */
const fieldAt = (object: unknown, path: string): unknown => {
  const keys = [...path.matchAll(/\.((?:\\.|[^.[\]\\])+)|\[(\d+)\]/g)].map(([, key, index]) =>
    key === undefined ? Number(index) : key.replaceAll(/\\(.)/g, '$1'),
  );
  let value = object;
  for (const key of keys) value = (value as Record<string | number, unknown> | null | undefined)?.[key];
  return value;
};

const wellFormed = /^(\.(\\.|[^.[\]\\])+|\[\d+\])+$/;

/** Columns as `-o custom-columns=NAME:.metadata.name` has them; `undefined`: none were asked for. */
export const customTable = (values: Values, objects: readonly object[]): string | undefined => {
  const text = textOf(values, 'output');
  if (text?.startsWith(columnsPrefix) !== true) return undefined;
  const columns = text
    .slice(columnsPrefix.length)
    .split(',')
    .map((column) => {
      const at = column.indexOf(':');
      const [heading, written] = [column.slice(0, at), column.slice(at + 1)];
      const path = written.replace(/^\{(.*)\}$/, '$1');
      if (at <= 0 || !wellFormed.test(path))
        throw new InvalidInput(`--output: write columns as HEADING:.field.field, not ${column}`);
      return { heading, path };
    });
  const cell = (value: unknown): string =>
    value === undefined || value === null
      ? '<none>'
      : typeof value === 'object'
        ? JSON.stringify(value)
        : String(value as string | number | boolean);
  return tableOf(
    columns.map(({ heading }) => heading),
    objects.map((object) => columns.map(({ path }) => cell(fieldAt(object, path)))),
  );
};

export const serialise = (value: unknown, format: 'json' | 'yaml'): string =>
  format === 'json' ? `${JSON.stringify(value, undefined, 2)}\n` : stringify(value);

/** `undefined`: the caller draws its own table. */
export const printedList = (objects: readonly KubeObject[], format: OutputFormat): string | undefined => {
  if (format === 'name') return objects.map((object) => `${nameOf(object)}\n`).join('');
  if (format !== 'json' && format !== 'yaml') return undefined;
  return serialise({ apiVersion: 'v1', kind: 'List', metadata: {}, items: objects }, format);
};

export const printedObject = (object: KubeObject, format: OutputFormat): string | undefined => {
  if (format === 'name') return `${nameOf(object)}\n`;
  return format === 'json' || format === 'yaml' ? serialise(object, format) : undefined;
};

/** `virtualmachineimage.harvesterhci.io/jammy`, as kubectl names objects. */
export const nameOf = ({ apiVersion, kind, metadata }: KubeObject): string => {
  const [group, version] = apiVersion.split('/');
  return `${kind.toLowerCase()}${version === undefined ? '' : `.${group}`}/${metadata.name}`;
};

/** No screen is so narrow that names should be cut to it. */
const fewestColumns = 80;
const fewestInCell = 6;

/** Width of tables: a person sees a line of the screen for each row, a program and `-o wide` get everything; `undefined`: any width. */
export const screenOf = ({ values, terminal }: Pick<Call, 'values' | 'terminal'>): number | undefined =>
  terminal.columns === undefined || outputOf(values) === 'wide' ? undefined : Math.max(terminal.columns, fewestColumns);

/** Names keep their end, by which versions differ; a text keeps its beginning. */
const cut = (cell: string, width: number): string => {
  if (cell.length <= width) return cell;
  const tail = cell.includes(' ') ? 0 : Math.floor((width - 1) / 2);
  return `${cell.slice(0, width - 1 - tail)}…${tail === 0 ? '' : cell.slice(-tail)}`;
};

const widthsOf = (rows: readonly (readonly string[])[]): number[] => {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, cell.length)));
  return widths;
};

/** The rows within `most` columns: the widest column is cut first. */
const cutRows = (rows: readonly (readonly string[])[], most: number): readonly (readonly string[])[] => {
  const widths = widthsOf(rows);
  const room = most - gap.length * (widths.length - 1);
  let total = widths.reduce((sum, width) => sum + width, 0);
  while (total > room) {
    const widest = Math.max(...widths);
    if (widest <= fewestInCell) break;
    // Of equal columns the last one: names come first.
    widths[widths.lastIndexOf(widest)] = widest - 1;
    total -= 1;
  }
  return rows.map((row) => row.map((cell, index) => cut(cell, widths[index] ?? 0)));
};

/** The cell in colours. `row` 0 is the heading. */
export type PaintCell = (cell: string, row: number, column: number) => string;

/** Columns as kubectl sets them: three spaces apart, nothing behind the last one. */
const gap = '   ';

export const alignColumns = (
  rows: readonly (readonly string[])[],
  painted: PaintCell = (cell) => cell,
): readonly string[] => {
  const widths = widthsOf(rows);
  return rows.map((row, at) =>
    row
      .map((cell, index) => painted(cell, at, index) + ' '.repeat((widths[index] ?? 0) - cell.length))
      .join(gap)
      .trimEnd(),
  );
};

const screenColumns = 80;

/** Lines of one screen's width; those behind the first begin with `indent`. A word that is longer than a line is left whole. */
export const wrap = (text: string, indent: string): readonly string[] => {
  const [lead = ''] = /^ */.exec(text) ?? [];
  const lines: string[] = [];
  let line = lead;
  // Spaces within the first column keep it aligned.
  for (const [word] of text.slice(lead.length).matchAll(/\S+ */g)) {
    const isFull = (line + word).trimEnd().length > screenColumns;
    if (isFull && line.trim() !== '') {
      lines.push(line.trimEnd());
      line = indent;
    }
    line += word;
  }
  return [...lines, line.trimEnd()];
};

/** A heading and rows; cells that say nothing become `-`. `most`: see `screenOf`. */
export const tableOf = (
  heading: readonly string[],
  rows: readonly (readonly (string | number | undefined)[])[],
  most?: number,
  painted?: PaintCell,
): string => {
  const cells = [
    heading,
    ...rows.map((row) => row.map((cell) => (cell === undefined || cell === '' ? '-' : `${cell}`))),
  ];
  return alignColumns(most === undefined ? cells : cutRows(cells, most), painted)
    .map((line) => `${line}\n`)
    .join('');
};

/** Images as a table: what `bullion images` and `-o wide` show. */
const bytes = (size: number | undefined): string | undefined => (size === undefined ? undefined : formatBytes(size));

interface Column {
  readonly heading: string;
  readonly cell: (found: Found, now: Date) => string | number | undefined;
  /** Shown in the colour of the state. */
  readonly isState?: true;
}

const namespaceColumn: Column = { heading: 'NAMESPACE', cell: ({ image }) => image.metadata.namespace };
const columns: readonly Column[] = [
  { heading: 'NAME', cell: ({ image }) => image.metadata.name },
  { heading: 'GROUP', cell: groupOf },
  { heading: 'READY', cell: (found) => readyOf(found)?.status ?? 'False', isState: true },
  { heading: 'PHASE', cell: ({ image }) => image.status?.phase, isState: true },
  {
    heading: 'PROGRESS',
    // Of a DataVolume it is text: with the sign already, or N/A.
    cell: ({ image: { status } }) => `${status?.progress ?? ''}`.replace(/^[\d.]+$/, '$&%'),
  },
  { heading: 'VIRTUAL SIZE', cell: ({ image }) => bytes(image.status?.virtualSize) },
  { heading: 'REASON', cell: (found) => readyOf(found)?.reason },
  { heading: 'AGE', cell: ({ image }, now) => toAge(image.metadata.creationTimestamp, now) },
];
const wideColumns: readonly Column[] = [
  { heading: 'SIZE', cell: ({ image }) => bytes(image.status?.size) },
  { heading: 'FORMAT', cell: ({ image }) => image.status?.format },
  { heading: 'STORAGE CLASS', cell: ({ image }) => image.status?.storageClassName },
  { heading: 'MESSAGE', cell: (found) => readyOf(found)?.message },
];

interface TableOptions {
  readonly isEverywhere?: boolean;
  readonly isWide: boolean;
  readonly now: Date;
  /** See `screenOf`. */
  readonly most?: number | undefined;
  /** Default: no colours. */
  readonly paint?: Paint | undefined;
}

const draw = (
  own: readonly Column[],
  found: readonly Found[],
  { isEverywhere = false, isWide, now, most, paint }: TableOptions,
): string => {
  const shown = [...(isEverywhere ? [namespaceColumn] : []), ...own, ...(isWide ? wideColumns : [])];
  return tableOf(
    shown.map(({ heading }) => heading),
    found.map((one) => shown.map(({ cell }) => cell(one, now))),
    most,
    (text, row, column) => {
      const one = found[row - 1];
      return one === undefined || paint === undefined || shown[column]?.isState === undefined || text === '-'
        ? text
        : paint(stateOf(one), text);
    },
  );
};

export const imageTable = (found: readonly Found[], options: TableOptions): string => draw(columns, found, options);

/** By the name that `bullion why` takes: `harvester/jammy`, `datavolume/root`. */
export const whyName = (found: Found): string =>
  `${isImage(found.type) ? groupOf(found) : found.type.kind.toLowerCase()}/${found.image.metadata.name}`;

const objectColumns: readonly Column[] = [
  { heading: 'NAME', cell: whyName },
  ...columns.filter(({ heading }) => heading !== 'NAME' && heading !== 'GROUP'),
];

/** What a DataSource stands for; with the namespace where that is another one. */
const versionCell = ({ image: { spec, metadata } }: Found): string | undefined => {
  const { pvc, snapshot } = (spec as DataSource['spec'] | undefined)?.source ?? {};
  const { namespace = metadata.namespace, name } = pvc ?? snapshot ?? {};
  return namespace === metadata.namespace ? name : `${namespace}/${name}`;
};

/** DataSources alone have no progress and no size of their own. */
const dataSourceColumns: readonly Column[] = [
  ...objectColumns.filter(({ heading }) => heading === 'NAME' || heading === 'READY'),
  { heading: 'VERSION', cell: versionCell },
  ...objectColumns.filter(({ heading }) => heading === 'REASON' || heading === 'AGE'),
];

/** Objects of every kind. */
export const objectTable = (found: readonly Found[], options: TableOptions): string => {
  const isOffers = found.every(({ type }) => type.kind === dataSourceKind.type.kind);
  return draw(isOffers ? dataSourceColumns : objectColumns, found, options);
};

const typeOf = ({ apiVersion }: AnyImage): Found['type'] =>
  Object.values(imageTypes).find((type) => apiVersionOf(type) === apiVersion) ?? imageTypes.hypercloud;

/** Prints one image in the form that was asked for; nothing where none was. */
export const printImage = ({ values, terminal }: Pick<Call, 'values' | 'terminal'>, image: AnyImage): void => {
  const format: OutputFormat = outputOf(values);
  const options = { isWide: true, now: terminal.now(), paint: paintOn(terminal) };
  const table = () => imageTable([{ type: typeOf(image), image }], options);
  const printed = format === 'wide' ? table() : printedObject(image, format);
  if (printed !== undefined) terminal.out(printed);
};
