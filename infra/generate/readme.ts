// README tables between markers. A README says `<!-- gen:functions -->`, and everything up to `<!-- /gen -->` is kept fresh.
import type { SettingRow } from '#shared/runtime/config.ts';
import type { ServedKind } from '#shared/api/kind.ts';
import { type StructuralSchema, toStructuralSchema } from '#shared/api/structural-schema.ts';

/** Renders the named blocks: Markdown without the markers. */
export type Blocks = Readonly<Record<string, () => string>>;

const block = /<!-- gen:([\w.:/-]+) -->\n[\s\S]*?<!-- \/gen -->/g;

/** The text with every block rendered anew. Throws on a block nobody renders. */
export const renderBlocks = (text: string, blocks: Blocks): string =>
  text.replaceAll(block, (_, name: string) => {
    const render = blocks[name];
    if (render === undefined) {
      throw new Error(`no generator for <!-- gen:${name} -->; there are ${Object.keys(blocks).join(', ')}`);
    }
    return `<!-- gen:${name} -->\n${render()}\n<!-- /gen -->`;
  });

type Row = readonly string[];

/** A Markdown table. Pipes and line breaks in cells are escaped. */
export const toTable = (header: Row, rows: readonly Row[]): string =>
  [header, header.map(() => '---'), ...rows].map((row) => `| ${row.map(toCell).join(' | ')} |`).join('\n');

const toCell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const code = (text: string): string => (text === '' ? '' : `\`${text}\``);

/** Settings; `readers` says for each row who reads it, where that is not plain. */
export const toConfigTable = (rows: readonly SettingRow[], readers?: readonly string[]): string =>
  toTable(
    ['variable', 'default', 'meaning', ...(readers === undefined ? [] : ['read by'])],
    rows.map(({ env, default: fallback, help }, index) => [
      code(env),
      fallback === undefined ? 'required' : code(fallback),
      help,
      ...(readers === undefined ? [] : [readers[index] ?? '']),
    ]),
  );

/** Every field of a kind's spec and status, one row each. */
export const toFieldTable = (kind: ServedKind): string => {
  const rows = [
    ...fieldsOf('spec', toStructuralSchema(kind.spec)),
    ...fieldsOf('status', toStructuralSchema(kind.status)),
  ];
  return toTable(['field', 'type', 'default', 'meaning'], rows);
};

const fieldsOf = (path: string, schema: StructuralSchema): readonly Row[] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const here = `${path}.${name}`;
    const required = schema.required?.includes(name) === true;
    const row = [
      code(here) + (required ? ' *' : ''),
      typeOf(field),
      field.default === undefined ? '' : code(JSON.stringify(field.default)),
      field.description ?? '',
    ];
    return [row, ...fieldsOf(here, field), ...(field.items === undefined ? [] : fieldsOf(`${here}[]`, field.items))];
  });

const typeOf = (schema: StructuralSchema): string => {
  if (schema.enum !== undefined) return schema.enum.map(String).join(', ');
  if (schema['x-kubernetes-int-or-string'] === true) return 'number or string';
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}`;
  if (schema.additionalProperties !== undefined) return `map of ${typeOf(schema.additionalProperties)}`;
  return schema.type ?? 'anything';
};
