// The subject ApiServerSource gives an object's events. Its plural is a guess from the kind, wrong for some kinds; see isGuessable.
import type { ResourceType } from '#shared/api/object.ts';

/** The plural Kubernetes libraries guess from a kind: lower case, then `s`, `es` after s, or `ies` for y. */
export const guessPlural = (kind: string): string => {
  const singular = kind.toLowerCase();
  if (singular.endsWith('endpoints')) return singular;
  if (singular.endsWith('s')) return `${singular}es`;
  return singular.endsWith('y') ? `${singular.slice(0, -1)}ies` : `${singular}s`;
};

/** Whether Knative finds the kind: it watches the guessed plural and silently skips a kind whose real plural differs. */
export const isGuessable = (type: Pick<ResourceType, 'kind' | 'plural'>): boolean =>
  guessPlural(type.kind) === type.plural;

/** `/apis/<apiVersion>/namespaces/<namespace>/<plural>/<name>`; the namespace is empty for cluster-scoped kinds. */
export const subjectOf = (object: {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}): string =>
  `/apis/${object.apiVersion}/namespaces/${object.namespace ?? ''}/${guessPlural(object.kind)}/${object.name}`;
