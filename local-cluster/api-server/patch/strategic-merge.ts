// Strategic merge patch: what `kubectl apply` and `kubectl patch` send for built-in kinds. Lists are merged by the key in their
// schema; `$patch`, `$retainKeys`, `$setElementOrder` and `$deleteFromPrimitiveList` are directives.

import { typeNameOf } from '../schema/builtin.ts';
import {
  fromEntries,
  get,
  goShow,
  isList,
  isObject,
  jsonEqual,
  withKey,
  withoutKey,
  type Json,
  type JsonObject,
} from '../schema/json.ts';
import { childOf, type JsonSchema } from '../schema/json-schema.ts';
import { badPatch, patched, type PatchOutcome } from './outcome.ts';
import { StrategicFault, directive, goKind } from './strategic-order.ts';
import { checkOrder, indexOfItem, orderItems } from './strategic-order.ts';

const retainKeys = '$retainKeys';
const orderPrefix = '$setElementOrder/';
const deletePrefix = '$deleteFromPrimitiveList/';

const strategyOf = (schema: JsonSchema | undefined): readonly string[] =>
  (schema?.['x-kubernetes-patch-strategy'] ?? '').split(',');

const mergeKeyOf = (schema: JsonSchema | undefined): string | undefined => schema?.['x-kubernetes-patch-merge-key'];

const noMergeKey = (item: JsonObject, key: string): StrategicFault =>
  new StrategicFault(500, `map: ${goShow(item)} does not contain declared merge key: ${key}`);

/** A replacing or new value: nulls delete nothing in it, and items with a directive are dropped. */
const cleanValue = (value: Json): Json | undefined => {
  if (isList(value)) return value.map(cleanValue).filter((item) => item !== undefined);
  if (!isObject(value)) return value;
  if (Object.hasOwn(value, directive)) return undefined;
  return fromEntries(
    Object.entries(value)
      .filter(([, child]) => child !== null)
      .map(([key, child]) => [key, cleanValue(child)] as const)
      .filter((entry): entry is readonly [string, Json] => entry[1] !== undefined),
  );
};

const setClean = (object: JsonObject, key: string, value: Json): JsonObject => {
  const clean = cleanValue(value);
  return clean === undefined ? withoutKey(object, key) : withKey(object, key, clean);
};

const followDirective = (patch: JsonObject): JsonObject => {
  const what = patch[directive] ?? null;
  if (what === 'replace') return withoutKey(patch, directive);
  if (what === 'delete') return {};
  throw new StrategicFault(500, `unknown patch type: ${goShow(what)} in map: ${goShow(patch)}`);
};

const listOrFault = (value: Json, fault: string): readonly Json[] => {
  if (isList(value)) return value;
  throw new StrategicFault(400, fault);
};

/** Drops every field that is not in `$retainKeys`; the patch itself may set only those. */
const retain = (object: JsonObject, patch: JsonObject): JsonObject => {
  const wanted = patch[retainKeys];
  if (wanted === undefined) return object;
  const fault = 'invalid patch format of retainKeys';
  const names = listOrFault(wanted, fault);
  for (const [key, value] of Object.entries(patch)) {
    const isSteering = key === retainKeys || key.startsWith(deletePrefix) || key.startsWith(orderPrefix);
    if (!isSteering && value !== null && !names.includes(key)) throw new StrategicFault(400, fault);
  }
  return fromEntries(Object.entries(object).filter(([key]) => names.includes(key)));
};

const keyedItem = (item: Json, mergeKey: string): JsonObject => {
  if (!isObject(item)) throw new StrategicFault(500, 'list element types are not identical');
  if (!Object.hasOwn(item, mergeKey)) throw noMergeKey(item, mergeKey);
  return item;
};

interface SpecialItems {
  readonly live: readonly Json[];
  readonly patch: readonly Json[];
}

/** Executes `$patch` items of a list: deletes by key, or replaces the list by the other items. */
const followItemDirectives = (live: readonly Json[], patch: readonly Json[], mergeKey: string): SpecialItems => {
  const plain = patch.filter((item) => !(isObject(item) && Object.hasOwn(item, directive)));
  let kept = live;
  let isReplacing = false;
  for (const item of patch) {
    const what = isObject(item) ? item[directive] : undefined;
    if (what === undefined) continue;
    if (what === 'delete')
      kept = kept.filter((other) => indexOfItem([keyedItem(item, mergeKey)], other, mergeKey) === -1);
    else if (what === 'replace') isReplacing = true;
    else if (what === 'merge') throw new StrategicFault(500, 'merging lists cannot yet be specified in the patch');
    else throw new StrategicFault(500, `unknown patch type: ${goShow(what)} in map: ${goShow(item)}`);
  }
  return isReplacing ? { live: plain, patch: [] } : { live: kept, patch: plain };
};

const mergeObjectItems = (schema: JsonSchema, live: readonly Json[], patch: readonly Json[]): Json[] => {
  const mergeKey = mergeKeyOf(schema);
  if (mergeKey === undefined) throw new StrategicFault(500, 'cannot merge lists without merge key for struct');
  const special = followItemDirectives(live, patch, mergeKey);
  const merged = [...special.live];
  for (const raw of special.patch) {
    const item = keyedItem(raw, mergeKey);
    const index = indexOfItem(merged, item, mergeKey);
    const current = merged[index];
    if (isObject(current)) merged[index] = mergeMap(current, item, schema.items);
    else merged.push(item);
  }
  return orderItems(merged, { wanted: special.patch, live: special.live, mergeKey });
};

const unique = (items: readonly Json[]): Json[] =>
  items.filter((item, index) => items.findIndex((other) => jsonEqual(other, item)) === index);

const mergeList = (schema: JsonSchema | undefined, live: readonly Json[], patch: readonly Json[]): Json[] => {
  if (schema === undefined || !strategyOf(schema).includes('merge')) return [...patch];
  if (live.length === 0 && patch.length === 0) return [];
  if ([...live, ...patch].some(isList)) throw new StrategicFault(422, 'lists of lists are not supported');
  const all = [...live, ...patch];
  if (!all.some(isObject)) return orderItems(unique(all), { wanted: patch, live, mergeKey: undefined });
  if (all.every(isObject)) return mergeObjectItems(schema, live, patch);
  throw new StrategicFault(500, `list element types are not identical: ${goShow([live, patch])}`);
};

const structOf = (schema: JsonSchema | undefined): string => typeNameOf(schema?.['x-bullion-type'] ?? '');

const mergeOrdered = (
  schema: JsonSchema,
  live: Json | undefined,
  items: readonly Json[] | undefined,
): readonly Json[] => {
  const current = isList(live) ? live : [];
  if (current.length === 0 && (items ?? []).length === 0)
    throw new StrategicFault(500, 'no elements in any of the given slices');
  if (items === undefined) return current;
  const merged = isList(live) ? mergeList(schema, live, items) : cleanValue(items);
  return isList(merged) ? merged : [];
};

/** Merges and orders one list in `$setElementOrder`, and removes it from the patch. */
const followOrder = (
  object: JsonObject,
  patch: JsonObject,
  key: string,
  schema: JsonSchema | undefined,
): JsonObject => {
  const name = key.slice(orderPrefix.length);
  const fieldSchema = childOf(schema, name);
  const mergeKey = mergeKeyOf(fieldSchema);
  const order = patch[key] ?? null;
  if (!isList(order)) throw new StrategicFault(500, `expected a []interface {}, but received a ${goKind(order)}`);
  if (fieldSchema === undefined)
    throw new StrategicFault(
      500,
      `unable to find api field in struct ${structOf(schema)} for the json field "${name}"`,
    );
  const [live, wanted] = [get(object, name), get(patch, name)];
  const items = isList(wanted) ? wanted : undefined;
  checkOrder(items ?? [], order, mergeKey);
  if (!isList(live) && items === undefined) return object;
  const current = isList(live) ? live : [];
  return withKey(
    object,
    name,
    orderItems(mergeOrdered(fieldSchema, live, items), { wanted: order, live: current, mergeKey }),
  );
};

const deleteItems = (object: JsonObject, name: string, value: Json): JsonObject => {
  const live = get(object, name);
  const gone = listOrFault(value, 'invalid patch format of primitive list');
  if (!isList(live)) return object;
  return withKey(
    object,
    name,
    live.filter((item) => !gone.some((other) => jsonEqual(other, item))),
  );
};

const mergeField = (object: JsonObject, key: string, value: Json, schema: JsonSchema | undefined): JsonObject => {
  if (key.startsWith(deletePrefix)) return deleteItems(object, key.slice(deletePrefix.length), value);
  if (value === null) return withoutKey(object, key);
  const current = get(object, key);
  const fieldSchema = childOf(schema, key);
  if (isObject(current) && isObject(value))
    return withKey(
      object,
      key,
      strategyOf(fieldSchema).includes('replace') ? value : mergeMap(current, value, fieldSchema),
    );
  if (isList(current) && isList(value)) return withKey(object, key, mergeList(fieldSchema, current, value));
  return setClean(object, key, value);
};

const mergeMap = (original: JsonObject, patch: JsonObject, schema: JsonSchema | undefined): JsonObject => {
  if (Object.hasOwn(patch, directive)) return followDirective(patch);
  const orders = Object.keys(patch).filter((key) => key.startsWith(orderPrefix));
  const ordered = orders.reduce((object, key) => followOrder(object, patch, key, schema), retain(original, patch));
  const handled = new Set([retainKeys, ...orders, ...orders.map((key) => key.slice(orderPrefix.length))]);
  return Object.entries(patch)
    .filter(([key]) => !handled.has(key))
    .reduce((object, [key, value]) => mergeField(object, key, value, schema), ordered);
};

/**
 * Applies a strategic merge patch with the schema of a built-in kind. Custom resources do not support it: the server returns 415
 * before this is called.
 */
export const applyStrategicMergePatch = (schema: JsonSchema, object: JsonObject, patch: unknown): PatchOutcome => {
  if (!isObject(patch)) {
    const found = isList(patch) ? 'array' : typeof patch === 'boolean' ? 'bool' : typeof patch;
    return badPatch(`json: cannot unmarshal ${found} into Go value of type map[string]interface {}`);
  }
  try {
    return patched(mergeMap(object, patch, schema));
  } catch (fault) {
    if (!(fault instanceof StrategicFault)) throw fault;
    if (fault.code === 400) return badPatch(fault.message);
    if (fault.code === 500) return { kind: 'refused', code: 500, reason: '', message: fault.message };
    const message = 'the server rejected our request due to an error in our request';
    return { kind: 'refused', code: 422, reason: 'Invalid', message, detail: fault.message };
  }
};
