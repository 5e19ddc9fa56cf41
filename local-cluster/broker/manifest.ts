// Parses Broker and Trigger manifests like Knative. The local cluster uses the files under infra/knative.
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { InvalidInput } from '#shared/runtime/errors.ts';

const Duration = z.string().transform((text, context) => {
  const ms = parseDuration(text);
  if (ms !== undefined) return ms;
  context.addIssue({ code: 'custom', message: `${JSON.stringify(text)} is no ISO 8601 duration such as PT0.5S` });
  return z.NEVER;
});

/** Destination of events: an object, a URL, or a path (`uri`) of an object. */
export const Destination = z.looseObject({
  ref: z.looseObject({ kind: z.string(), name: z.string(), namespace: z.string().optional() }).optional(),
  uri: z.string().optional(),
});
export type Destination = z.infer<typeof Destination>;

/** Durations in milliseconds. */
export const DeliverySpec = z.strictObject({
  retry: z.number().int().nonnegative().optional(),
  backoffPolicy: z.enum(['linear', 'exponential']).optional(),
  backoffDelay: Duration.optional(),
  timeout: Duration.optional(),
  retryAfterMax: Duration.optional(),
  format: z.enum(['json', 'binary']).optional(),
  deadLetterSink: Destination.optional(),
});
export type DeliverySpec = z.infer<typeof DeliverySpec>;

const Attributes = z.record(z.string().regex(/^[a-z0-9]+$/), z.string());
const NonEmptyAttributes = z
  .record(z.string().regex(/^[a-z0-9]+$/), z.string().min(1))
  .refine((map) => Object.keys(map).length > 0, 'must name an attribute');

/** One element of `spec.filters`: exactly one dialect. CESQL is not supported: such a filter is rejected rather than ignored. */
export interface Filter {
  readonly exact?: Readonly<Record<string, string>> | undefined;
  readonly prefix?: Readonly<Record<string, string>> | undefined;
  readonly suffix?: Readonly<Record<string, string>> | undefined;
  readonly all?: readonly Filter[] | undefined;
  readonly any?: readonly Filter[] | undefined;
  readonly not?: Filter | undefined;
}
const Filter: z.ZodType<Filter> = z.lazy(() =>
  z
    .strictObject({
      exact: NonEmptyAttributes.optional(),
      prefix: NonEmptyAttributes.optional(),
      suffix: NonEmptyAttributes.optional(),
      all: z.array(Filter).min(1).optional(),
      any: z.array(Filter).min(1).optional(),
      not: Filter.optional(),
    })
    .refine((filter) => Object.keys(filter).length === 1, 'must have exactly one dialect'),
);

const Metadata = z.looseObject({
  name: z.string(),
  namespace: z.string().default('default'),
  annotations: z.record(z.string(), z.string()).default({}),
});

const Broker = z.looseObject({
  kind: z.literal('Broker'),
  metadata: Metadata,
  spec: z.looseObject({ delivery: DeliverySpec.optional() }).default({}),
});
type Broker = z.infer<typeof Broker>;

export const Trigger = z.looseObject({
  kind: z.literal('Trigger'),
  metadata: Metadata,
  spec: z.looseObject({
    broker: z.string(),
    filter: z.looseObject({ attributes: Attributes.optional() }).optional(),
    filters: z.array(Filter).optional(),
    subscriber: Destination,
    delivery: DeliverySpec.optional(),
  }),
});
export type Trigger = z.infer<typeof Trigger>;

export interface BrokerManifests {
  readonly broker: Broker;
  /** The Triggers of that Broker. */
  readonly triggers: readonly Trigger[];
}

/** Selects one Broker and its Triggers; other kinds are ignored. Throws InvalidInput with the object and every fault. */
export const parseBrokerManifests = (documents: readonly unknown[]): BrokerManifests => {
  const ofKind = (kind: string) =>
    documents.filter((document) => (document as { kind?: unknown } | null)?.kind === kind);
  const [broker, ...others] = ofKind('Broker').map((document) => parseAs(Broker, document));
  if (broker === undefined || others.length > 0) throw new InvalidInput('the manifests must hold exactly one Broker');
  const { name, namespace } = broker.metadata;
  const triggers = ofKind('Trigger').map((document) => parseAs(Trigger, document));
  return {
    broker,
    triggers: triggers.filter(({ spec, metadata }) => spec.broker === name && metadata.namespace === namespace),
  };
};

/** Every YAML document of a directory's files, in the order of their names. */
export const readManifests = async (directory: string): Promise<unknown[]> => {
  const names = (await readdir(directory)).filter((name) => /(?<!^kustomization)\.ya?ml$/.test(name)).toSorted();
  const documents: unknown[] = [];
  for (const name of names) {
    for (const document of parseAllDocuments(await readFile(join(directory, name), 'utf8'))) {
      if (document.errors.length > 0) throw new InvalidInput(`${join(directory, name)}: ${document.errors.join('; ')}`);
      documents.push(document.toJS());
    }
  }
  return documents;
};

const parseAs = <T>(schema: z.ZodType<T>, document: unknown): T => {
  const result = schema.safeParse(document);
  if (result.success) return result.data;
  const { kind, metadata } = document as { kind: string; metadata?: { name?: string } };
  const faults = result.error.issues.map(({ path, message }) => ({ field: path.join('.'), message }));
  const details = faults.map(({ field, message }) => `${field}: ${message}`).join('; ');
  throw new InvalidInput(`${kind} ${metadata?.name ?? '(no name)'}: ${details}`, faults);
};

/** ISO 8601 durations as DeliverySpec writes them. */
const pattern = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;

/** Milliseconds of a duration such as `PT0.2S` or `PT1H30M`; undefined if it is invalid. Months and years are not supported. */
export const parseDuration = (text: string): number | undefined => {
  const [, days, hours, minutes, seconds] = pattern.exec(text) ?? [];
  const parts = [days, hours, minutes, seconds];
  if (parts.every((part) => part === undefined)) return undefined;
  const [d, h, m, s] = parts.map((part) => Number(part ?? 0)) as [number, number, number, number];
  return (((d * 24 + h) * 60 + m) * 60 + s) * 1000;
};
