// JSON Patch (RFC 6902) with the messages, and the few deviations, of the library that kube-apiserver uses.

import { isList, isObject, jsonEqual, type Json, type JsonObject } from '../schema/json.ts';
import {
  addTo,
  changeContainer,
  containerAt,
  parsePointer,
  PatchFault,
  readChild,
  removeFrom,
  setIn,
} from './json-pointer.ts';
import { badPatch, patched, type PatchOutcome, type PatchRefusal } from './outcome.ts';

const maxOperations = 10_000;

interface Operation {
  readonly op: string;
  readonly path: string | undefined;
  readonly from: string | undefined;
  readonly value: Json;
}

const isText = (value: Json | undefined): value is string => typeof value === 'string';

const toOperation = (raw: JsonObject): Operation => ({
  op: isText(raw['op']) ? raw['op'] : 'unknown',
  path: isText(raw['path']) ? raw['path'] : undefined,
  from: isText(raw['from']) ? raw['from'] : undefined,
  value: raw['value'] ?? null,
});

/** Runs `act` and prefixes its error with `context`. */
const within = <T>(context: string, act: () => T): T => {
  try {
    return act();
  } catch (fault) {
    throw fault instanceof PatchFault ? new PatchFault(`${context}: ${fault.message}`) : fault;
  }
};

interface Place {
  readonly tokens: readonly string[];
  readonly key: string;
  readonly container: JsonObject | readonly Json[];
}

/** The target of a pointer; `lost` is the error when its parent is missing. */
const placeOf = (document: Json, pointer: string, lost: string): Place => {
  const tokens = parsePointer(pointer);
  const container = tokens === undefined ? undefined : containerAt(document, tokens);
  if (tokens === undefined || container === undefined) throw new PatchFault(`${lost}: missing value`);
  return { tokens, key: tokens.at(-1) ?? '', container };
};

const pathOf = (operation: Operation): string => {
  if (operation.path !== undefined) return operation.path;
  const why = operation.op === 'add' || operation.op === 'remove' || operation.op === 'copy';
  throw new PatchFault(
    `${operation.op} operation failed to decode path: ${why ? '' : 'operation missing path field: '}missing value`,
  );
};

const fromOf = (operation: Operation): string => {
  if (operation.from !== undefined) return operation.from;
  throw new PatchFault(`${operation.op} operation failed to decode from: operation, missing from field: missing value`);
};

const add = (document: Json, operation: Operation): Json => {
  const path = pathOf(operation);
  const { tokens, key } = placeOf(document, path, `add operation does not apply: doc is missing path: "${path}"`);
  return within(`error in add for path: '${path}'`, () =>
    changeContainer(document, tokens, (container) => addTo(container, key, operation.value)),
  );
};

const remove = (document: Json, operation: Operation): Json => {
  const path = pathOf(operation);
  const { tokens, key } = placeOf(document, path, `remove operation does not apply: doc is missing path: "${path}"`);
  return within(`error in remove for path: '${path}'`, () =>
    changeContainer(document, tokens, (container) => removeFrom(container, key)),
  );
};

const readOr = (place: Place, fault: string): Json | undefined => {
  try {
    return readChild(place.container, place.key);
  } catch {
    throw new PatchFault(fault);
  }
};

/** A missing key is set: the library only checks whether a list has the index. */
const replace = (document: Json, operation: Operation): Json => {
  const path = pathOf(operation);
  if (path === '') {
    if (isObject(operation.value) || isList(operation.value)) return operation.value;
    throw new PatchFault('replace operation value must be object or array: %!w(<nil>)');
  }
  const place = placeOf(document, path, `replace operation does not apply: doc is missing path: ${path}`);
  readOr(place, `replace operation does not apply: doc is missing key: ${path}: missing value`);
  return changeContainer(document, place.tokens, (container) => setIn(container, place.key, operation.value));
};

const move = (document: Json, operation: Operation): Json => {
  const from = fromOf(operation);
  const source = placeOf(document, from, `move operation does not apply: doc is missing from path: ${from}`);
  const [value, without] = within(`error in move for path: '${source.key}'`, () => [
    readChild(source.container, source.key) ?? null,
    changeContainer(document, source.tokens, (container) => removeFrom(container, source.key)),
  ]);
  const path = pathOf(operation);
  const target = placeOf(without, path, `move operation does not apply: doc is missing destination path: ${path}`);
  return within(`error in move for path: '${path}'`, () =>
    changeContainer(without, target.tokens, (container) => addTo(container, target.key, value)),
  );
};

const copy = (document: Json, operation: Operation): Json => {
  const from = fromOf(operation);
  const source = placeOf(document, from, `copy operation does not apply: doc is missing from path: ${from}`);
  const value = within(`error in copy for from: '${from}'`, () => readChild(source.container, source.key) ?? null);
  const path = pathOf(operation);
  const target = placeOf(document, path, `copy operation does not apply: doc is missing destination path: ${path}`);
  return within('error while adding value during copy', () =>
    changeContainer(document, target.tokens, (container) => addTo(container, target.key, value)),
  );
};

const test = (document: Json, operation: Operation): Json => {
  const path = pathOf(operation);
  const read = (): Json | undefined => {
    const place = placeOf(document, path, `test operation does not apply: is missing path: ${path}`);
    return within(`error in test for path: '${path}'`, () => readChild(place.container, place.key));
  };
  const found = path === '' ? document : read();
  if (jsonEqual(found ?? null, operation.value)) return document;
  throw new PatchFault(`testing value ${path} failed: test failed`);
};

const operations: Readonly<Record<string, (document: Json, operation: Operation) => Json>> = {
  add,
  remove,
  replace,
  move,
  copy,
  test,
};

const applyOne = (document: Json, operation: Operation): Json => {
  const run = Object.hasOwn(operations, operation.op) ? operations[operation.op] : undefined;
  if (run === undefined) throw new PatchFault(`Unexpected kind: ${operation.op}`);
  return run(document, operation);
};

const unprocessable = (detail: string): PatchRefusal => ({
  kind: 'refused',
  code: 422,
  reason: 'Invalid',
  message: 'the server rejected our request due to an error in our request',
  detail,
});

const goKind = (value: unknown): string => {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
};

/** Why the patch is not a list of operations, or undefined when it is one. */
const decodingFault = (patch: unknown): string | undefined => {
  if (!Array.isArray(patch)) return `${goKind(patch)} into Go value of type []handlers.jsonPatchOp`;
  const odd: unknown = patch.find((item) => !isObject(item) && item !== null);
  if (odd !== undefined) return `${goKind(odd)} into Go value of type handlers.jsonPatchOp`;
  for (const raw of patch.filter(isObject))
    for (const field of ['op', 'path', 'from']) {
      const value = raw[field] ?? null;
      if (value !== null && !isText(value))
        return `${goKind(value)} into Go struct field jsonPatchOp.${field} of type string`;
    }
  return undefined;
};

const knownFields = new Set(['op', 'path', 'from', 'value']);

const strictErrorsOf = (patch: readonly JsonObject[]): string[] =>
  patch.flatMap((raw, index) =>
    Object.keys(raw)
      .filter((key) => !knownFields.has(key))
      .map((key) => `json patch unknown field "[${index}].${key}"`),
  );

/** Applies a JSON patch: all operations or none. A failed `test` is rejected like any other error, with 422. */
export const applyJsonPatch = (object: JsonObject, patch: unknown): PatchOutcome => {
  const fault = decodingFault(patch);
  if (fault !== undefined) return badPatch(`error decoding patch: json: cannot unmarshal ${fault}`);
  const raw = (patch as readonly Json[]).map((item) => (isObject(item) ? item : {}));
  if (raw.length > maxOperations)
    return {
      kind: 'refused',
      code: 413,
      reason: 'RequestEntityTooLarge',
      message: `The allowed maximum operations in a JSON patch is ${maxOperations}, got ${raw.length}`,
    };
  try {
    const result = raw.map(toOperation).reduce<Json>(applyOne, object);
    return isObject(result) ? patched(result, strictErrorsOf(raw)) : unprocessable('the patched document is no object');
  } catch (error) {
    if (error instanceof PatchFault) return unprocessable(error.message);
    throw error;
  }
};
