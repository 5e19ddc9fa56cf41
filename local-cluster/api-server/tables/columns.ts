// Helpers for the columns of built-in kinds, and the columns of nearly every kind.
import { type ApiObject, type Fields, numberAt, textAt, toText } from '../objects/object.ts';
import { toAge } from '#shared/runtime/age.ts';
import type { Column, TableShape } from './table.ts';
import { compileJsonPath } from './json-path.ts';

const nameDescription =
  'Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names';
const ageDescription =
  'CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata';

/** A column with the function that computes it. */
export interface Cell extends Column {
  readonly value: (object: ApiObject, now: Date) => unknown;
}

/** `type` is an OpenAPI type; `wide` columns appear with `-o wide` only. */
export const cell = (
  name: string,
  value: Cell['value'],
  options: { readonly type?: string; readonly wide?: boolean; readonly description?: string } = {},
): Cell => ({
  name,
  type: options.type ?? 'string',
  format: '',
  description: options.description ?? '',
  priority: options.wide === true ? 1 : 0,
  value,
});

export const nameCell: Cell = {
  ...cell('Name', (object) => object.metadata.name ?? '', { description: nameDescription }),
  format: 'name',
};

export const ageCell: Cell = cell('Age', (object, now) => toAge(object.metadata.creationTimestamp, now), {
  description: ageDescription,
});

const createdAt: Cell = {
  ...cell('Created At', (object) => object.metadata.creationTimestamp ?? '<unknown>', { type: 'date' }),
  description: ageDescription,
};

export const toShape = (cells: readonly Cell[]): TableShape => ({
  columns: cells.map((whole): Column => {
    const { value: _, ...column } = whole;
    return column;
  }),
  cells: (object, now) => cells.map((column) => column.value(object, now)),
});

/** Name and age around the given columns; wide ones follow the age. */
export const shapeOf = (...cells: readonly Cell[]): TableShape =>
  toShape([nameCell, ...cells.filter((c) => c.priority === 0), ageCell, ...cells.filter((c) => c.priority > 0)]);

/** The columns of kinds without definitions of their own. */
export const defaultShape: TableShape = toShape([nameCell, createdAt]);

/** Columns of custom resources, from `additionalPrinterColumns` of their CustomResourceDefinition. */
const toCell = (type: string, value: unknown, now: Date): unknown => {
  switch (type) {
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      return typeof value === 'string' ? toAge(value, now) : null;
    default:
      return toCellText(value);
  }
};

const toCellText = (value: unknown): string | null => (value === null || value === undefined ? null : toText(value));

const columnOf = (column: Fields): Cell => {
  const find = compileJsonPath(textAt(column, 'jsonPath') ?? '');
  const type = textAt(column, 'type') ?? 'string';
  const name = textAt(column, 'name') ?? '';
  return {
    name,
    type,
    format: textAt(column, 'format') ?? '',
    description:
      textAt(column, 'description') ??
      `Custom resource definition column (in JSONPath format): ${textAt(column, 'jsonPath') ?? ''}`,
    priority: numberAt(column, 'priority') ?? 0,
    value: (object, now) => {
      const found = find(object);
      if (found.length === 0) return null;
      return type === 'string' && found.length > 1 ? found.map(toCellText).join(' ') : toCell(type, found[0], now);
    },
  };
};

const dateCell: Cell = { ...ageCell, type: 'date' };

export const customShape = (columns: readonly Fields[]): TableShape =>
  toShape(columns.length === 0 ? [nameCell, dateCell] : [nameCell, ...columns.map(columnOf)]);
