// Deployments and their kin (stored only), disruption budgets, network policies, leases, webhook configurations, roles.
import { isSame } from '../objects/equal.ts';
import { pathSegment } from '../objects/names.ts';
import {
  type ApiObject,
  type Fields,
  ensureFields,
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
import { defaultPodSpec, validatePodSpec } from './pods.ts';
import { plainStrategy, specOf, withStatus } from './strategy.ts';

const defaultTemplate = (object: ApiObject): Fields => {
  const spec = ensureFields(object, 'spec');
  const template = ensureFields(spec, 'template');
  ensureFields(template, 'metadata');
  defaultPodSpec(ensureFields(template, 'spec'));
  return spec;
};

const selectorCauses = (object: ApiObject): Cause[] => {
  const spec = specOf(object);
  const causes = spec['selector'] === undefined ? [required('spec.selector')] : [];
  const labels = fieldsAt(fieldsAt(fieldsAt(spec, 'template'), 'metadata'), 'labels');
  const wanted = Object.entries(fieldsAt(fieldsAt(spec, 'selector'), 'matchLabels'));
  if (wanted.some(([key, value]) => labels[key] !== value)) {
    causes.push(
      invalid('spec.template.metadata.labels', labels as Json, '`selector` does not match template `labels`'),
    );
  }
  return [...causes, ...validatePodSpec(fieldsAt(fieldsAt(spec, 'template'), 'spec'), 'spec.template.spec')];
};

const fixedSelector = (object: ApiObject, old: ApiObject): Cause[] =>
  isSame(specOf(object)['selector'], specOf(old)['selector'])
    ? []
    : [invalid('spec.selector', (specOf(object)['selector'] ?? null) as Json, 'field is immutable')];

const workload = (defaults: (spec: Fields) => void): Strategy =>
  withStatus({
    hasGeneration: true,
    defaults: (object) => defaults(defaultTemplate(object)),
    validate: selectorCauses,
    validateUpdate: fixedSelector,
  });

export const deploymentStrategy: Strategy = workload((spec) => {
  setDefault(spec, 'replicas', 1);
  const strategy = ensureFields(spec, 'strategy');
  setDefault(strategy, 'type', 'RollingUpdate');
  if (strategy['type'] === 'RollingUpdate') {
    const rolling = ensureFields(strategy, 'rollingUpdate');
    setDefault(rolling, 'maxUnavailable', '25%');
    setDefault(rolling, 'maxSurge', '25%');
  }
  setDefault(spec, 'revisionHistoryLimit', 10);
  setDefault(spec, 'progressDeadlineSeconds', 600);
});

export const replicaSetStrategy: Strategy = workload((spec) => setDefault(spec, 'replicas', 1));

export const statefulSetStrategy: Strategy = workload((spec) => {
  setDefault(spec, 'replicas', 1);
  setDefault(spec, 'podManagementPolicy', 'OrderedReady');
  setDefault(spec, 'revisionHistoryLimit', 10);
  setDefault(spec, 'updateStrategy', { type: 'RollingUpdate', rollingUpdate: { partition: 0 } });
  setDefault(spec, 'persistentVolumeClaimRetentionPolicy', { whenDeleted: 'Retain', whenScaled: 'Retain' });
});

export const daemonSetStrategy: Strategy = workload((spec) => {
  setDefault(spec, 'updateStrategy', { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } });
  setDefault(spec, 'revisionHistoryLimit', 10);
});

export const disruptionStrategy: Strategy = withStatus({
  hasGeneration: true,
  prepareCreate: (budget) => {
    budget['status'] = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 };
  },
});

export const networkPolicyStrategy: Strategy = {
  ...plainStrategy,
  hasGeneration: true,
  defaults: (policy) => {
    const spec = ensureFields(policy, 'spec');
    ensureFields(spec, 'podSelector');
    setDefault(spec, 'policyTypes', spec['egress'] === undefined ? ['Ingress'] : ['Ingress', 'Egress']);
  },
};

export const leaseStrategy: Strategy = {
  ...plainStrategy,
  createsOnUpdate: true,
  needsVersion: true,
  validate: (lease) => {
    const spec = specOf(lease);
    const duration = numberAt(spec, 'leaseDurationSeconds') ?? 1;
    const transitions = numberAt(spec, 'leaseTransitions') ?? 0;
    return [
      ...(duration > 0 ? [] : [invalid('spec.leaseDurationSeconds', duration, 'must be greater than 0')]),
      ...(transitions < 0 ? [invalid('spec.leaseTransitions', transitions, 'must be greater than or equal to 0')] : []),
    ];
  },
};

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

const ruleCauses = (role: ApiObject): Cause[] =>
  listAt(role, 'rules').flatMap((rule, index) => {
    const path = `rules[${index}]`;
    const paths = rule['nonResourceURLs'];
    if (!Array.isArray(rule['verbs']) || rule['verbs'].length === 0) {
      return [required(`${path}.verbs`, 'verbs must contain at least one value')];
    }
    if (!Array.isArray(paths) || paths.length === 0 || role.kind === 'ClusterRole') return [];
    return [invalid(`${path}.nonResourceURLs`, paths as Json, 'namespaced rules cannot apply to non-resource URLs')];
  });

export const roleStrategy: Strategy = {
  ...plainStrategy,
  nameRule: pathSegment,
  createsOnUpdate: true,
  validate: ruleCauses,
};

const subjectKinds = ['ServiceAccount', 'User', 'Group'];

const subjectCauses = (binding: ApiObject): Cause[] =>
  listAt(binding, 'subjects').flatMap((subject, index) => {
    const kind = textAt(subject, 'kind') ?? '';
    return subjectKinds.includes(kind) ? [] : [notSupported(`subjects[${index}].kind`, kind, subjectKinds)];
  });

/** The reference as Go prints its internal form. */
const referenceText = (binding: ApiObject): string => {
  const reference = fieldsAt(binding, 'roleRef');
  return JSON.stringify({ APIGroup: reference['apiGroup'], Kind: reference['kind'], Name: reference['name'] });
};

export const bindingStrategy: Strategy = {
  ...plainStrategy,
  nameRule: pathSegment,
  createsOnUpdate: true,
  defaults: (binding) => {
    for (const subject of listAt(binding, 'subjects')) {
      if (subject['kind'] !== 'ServiceAccount') setDefault(subject, 'apiGroup', 'rbac.authorization.k8s.io');
    }
    if (binding['roleRef'] !== undefined)
      setDefault(binding['roleRef'] as Fields, 'apiGroup', 'rbac.authorization.k8s.io');
  },
  validate: subjectCauses,
  validateUpdate: (binding, old) =>
    isSame(binding['roleRef'], old['roleRef'])
      ? []
      : [
          {
            ...invalid('roleRef', null, ''),
            message: `Invalid value: ${referenceText(binding)}: cannot change roleRef`,
          },
        ],
};
