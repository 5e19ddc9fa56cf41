// Configurations of admission webhooks.
import { isSame } from '../objects/equal.ts';
import {
  type ApiObject,
  type Fields,
  fieldsAt,
  listAt,
  numberAt,
  textAt,
  setDefault,
  toText,
} from '../objects/object.ts';
import { type Cause, invalid, notSupported, required } from '../schema/cause.ts';
import { compileMatchCondition } from '../schema/cel.ts';
import type { Json } from '../schema/json.ts';
import type { Strategy } from '../registry/resource.ts';
import { plainStrategy } from './define.ts';

const defaultWebhook = (webhook: Fields, mutating: boolean): void => {
  setDefault(webhook, 'failurePolicy', 'Fail');
  setDefault(webhook, 'matchPolicy', 'Equivalent');
  setDefault(webhook, 'namespaceSelector', {});
  setDefault(webhook, 'objectSelector', {});
  setDefault(webhook, 'timeoutSeconds', 10);
  if (mutating) setDefault(webhook, 'reinvocationPolicy', 'Never');
  for (const rule of listAt(webhook, 'rules')) setDefault(rule, 'scope', '*');
  const service = fieldsAt(webhook, 'clientConfig')['service'];
  if (service !== undefined) setDefault(service as Fields, 'port', 443);
};

const sideEffects = ['None', 'NoneOnDryRun'];

const operations = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];

const clientCauses = (client: Fields, path: string): Cause[] => {
  const url = textAt(client, 'url');
  if (url === undefined || url.startsWith('https://')) return [];
  const scheme = url.split(':')[0] ?? '';
  return [
    invalid(`${path}.url`, scheme, "'https' is the only allowed URL scheme; desired format: https://host[/path]"),
  ];
};

const limitCauses = (webhook: Fields, path: string): Cause[] => {
  const seconds = numberAt(webhook, 'timeoutSeconds') ?? 10;
  const rules = listAt(webhook, 'rules').flatMap((rule, index) =>
    (Array.isArray(rule['operations']) ? rule['operations'].map(String) : []).flatMap((operation, at) =>
      operations.includes(operation)
        ? []
        : [notSupported(`${path}.rules[${index}].operations[${at}]`, operation, operations)],
    ),
  );
  const conditions = listAt(webhook, 'matchConditions').flatMap((condition, index) => {
    const expression = textAt(condition, 'expression') ?? '';
    const compiled = compileMatchCondition(expression);
    const field = `${path}.matchConditions[${index}].expression`;
    return compiled.kind === 'compiled' ? [] : [invalid(field, expression, compiled.message)];
  });
  const isBounded = seconds >= 1 && seconds <= 30;
  const timeout = invalid(`${path}.timeoutSeconds`, seconds, 'the timeout value must be between 1 and 30 seconds');
  return [...(isBounded ? [] : [timeout]), ...rules, ...conditions];
};

const webhookCauses = (configuration: ApiObject): Cause[] =>
  listAt(configuration, 'webhooks').flatMap((webhook, index) => {
    const path = `webhooks[${index}]`;
    const client = fieldsAt(webhook, 'clientConfig');
    const causes: Cause[] = [];
    if (toText(webhook['name']).split('.').length < 3) {
      causes.push(
        invalid(
          `${path}.name`,
          (webhook['name'] ?? '') as Json,
          'should be a domain with at least three segments separated by dots',
        ),
      );
    }
    if (!Array.isArray(webhook['admissionReviewVersions']) || webhook['admissionReviewVersions'].length === 0) {
      causes.push(required(`${path}.admissionReviewVersions`, 'must specify one of v1, v1beta1'));
    }
    if (webhook['sideEffects'] === undefined) {
      causes.push(required(`${path}.sideEffects`, 'must specify one of None, NoneOnDryRun'));
    } else if (!sideEffects.includes(toText(webhook['sideEffects']))) {
      causes.push({
        reason: 'FieldValueNotSupported',
        field: `${path}.sideEffects`,
        message: `Unsupported value: "${toText(webhook['sideEffects'])}": supported values: "None", "NoneOnDryRun"`,
      });
    }
    causes.push(...clientCauses(client, `${path}.clientConfig`), ...limitCauses(webhook, path));
    if ((client['url'] === undefined) === (client['service'] === undefined)) {
      causes.push(required(`${path}.clientConfig`, 'exactly one of url or service is required'));
    }
    return causes;
  });

export const webhookStrategy = (mutating: boolean): Strategy => ({
  ...plainStrategy,
  hasGeneration: true,
  bumpsGeneration: (object, old) => !isSame(object['webhooks'], old['webhooks']),
  defaults: (configuration) =>
    listAt(configuration, 'webhooks').forEach((webhook) => defaultWebhook(webhook, mutating)),
  validate: webhookCauses,
});
