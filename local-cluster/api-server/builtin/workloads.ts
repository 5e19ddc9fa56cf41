// Deployments and similar kinds (only stored), disruption budgets, network policies, leases.
import { isSame } from '../objects/equal.ts';
import { type ApiObject, type Fields, ensureFields, fieldsAt, numberAt, setDefault } from '../objects/object.ts';
import { type Cause, invalid, required } from '../schema/cause.ts';
import type { Json } from '../schema/json.ts';
import type { Strategy } from '../registry/resource.ts';
import { defaultPodSpec, validatePodSpec } from './pods.ts';
import { plainStrategy, specOf, withStatus } from './define.ts';

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
