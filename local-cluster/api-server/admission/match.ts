// Whether a webhook is called for a request, and with which version of the resource.
import type { Call } from '../handlers/call.ts';
import { type ApiObject, type Fields, textAt } from '../objects/object.ts';
import type { Resource } from '../registry/resource.ts';
import { compileMatchCondition } from '../schema/cel.ts';
import type { Json } from '../schema/json.ts';
import { forbidden, notFound } from '../status/status.ts';
import type { Attributes } from '../handlers/call.ts';
import type { Rule, Webhook } from './webhook.ts';

const isIn = (list: readonly string[], value: string): boolean => list.includes('*') || list.includes(value);

const matchesResource = (patterns: readonly string[], plural: string, subresource: string): boolean =>
  patterns.some((pattern) => {
    const [resource = '', sub] = pattern.split('/');
    const subMatches = sub === undefined ? subresource === '' : sub === '*' || sub === subresource;
    return subMatches && (resource === '*' || resource === plural);
  });

const matchesScope = (rule: Rule, call: Call): boolean => {
  const isNamespaced = call.resource.namespaced;
  return rule.scope === '*' || (rule.scope === 'Namespaced' ? isNamespaced : !isNamespaced);
};

const matchesRule = (rule: Rule, call: Call, resource: Resource, operation: string): boolean =>
  isIn(rule.operations, operation) &&
  isIn(rule.apiGroups, resource.group) &&
  isIn(rule.apiVersions, resource.version) &&
  matchesResource(rule.resources, resource.plural, call.path.subresource) &&
  matchesScope(rule, call);

/** Webhook configurations are never sent to webhooks: a webhook that rejects everything could not be removed. */
const exempt = new Set([
  'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  'validatingwebhookconfigurations.admissionregistration.k8s.io',
]);

/** The resource for the webhook: the requested version, otherwise another version of the same resource that a rule names. */
const matchedResource = (webhook: Webhook, call: Call, operation: string): Resource | undefined => {
  if (exempt.has(call.resource.collection)) return undefined;
  const matches = (resource: Resource) => webhook.rules.some((rule) => matchesRule(rule, call, resource, operation));
  if (matches(call.resource)) return call.resource;
  if (!webhook.matchesEquivalent) return undefined;
  return call.api.registry.versionsOf(call.resource.group, call.resource.plural).find(matches);
};

/** Labels that a namespace selector matches: those of the object's namespace, of a namespace itself, or none. */
const namespaceLabels = (call: Call, attributes: Attributes): Readonly<Record<string, string>> | undefined => {
  if (call.resource.collection === 'namespaces') {
    return (attributes.object ?? attributes.old)?.metadata.labels ?? {};
  }
  if (!call.resource.namespaced) return undefined;
  const entry = call.api.store.get({ collection: 'namespaces', namespace: '', name: call.path.namespace });
  if (entry === undefined) throw notFound({ group: '', plural: 'namespaces' }, call.path.namespace);
  return entry.object().metadata.labels ?? {};
};

const matchesSelectors = (webhook: Webhook, call: Call, attributes: Attributes): boolean => {
  const labels = namespaceLabels(call, attributes);
  if (labels !== undefined && !webhook.namespaces(labels)) return false;
  const objects = [attributes.object, attributes.old].filter((object): object is ApiObject => object !== undefined);
  return objects.some((object) => webhook.objects(object.metadata.labels));
};

/** The name in the review: the path of a create contains none. */
const nameOf = (request: Fields): string => textAt(request, 'name') ?? '';

type Held = { readonly holds: boolean } | { readonly error: string };

const holdCondition = (expression: string, request: Fields): Held => {
  const compiled = compileMatchCondition(expression);
  if (compiled.kind === 'invalid') return { error: compiled.message };
  const object = (request['object'] ?? null) as Json;
  const oldObject = (request['oldObject'] ?? null) as Json;
  try {
    return { holds: compiled.matches({ object, oldObject, request: request as Json }) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { error: `expression '${expression}' resulted in error: ${message}` };
  }
};

/** Whether all match conditions hold. A false one decides; one that fails to evaluate follows the failure policy. */
export const holdConditions = (webhook: Webhook, call: Call, request: Fields): boolean => {
  const held = webhook.conditions.map(({ expression }) => holdCondition(expression, request));
  if (held.some((result) => 'holds' in result && !result.holds)) return false;
  const errors = held.flatMap((result) => ('error' in result ? [result.error] : []));
  if (errors.length === 0) return true;
  if (webhook.ignoresFailure) return false;
  throw forbidden(call.resource, nameOf(request), errors.join(', '));
};

/** The version of the resource that the webhook gets; undefined when it is not called. */
export const resourceFor = (webhook: Webhook, call: Call, attributes: Attributes): Resource | undefined => {
  const resource = matchedResource(webhook, call, attributes.operation);
  return resource !== undefined && matchesSelectors(webhook, call, attributes) ? resource : undefined;
};
