// The simple JSONPath of printer columns and scale subresources: `.spec.a`, `['b']`, `[0]`, `[*]`, `[?(@.type=="Ready")]`.
import { isFields } from '../objects/object.ts';

type Step = (values: readonly unknown[]) => unknown[];

const field =
  (name: string): Step =>
  (values) =>
    values.flatMap((value) => (isFields(value) && Object.hasOwn(value, name) ? [value[name]] : []));

const element =
  (index: number): Step =>
  (values) =>
    values.flatMap((value) => (Array.isArray(value) && value.at(index) !== undefined ? [value.at(index)] : []));

const every: Step = (values) =>
  values.flatMap((value) => (Array.isArray(value) ? value : isFields(value) ? Object.values(value) : []));

const compare = (left: unknown, operator: string, right: unknown): boolean => {
  if (operator === '==') return left === right;
  if (operator === '!=') return left !== right;
  if (typeof left !== 'number' || typeof right !== 'number') return false;
  return operator === '>'
    ? left > right
    : operator === '<'
      ? left < right
      : operator === '>='
        ? left >= right
        : left <= right;
};

const literal = (text: string): unknown => {
  const quoted = /^(["'])(.*)\1$/.exec(text.trim());
  if (quoted !== null) return quoted[2];
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text.trim();
  }
};

const filter = (path: string, operator: string | undefined, right: string | undefined): Step => {
  const inner = compile(path);
  return (values) =>
    values.flatMap((value) =>
      (Array.isArray(value) ? value : []).filter((item) => {
        const [left] = inner([item]);
        return operator === undefined ? left !== undefined : compare(left, operator, literal(right ?? ''));
      }),
    );
};

const tokens: readonly [RegExp, (found: RegExpExecArray) => Step][] = [
  [
    /^\.?\[\?\(\s*@([^=!<>)\s]*)\s*(?:(==|!=|>=|<=|>|<)\s*((?:"[^"]*"|'[^']*'|[^)])*?))?\s*\)\]/,
    (f) => filter(f[1] ?? '', f[2], f[3]),
  ],
  [/^\.?\[\*\]/, () => every],
  [/^\.\*/, () => every],
  [/^\.?\[(-?\d+)\]/, (f) => element(Number(f[1]))],
  [/^\.?\[(['"])(.*?)\1\]/, (f) => field(f[2] ?? '')],
  [/^\.?((?:\\.|[^.[\]\\])+)/, (f) => field((f[1] ?? '').replaceAll(/\\(.)/g, '$1'))],
];

const compile = (path: string): Step => {
  let rest = path.replace(/^\{(.*)\}$/, '$1').replace(/^\$/, '');
  const steps: Step[] = [];
  while (rest !== '' && rest !== '.') {
    const matched = tokens
      .map(([pattern, make]) => [pattern.exec(rest), make] as const)
      .find(([found]) => found !== null);
    const found = matched?.[0];
    if (matched === undefined || found === null || found === undefined) return () => [];
    steps.push(matched[1](found));
    rest = rest.slice(found[0].length);
  }
  return (values) => steps.reduce<unknown[]>((current, step) => step(current), [...values]);
};

/** Compiles a path; the result lists the matches. An invalid path matches nothing. */
export const compileJsonPath = (path: string): ((object: unknown) => unknown[]) => {
  const run = compile(path);
  return (object) => run([object]);
};
