// The configured webhooks, in the order they are called. Read again when a configuration changes.
import { type ApiObject, type Fields, fieldsAt, listAt, numberAt, textAt } from '../objects/object.ts';
import { type LabelMatcher, toLabelMatcher } from '../selectors/label.ts';
import type { Store } from '../store/store.ts';

export interface Rule {
  readonly operations: readonly string[];
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  readonly resources: readonly string[];
  readonly scope: string;
}

export interface ServiceReference {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
  readonly path: string;
}

export interface Webhook {
  readonly name: string;
  /** Name of the configuration that contains it. */
  readonly configuration: string;
  readonly rules: readonly Rule[];
  readonly url: string | undefined;
  readonly service: ServiceReference | undefined;
  /** PEM; undefined: the system's authorities. */
  readonly caBundle: string | undefined;
  readonly ignoresFailure: boolean;
  readonly matchesEquivalent: boolean;
  readonly namespaces: LabelMatcher;
  readonly objects: LabelMatcher;
  readonly conditions: readonly { readonly name: string; readonly expression: string }[];
  readonly timeoutSeconds: number;
  readonly hasSideEffects: boolean;
  readonly reinvokes: boolean;
}

const strings = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : []);

const toRule = (rule: Fields): Rule => ({
  operations: strings(rule['operations']),
  apiGroups: strings(rule['apiGroups']),
  apiVersions: strings(rule['apiVersions']),
  resources: strings(rule['resources']),
  scope: textAt(rule, 'scope') ?? '*',
});

const toService = (client: Fields): ServiceReference | undefined => {
  if (client['service'] === undefined) return undefined;
  const service = fieldsAt(client, 'service');
  return {
    namespace: textAt(service, 'namespace') ?? '',
    name: textAt(service, 'name') ?? '',
    port: numberAt(service, 'port') ?? 443,
    path: textAt(service, 'path') ?? '',
  };
};

const harmless = new Set(['None', 'NoneOnDryRun']);

const toWebhook = (configuration: string, webhook: Fields): Webhook => {
  const client = fieldsAt(webhook, 'clientConfig');
  const bundle = textAt(client, 'caBundle') ?? '';
  return {
    name: textAt(webhook, 'name') ?? '',
    configuration,
    rules: listAt(webhook, 'rules').map(toRule),
    url: textAt(client, 'url'),
    service: toService(client),
    caBundle: bundle === '' ? undefined : Buffer.from(bundle, 'base64').toString(),
    ignoresFailure: webhook['failurePolicy'] === 'Ignore',
    matchesEquivalent: webhook['matchPolicy'] !== 'Exact',
    namespaces: toLabelMatcher(webhook['namespaceSelector']),
    objects: toLabelMatcher(webhook['objectSelector']),
    conditions: listAt(webhook, 'matchConditions').map((condition) => ({
      name: textAt(condition, 'name') ?? '',
      expression: textAt(condition, 'expression') ?? '',
    })),
    timeoutSeconds: numberAt(webhook, 'timeoutSeconds') ?? 10,
    hasSideEffects: !harmless.has(textAt(webhook, 'sideEffects') ?? ''),
    reinvokes: webhook['reinvocationPolicy'] === 'IfNeeded',
  };
};

const byName = (a: ApiObject, b: ApiObject): number => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1);

/** The webhooks of one kind of configuration, by configuration name, then in the configured order. */
export const createWebhookSource = (store: Store, plural: string): (() => readonly Webhook[]) => {
  const collection = `${plural}.admissionregistration.k8s.io`;
  let known: readonly Webhook[] | undefined;
  store.subscribe(collection, () => {
    known = undefined;
  });
  const read = (): readonly Webhook[] =>
    store
      .page({ collection, limit: 10_000 })
      .entries.map((entry) => entry.object())
      .toSorted(byName)
      .flatMap((configuration) =>
        listAt(configuration, 'webhooks').map((webhook) => toWebhook(configuration.metadata.name ?? '', webhook)),
      );
  return () => (known ??= read());
};
