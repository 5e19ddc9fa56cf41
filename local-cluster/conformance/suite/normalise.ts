// Makes two runs comparable: values that differ between runs become placeholders, keys are sorted.
import { type JsonValue, textAt } from '#local-cluster/conformance/suite/json.ts';

export interface RunNames {
  readonly id: string;
  readonly url: string;
}

const placeholders: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '<uid>'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b/g, '<time>'],
  // The server prints the difference in a notation of its own.
  [/(for bound claims\n)[\s\S]*/g, '$1<difference>'],
  // The position of a syntax error is the same, the message of the parser is not.
  [/Syntax error: .*/g, 'Syntax error: <words>'],
  [/too old resource version: \d+ \(\d+\)/g, 'too old resource version: <rv> (<rv>)'],
  [/(resource ?version\\*": ?\\*"|resourceVersion: "|Resource Version: +)\d+/gi, '$1<rv>'],
];

/** For these keys it is only comparable whether they are set. */
const opaque: Readonly<Record<string, string>> = {
  resourceVersion: '<rv>',
  continue: '<continue>',
  uid: '<uid>',
};

export const normaliseText = (text: string, names: RunNames): string => {
  let result = text.replaceAll(names.url, 'URL').replaceAll(names.id, 'ID');
  for (const [pattern, placeholder] of placeholders) result = result.replace(pattern, placeholder);
  return result;
};

/** Deep copy with placeholders and sorted keys; keys whose value is undefined are removed. */
export const normalise = (value: unknown, names: RunNames): JsonValue => {
  if (typeof value === 'string') return normaliseText(value, names);
  if (Array.isArray(value)) return value.map((item) => normalise(item, names));
  if (typeof value !== 'object' || value === null) return value as JsonValue;
  const entries = Object.entries(withCausesInOrder(value))
    .filter(([, item]) => item !== undefined)
    .map(([key, item]) => {
      const placeholder = opaque[key];
      const hides = placeholder !== undefined && typeof item === 'string' && item !== '' && item !== '0';
      const shown = key === 'managedFields' ? inOrder(item) : item;
      return [normaliseText(key, names), hides ? placeholder : normalise(shown, names)] as const;
    });
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
};

/** Entries are ordered by time, which differs between runs. */
const inOrder = (entries: unknown): unknown => {
  if (!Array.isArray(entries)) return entries;
  const rank = (entry: JsonValue): string =>
    ['operation', 'subresource', 'manager'].map((key) => textAt(entry, key)).join(' ');
  return entries.toSorted((a: JsonValue, b: JsonValue) => (rank(a) < rank(b) ? -1 : 1));
};

/** The server reports several errors in no defined order, and repeats an error that several checks find. */
const withCausesInOrder = (value: object): object => {
  const { details, message, ...rest } = value as { details?: { causes?: unknown }; message?: unknown };
  const causes = details?.causes;
  if (!Array.isArray(causes) || causes.length < 2 || typeof message !== 'string') return value;
  const rank = (cause: JsonValue): string => `${textAt(cause, 'field')} ${textAt(cause, 'message')}`;
  const unique = new Map(causes.map((cause: JsonValue) => [rank(cause), cause]));
  const sorted = [...unique.keys()].toSorted().map((key) => unique.get(key));
  return {
    ...rest,
    message: message.replace(/: \[[\s\S]*\]$/, ': [<causes>]'),
    details: { ...details, causes: sorted },
  };
};

/** kubectl output: ages become `<age>`, columns are two spaces apart, listed errors are sorted. */
export const normaliseColumns = (text: string): string => {
  const lines = text.split('\n').map((line) =>
    line
      .replace(/(?<= )(<invalid>|\d+(ms|s|m|h)(\d+s)?)(?=\s|$)/g, '<age>')
      .replace(/(?<=\S) {2,}/g, '  ')
      .trimEnd(),
  );
  const faults = lines.filter((line) => line.startsWith('* ')).toSorted();
  return lines.map((line) => (line.startsWith('* ') ? (faults.shift() ?? line) : line)).join('\n');
};
