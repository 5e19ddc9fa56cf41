// Field selectors of a query (`metadata.name=a,status.phase!=Failed`). Each kind defines the supported fields.
import type { ApiObject } from '../objects/object.ts';
import type { Resource } from '../registry/resource.ts';
import { badRequest } from '../status/status.ts';

interface Term {
  readonly field: string;
  readonly equal: boolean;
  readonly value: string;
}

export type FieldMatcher = (object: ApiObject) => boolean;

const unescape = (text: string): string => text.replaceAll(/\\([\\,=])/g, '$1');

const parseTerm = (text: string): Term => {
  const found = /^(.*?)(!=|==|=)(.*)$/.exec(text);
  if (found === null) throw badRequest(`invalid selector: '${text}'; can't understand '${text}'`);
  return { field: (found[1] ?? '').trim(), equal: found[2] !== '!=', value: unescape(found[3] ?? '') };
};

/** Splits at commas that no backslash precedes. */
const split = (text: string): string[] => text.split(/(?<!\\),/).filter((part) => part.trim() !== '');

const fieldsOf = (resource: Resource, object: ApiObject): Readonly<Record<string, string>> => ({
  'metadata.name': object.metadata.name ?? '',
  ...(resource.namespaced ? { 'metadata.namespace': object.metadata.namespace ?? '' } : {}),
  ...resource.strategy.selectable?.(object),
});

const unknownField = (resource: Resource, field: string): string => {
  if (resource.strategy.selectable !== undefined && resource.custom === undefined)
    return `field label not supported: ${field}`;
  if (resource.custom !== undefined) return `field label not supported: ${field}`;
  return `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`;
};

/** Parses the selector for `resource`; undefined when it is empty, a 400 for an unsupported field. */
export const parseFieldSelector = (resource: Resource, text: string | null): FieldMatcher | undefined => {
  const terms = split(text ?? '').map(parseTerm);
  if (terms.length === 0) return undefined;
  const known = fieldsOf(resource, { apiVersion: '', kind: '', metadata: {} });
  for (const { field } of terms) {
    if (!Object.hasOwn(known, field) && !(field === 'metadata.namespace'))
      throw badRequest(unknownField(resource, field));
  }
  return (object) => {
    const fields = fieldsOf(resource, object);
    return terms.every(({ field, equal, value }) => ((fields[field] ?? '') === value) === equal);
  };
};

/** The name when the selector selects exactly one. */
export const selectedName = (text: string | null): string | undefined =>
  split(text ?? '')
    .map(parseTerm)
    .find(({ field, equal }) => field === 'metadata.name' && equal)?.value;
