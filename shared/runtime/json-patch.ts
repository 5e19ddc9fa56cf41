// The JSON patch (RFC 6902) between two JSON values. admission-function.ts answers mutations with it.
import { isDeepStrictEqual } from 'node:util';

export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

type Fields = Readonly<Record<string, unknown>>;

/**
 * Contains only differences, so that it does not touch fields of other owners: objects field by field, lists element by element while they grow
 * or shrink at the end.
 */
export const diffJson = (before: unknown, after: unknown, path = ''): readonly PatchOperation[] => {
  if (isDeepStrictEqual(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) return diffLists(before, after, path);
  if (isFields(before) && isFields(after)) return diffFields(before, after, path);
  return [{ op: 'replace', path, value: after }];
};

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const diffFields = (before: Fields, after: Fields, path: string): readonly PatchOperation[] => {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name): readonly PatchOperation[] => {
    const here = `${path}/${escape(name)}`;
    const isBefore = Object.hasOwn(before, name) && before[name] !== undefined;
    const isAfter = Object.hasOwn(after, name) && after[name] !== undefined;
    if (isBefore && isAfter) return diffJson(before[name], after[name], here);
    if (isAfter) return [{ op: 'add', path: here, value: after[name] }];
    return isBefore ? [{ op: 'remove', path: here }] : [];
  });
};

const diffLists = (before: readonly unknown[], after: readonly unknown[], path: string): readonly PatchOperation[] => {
  const shared = Math.min(before.length, after.length);
  const changed = before.slice(0, shared).flatMap((item, index) => diffJson(item, after[index], `${path}/${index}`));
  const added = after.slice(shared).map((value): PatchOperation => ({ op: 'add', path: `${path}/-`, value }));
  // From the end, so that the remaining indices stay valid.
  const removed = before
    .slice(shared)
    .map((_, index): PatchOperation => ({ op: 'remove', path: `${path}/${shared + index}` }))
    .toReversed();
  return [...changed, ...removed, ...added];
};

/** A name as a segment of a JSON pointer (RFC 6901). */
const escape = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');
