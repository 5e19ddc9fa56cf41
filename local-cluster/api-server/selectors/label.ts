// Label selectors in the text form of a query (`a=b,c!=d,e in (f,g),!h`) and in the structured form of objects.
import { type Fields, toText } from '../objects/object.ts';
import { isFields } from '../objects/object.ts';
import { labelValueFaults, qualifiedName } from '../objects/names.ts';
import { badRequest } from '../status/status.ts';

type Operator = '=' | '!=' | 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt';

interface Requirement {
  readonly key: string;
  readonly operator: Operator;
  readonly values: readonly string[];
}

export type LabelMatcher = (labels: Readonly<Record<string, string>> | undefined) => boolean;

/** Matches everything. */
export const everything: LabelMatcher = () => true;

type Test = (value: string | undefined, values: readonly string[]) => boolean;

const isOneOf: Test = (value, values) => value !== undefined && values.includes(value);
const isNoneOf: Test = (value, values) => !isOneOf(value, values);

const tests: Readonly<Record<Operator, Test>> = {
  '=': isOneOf,
  in: isOneOf,
  '!=': isNoneOf,
  notin: isNoneOf,
  exists: (value) => value !== undefined,
  '!': (value) => value === undefined,
  gt: (value, [limit]) => value !== undefined && Number(value) > Number(limit),
  lt: (value, [limit]) => value !== undefined && Number(value) < Number(limit),
};

const holds = ({ key, operator, values }: Requirement, labels: Readonly<Record<string, string>>): boolean =>
  tests[operator](Object.hasOwn(labels, key) ? labels[key] : undefined, values);

const matcherOf =
  (requirements: readonly Requirement[]): LabelMatcher =>
  (labels) =>
    requirements.every((requirement) => holds(requirement, labels ?? {}));

/** Splits at commas outside parentheses. */
const split = (text: string): string[] => text.split(/,(?![^(]*\))/).map((part) => part.trim());

const patterns: readonly [RegExp, Operator][] = [
  [/^!\s*([^\s=!<>,()]+)$/, '!'],
  [/^([^\s=!<>,()]+)\s+in\s*\(([^)]*)\)$/, 'in'],
  [/^([^\s=!<>,()]+)\s+notin\s*\(([^)]*)\)$/, 'notin'],
  [/^([^\s=!<>,()]+)\s*!=\s*([^\s=!<>,()]*)$/, '!='],
  [/^([^\s=!<>,()]+)\s*==?\s*([^\s=!<>,()]*)$/, '='],
  [/^([^\s=!<>,()]+)\s*>\s*(\d+)$/, 'gt'],
  [/^([^\s=!<>,()]+)\s*<\s*(\d+)$/, 'lt'],
  [/^([^\s=!<>,()]+)$/, 'exists'],
];

const parseRequirement = (text: string): Requirement => {
  for (const [pattern, operator] of patterns) {
    const found = pattern.exec(text);
    if (found === null) continue;
    const values = found[2] === undefined ? [] : found[2].split(',').map((value) => value.trim());
    return checked({ key: found[1] ?? '', operator, values });
  }
  throw badRequest(`unable to parse requirement: found '${text}', expected: '=', '!=', '==', 'in', notin'`);
};

const checked = (requirement: Requirement): Requirement => {
  const [keyFault] = qualifiedName(requirement.key);
  if (keyFault !== undefined) {
    throw badRequest(`unable to parse requirement: <nil>: Invalid value: "${requirement.key}": ${keyFault}`);
  }
  for (const [index, value] of requirement.values.entries()) {
    const [fault] = labelValueFaults(value);
    if (fault !== undefined) {
      const field = `values[${index}][${requirement.key}]`;
      throw badRequest(`unable to parse requirement: ${field}: Invalid value: "${value}": ${fault}`);
    }
  }
  return requirement;
};

/** Parses the text form; throws a 400 when it is invalid. */
export const parseLabelSelector = (text: string | null | undefined): LabelMatcher => {
  if (text === null || text === undefined || text.trim() === '') return everything;
  return matcherOf(split(text).map(parseRequirement));
};

const operators: Readonly<Record<string, Operator>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
};

const strings = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** The matcher of a `LabelSelector` object; an absent or empty one matches everything. */
export const toLabelMatcher = (selector: unknown): LabelMatcher => {
  if (!isFields(selector)) return everything;
  const labels = isFields(selector['matchLabels']) ? selector['matchLabels'] : {};
  const expressions = Array.isArray(selector['matchExpressions']) ? selector['matchExpressions'].filter(isFields) : [];
  return matcherOf([
    ...Object.entries(labels).map(([key, value]): Requirement => ({ key, operator: '=', values: [String(value)] })),
    ...expressions.map((expression: Fields): Requirement => ({
      key: toText(expression['key']),
      operator: operators[toText(expression['operator'])] ?? 'exists',
      values: strings(expression['values']),
    })),
  ]);
};
