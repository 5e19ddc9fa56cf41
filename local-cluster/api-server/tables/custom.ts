// Columns of custom resources, from `additionalPrinterColumns` of their CustomResourceDefinition.
import { type Fields, numberAt, textAt, toText } from '../objects/object.ts';
import { toAge } from '#shared/runtime/age.ts';
import { type Cell, ageCell, nameCell, toShape } from './columns.ts';
import { compileJsonPath } from './json-path.ts';
import type { TableShape } from './table.ts';

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
