// Generated tables and lists in documents: replaces everything between `<!-- gen:functions -->` and `<!-- /gen -->`.
import type { SettingRow } from '#shared/runtime/config.ts';
import type { ServedKind } from '#shared/api/kind.ts';
import { type StructuralSchema, toStructuralSchema } from '#shared/api/structural-schema.ts';

/** Renders the named blocks: Markdown without the markers. */
export type Blocks = Readonly<Record<string, () => string>>;

const block = /<!-- gen:([\w.:/-]+) -->\n[\s\S]*?<!-- \/gen -->/g;

/** The text with every block rendered. Throws on an unknown block. */
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

const width = 120;

/** One list item per text, wrapped for terminals. Code is never broken. */
export const toList = (texts: readonly string[]): string => texts.map((text) => wrap(`- ${text}`)).join('\n');

const wrap = (text: string): string => {
  const lines: string[] = [];
  for (const word of text.replaceAll('\n', ' ').match(/(?:`[^`]*`|[^\s`])+/g) ?? []) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(line === undefined ? word : `  ${word}`);
  }
  return lines.join('\n');
};

export const toConfigList = (rows: readonly SettingRow[]): string =>
  toList(rows.map(({ env, default: fallback, help }) => `${code(env)} (${toDefault(fallback)}): ${help}`));

const toDefault = (fallback: string | undefined): string => {
  if (fallback === undefined) return 'required';
  return fallback === '' ? 'not set' : `default ${code(fallback)}`;
};

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
