// Reads and writes one place of a JSON document by its pointer (RFC 6901), without changing the given document.

import { get, isList, isObject, withKey, withoutKey, type Json, type JsonObject } from '../schema/json.ts';

type Container = JsonObject | readonly Json[];

/** Thrown only in this folder, and caught by applyJsonPatch: has the message of Kubernetes. */
export class PatchFault extends Error {
  override readonly name = 'PatchFault';
}

/** Tokens of a pointer; undefined for the empty pointer and for one without a leading slash. */
export const parsePointer = (pointer: string): readonly string[] | undefined => {
  const [, ...tokens] = pointer.split('/');
  return tokens.length === 0 ? undefined : tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
};

const toIndex = (token: string): number => {
  if (!/^[+-]?\d+$/.test(token)) throw new PatchFault(`strconv.Atoi: parsing ${JSON.stringify(token)}: invalid syntax`);
  return Number(token);
};

/** An index in a list; negative ones count from the end. */
const indexWithin = (token: string, length: number): number => {
  const index = toIndex(token);
  if (index >= length || index < -length)
    throw new PatchFault(`Unable to access invalid index: ${index}: invalid index referenced`);
  return index < 0 ? index + length : index;
};

const isContainer = (value: Json | undefined): value is Container => isList(value) || isObject(value);

export const readChild = (container: Container, token: string): Json | undefined =>
  isList(container) ? container[indexWithin(token, container.length)] : get(container as JsonObject, token);

/** The container that a pointer refers to, or undefined when its parent is missing. */
export const containerAt = (document: Json, tokens: readonly string[]): Container | undefined => {
  let current: Json | undefined = document;
  for (const token of tokens.slice(0, -1)) {
    if (!isContainer(current)) return undefined;
    try {
      current = readChild(current, token);
    } catch {
      return undefined;
    }
  }
  return isContainer(current) ? current : undefined;
};

/** The document with the container at the pointer replaced by the result of `change`. */
export const changeContainer = (
  document: Json,
  tokens: readonly string[],
  change: (container: Container) => Container,
): Json => {
  const [token, ...rest] = tokens;
  if (!isContainer(document) || token === undefined) return document;
  if (rest.length === 0) return change(document);
  const child = changeContainer(readChild(document, token) ?? null, rest, change);
  if (isList(document)) return document.with(indexWithin(token, document.length), child);
  return withKey(document as JsonObject, token, child);
};

export const addTo = (container: Container, token: string, value: Json): Container => {
  if (!isList(container)) return withKey(container as JsonObject, token, value);
  if (token === '-') return [...container, value];
  if (!/^[+-]?\d+$/.test(token))
    throw new PatchFault(
      `value was not a proper array index: '${token}': strconv.Atoi: parsing ${JSON.stringify(token)}: invalid syntax`,
    );
  return container.toSpliced(indexWithin(token, container.length + 1), 0, value);
};

export const setIn = (container: Container, token: string, value: Json): Container =>
  isList(container)
    ? container.with(indexWithin(token, container.length), value)
    : withKey(container as JsonObject, token, value);

export const removeFrom = (container: Container, token: string): Container => {
  if (isList(container)) return container.toSpliced(indexWithin(token, container.length), 1);
  const object = container as JsonObject;
  if (!Object.hasOwn(object, token)) throw new PatchFault(`Unable to remove nonexistent key: ${token}: missing value`);
  return withoutKey(object, token);
};
