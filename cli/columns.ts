// Images as a table: what `bullion images` and `-o wide` show.
import { type Found, type Image, groupOf, imageTypes, readyOf } from '#cli/image.ts';
import { type OutputFormat, outputOf, printedObject } from '#cli/output.ts';
import type { Call } from '#cli/command.ts';
import { tableOf } from '#cli/table.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { toAge } from '#shared/runtime/age.ts';

const bytes = (size: number | undefined): string | undefined => (size === undefined ? undefined : formatBytes(size));

interface Column {
  readonly heading: string;
  readonly cell: (found: Found, now: Date) => string | number | undefined;
}

const namespaceColumn: Column = { heading: 'NAMESPACE', cell: ({ image }) => image.metadata.namespace };
const columns: readonly Column[] = [
  { heading: 'NAME', cell: ({ image }) => image.metadata.name },
  { heading: 'GROUP', cell: groupOf },
  { heading: 'READY', cell: (found) => readyOf(found)?.status ?? 'False' },
  { heading: 'PHASE', cell: ({ image }) => image.status?.phase },
  {
    heading: 'PROGRESS',
    cell: ({ image: { status } }) => (status?.progress === undefined ? '' : `${status.progress}%`),
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

export interface TableOptions {
  readonly isEverywhere?: boolean;
  readonly isWide: boolean;
  readonly now: Date;
}

export const imageTable = (found: readonly Found[], { isEverywhere = false, isWide, now }: TableOptions): string => {
  const shown = [...(isEverywhere ? [namespaceColumn] : []), ...columns, ...(isWide ? wideColumns : [])];
  return tableOf(
    shown.map(({ heading }) => heading),
    found.map((image) => shown.map(({ cell }) => cell(image, now))),
  );
};

const typeOf = ({ apiVersion }: Image): Found['type'] =>
  Object.values(imageTypes).find((type) => apiVersionOf(type) === apiVersion) ?? imageTypes.hypercloud;

/** Prints one image in the form that was asked for; nothing where none was. */
export const printImage = ({ values, terminal }: Pick<Call, 'values' | 'terminal'>, image: Image): void => {
  const format: OutputFormat = outputOf(values);
  const table = () => imageTable([{ type: typeOf(image), image }], { isWide: true, now: terminal.now() });
  const printed = format === 'wide' ? table() : printedObject(image, format);
  if (printed !== undefined) terminal.out(printed);
};
