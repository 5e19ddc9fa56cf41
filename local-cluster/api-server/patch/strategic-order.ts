// The order of a list after a strategic merge: items of the patch in the requested order, the server's other items
// at their previous positions in between. Called by strategic-merge.ts.
import { get, goShow, isObject, jsonEqual, type Json, isGoInteger } from '../schema/json.ts';

// Errors of a strategic merge patch, with the messages of Go.

/** Key of an object with a directive instead of values to merge. */
export const directive = '$patch';

/** An error of the patch; `code` 400 when Kubernetes returns a bad request, 500 when it returns an internal error. */
export class StrategicFault extends Error {
  override readonly name = 'StrategicFault';
  readonly code: 400 | 422 | 500;

  constructor(code: 400 | 422 | 500, message: string) {
    super(message);
    this.code = code;
  }
}

/** The Go type that a JSON value is decoded into. */
export const goKind = (value: Json): string => {
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number') return isGoInteger(value) ? 'int64' : 'float64';
  return isObject(value) ? 'map[string]interface {}' : value === null ? 'nil' : 'string';
};

/** The identity of an item: the merge key of objects, or the item itself. */
export const identityOf = (item: Json, mergeKey: string | undefined): Json | undefined =>
  mergeKey === undefined || !isObject(item) ? item : get(item, mergeKey);

export const indexOfItem = (list: readonly Json[], item: Json, mergeKey: string | undefined): number => {
  const identity = identityOf(item, mergeKey);
  return list.findIndex((other) => jsonEqual(identityOf(other, mergeKey), identity));
};

const sortBy = (items: readonly Json[], order: readonly Json[], mergeKey: string | undefined): Json[] =>
  items.toSorted((a, b) => {
    const [left, right] = [indexOfItem(order, a, mergeKey), indexOfItem(order, b, mergeKey)];
    return left === -1 || right === -1 ? 0 : left - right;
  });

/** Merges two lists without common items, and keeps the order within each and, where it is defined, that of `order`. */
const interleave = (
  server: readonly Json[],
  patch: readonly Json[],
  order: readonly Json[],
  mergeKey: string | undefined,
): Json[] => {
  const merged: Json[] = [];
  let next = 0;
  for (const item of patch) {
    const place = indexOfItem(order, item, mergeKey);
    while (next < server.length) {
      const candidate = indexOfItem(order, server[next] ?? null, mergeKey);
      if (place === -1 || candidate === -1 || candidate >= place) break;
      merged.push(server[next++] ?? null);
    }
    merged.push(item);
  }
  return [...merged, ...server.slice(next)];
};

export interface Ordering {
  /** The order requested by the patch. */
  readonly wanted: readonly Json[];
  /** The order before the patch. */
  readonly live: readonly Json[];
  readonly mergeKey: string | undefined;
}

export const orderItems = (items: readonly Json[], { wanted, live, mergeKey }: Ordering): Json[] => {
  const isWanted = (item: Json): boolean => indexOfItem(wanted, item, mergeKey) !== -1;
  const patch = sortBy(items.filter(isWanted), wanted, mergeKey);
  const server = sortBy(
    items.filter((item) => !isWanted(item)),
    live,
    mergeKey,
  );
  return interleave(server, patch, live, mergeKey);
};

const directiveOf = (item: Json): Json | undefined => (isObject(item) ? item[directive] : undefined);

/** The items that a patch sets must be in the requested order. A directive after the last of them counts as an additional item. */
export const checkOrder = (items: readonly Json[], order: readonly Json[], mergeKey: string | undefined): void => {
  const kept = items.filter((item) => directiveOf(item) !== 'delete');
  if (items.length === 0 || order.length === 0) return;
  let [next, at] = [0, 0];
  while (next < kept.length && at < order.length) {
    const item = kept[next] ?? null;
    const isDirective = directiveOf(item) !== undefined;
    if (isDirective || indexOfItem([order[at] ?? null], item, mergeKey) === 0) next += 1;
    if (!isDirective) at += 1;
  }
  if (next === kept.length) return;
  throw new StrategicFault(
    500,
    `The order in patch list:\n${goShow(items)}\n doesn't match $setElementOrder list:\n${goShow(order)}\n`,
  );
};
