// One step of the path to a field, as in managedFields: `f:name`, `k:{"name":"a"}` for an item of a map list,
// `v:"x"` for an item of a set. Called by the server-side apply files of this folder.

import { fromEntries, goJson, goNumber, goQuote, isObject, stableJson, type Json } from '../schema/json.ts';

export type FieldPath = readonly string[];

export const fieldStep = (name: string): string => `f:${name}`;
export const valueStep = (value: Json): string => `v:${stableJson(value)}`;
export const keyStep = (keys: readonly (readonly [string, Json])[]): string => `k:${stableJson(fromEntries(keys))}`;

/** The field name of a step, or undefined when it is an item of a list. */
export const fieldNameOf = (step: string): string | undefined => (step.startsWith('f:') ? step.slice(2) : undefined);

const showScalar = (value: Json): string => {
  if (typeof value === 'string') return goQuote(value);
  return typeof value === 'number' ? goNumber(value) : goJson(value);
};

const parse = (step: string): Json => JSON.parse(step.slice(2)) as Json;

const showStep = (step: string): string => {
  if (step.startsWith('f:')) return `.${step.slice(2)}`;
  if (step.startsWith('v:')) return `[=${showScalar(parse(step))}]`;
  if (step.startsWith('i:')) return `[${step.slice(2)}]`;
  const keys = parse(step);
  const pairs = isObject(keys) ? Object.entries(keys) : [];
  return `[${pairs.map(([name, value]) => `${name}=${showScalar(value)}`).join(',')}]`;
};

/** A path as shown in conflicts: `.spec.ports[port=80,protocol="TCP"].name`. */
export const showPath = (path: FieldPath): string => path.map(showStep).join('');

const rank: Readonly<Record<string, number>> = { f: 0, k: 1, v: 2, i: 3 };

const compareJson = (a: Json, b: Json): number => {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  const [left, right] = [stableJson(a), stableJson(b)];
  return left < right ? -1 : left > right ? 1 : 0;
};

const compareKeys = (a: Json, b: Json): number => {
  if (!isObject(a) || !isObject(b)) return compareJson(a, b);
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].toSorted();
  return names.map((name) => compareJson(a[name] ?? null, b[name] ?? null)).find((order) => order !== 0) ?? 0;
};

/** The order of steps within a set: fields, then keys, then values. */
export const compareSteps = (a: string, b: string): number => {
  const kinds = (rank[a.charAt(0)] ?? 0) - (rank[b.charAt(0)] ?? 0);
  if (kinds !== 0) return kinds;
  if (a.startsWith('f:') || a.startsWith('i:')) return a < b ? -1 : a > b ? 1 : 0;
  return compareKeys(parse(a), parse(b));
};
