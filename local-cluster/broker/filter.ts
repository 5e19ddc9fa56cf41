// Which events a Trigger wants, in both forms of the manifest. Called by broker.ts.
import type { CloudEvent } from '#events/event.ts';
import type { Filter, Trigger } from '#local-cluster/broker/manifest.ts';

type Matches = (event: CloudEvent) => boolean;

/** `spec.filters` overrides `spec.filter`; without either every event is wanted. */
export const createFilter = ({ filter, filters }: Pick<Trigger['spec'], 'filter' | 'filters'>): Matches => {
  if (filters !== undefined && filters.length > 0) {
    const all = filters.map(compile);
    return (event) => all.every((matches) => matches(event));
  }
  const wanted = Object.entries(filter?.attributes ?? {});
  return (event) => wanted.every(([name, value]) => isWanted(attributeOf(event, name), value));
};

/** In `filter.attributes` an empty value asks for any non-empty one. */
const isWanted = (actual: unknown, wanted: string): boolean =>
  wanted === '' ? actual !== undefined && actual !== '' : actual === wanted;

const compile = ({ exact, prefix, suffix, all, any, not }: Filter): Matches => {
  if (all !== undefined) return everyOf(all.map(compile));
  if (any !== undefined) {
    const options = any.map(compile);
    return (event) => options.some((matches) => matches(event));
  }
  if (not !== undefined) {
    const matches = compile(not);
    return (event) => !matches(event);
  }
  if (prefix !== undefined) return texts(prefix, (actual, wanted) => actual.startsWith(wanted));
  if (suffix !== undefined) return texts(suffix, (actual, wanted) => actual.endsWith(wanted));
  return texts(exact ?? {}, (actual, wanted) => actual === wanted);
};

const everyOf =
  (matchers: readonly Matches[]): Matches =>
  (event) =>
    matchers.every((matches) => matches(event));

/** Extensions that are no texts match nothing, as in Knative. */
const texts = (map: Readonly<Record<string, string>>, compare: (actual: string, wanted: string) => boolean): Matches =>
  everyOf(
    Object.entries(map).map(([name, wanted]) => (event: CloudEvent) => {
      const actual = attributeOf(event, name);
      return typeof actual === 'string' && compare(actual, wanted);
    }),
  );

const attributeOf = (event: CloudEvent, name: string): unknown => {
  const { extensions, data: _, ...core } = event;
  const attributes: Readonly<Record<string, unknown>> = { specversion: '1.0', ...core };
  if (Object.hasOwn(attributes, name)) return attributes[name];
  return Object.hasOwn(extensions, name) ? extensions[name] : undefined;
};
