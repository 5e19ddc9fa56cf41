// Field selectors and merge patches, as required by the in-memory API.
import type { KubeObject } from '#shared/api/object.ts';

/** RFC 7386. */
export const applyMergePatch = (target: unknown, patch: unknown): unknown => {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> =
    typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else if (value !== undefined) result[key] = applyMergePatch(result[key], value);
  }
  return result;
};

const partsOf = (selector: string | undefined): readonly string[] =>
  (selector ?? '').split(',').filter((part) => part !== '');

/** `a.b=c` and `a.b!=c` on any field. */
export const selectsFields = (selector: string | undefined, object: KubeObject): boolean =>
  partsOf(selector).every((part) => {
    const [, path = '', not, value = ''] = /^(.*?)(!?)=(.*)$/.exec(part) ?? [];
    const found = path.split('.').reduce<unknown>((at, key) => (at as Record<string, unknown>)?.[key], object);
    return ((found ?? '') === value) !== (not === '!');
  });
