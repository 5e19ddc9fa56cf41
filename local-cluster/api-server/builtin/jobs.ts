// Jobs and cron jobs: defaults, the labels that connect pods with their job, immutable fields.
import { type Cause, invalid, notSupported, required } from '../schema/cause.ts';
import type { Json } from '../schema/json.ts';
import { isSame } from '../objects/equal.ts';
import {
  type ApiObject,
  type Fields,
  ensureFields,
  fieldsAt,
  isFields,
  omit,
  setDefault,
  textAt,
  valueAt,
} from '../objects/object.ts';
import type { Strategy } from '../registry/resource.ts';
import { defaultPodSpec, validatePodSpec } from './pods.ts';
import { selectPaths, specOf, withStatus } from './define.ts';

const uidLabel = 'batch.kubernetes.io/controller-uid';
const nameLabel = 'batch.kubernetes.io/job-name';

const defaultTemplate = (owner: Fields): Fields => {
  const template = ensureFields(owner, 'template');
  ensureFields(template, 'metadata');
  defaultPodSpec(ensureFields(template, 'spec'));
  return template;
};

const defaultJobSpec = (spec: Fields): void => {
  defaultTemplate(spec);
  if (spec['completions'] === undefined && spec['parallelism'] === undefined) setDefault(spec, 'completions', 1);
  setDefault(spec, 'parallelism', 1);
  setDefault(spec, 'backoffLimit', 6);
  setDefault(spec, 'completionMode', 'NonIndexed');
  setDefault(spec, 'suspend', false);
  setDefault(spec, 'podReplacementPolicy', spec['podFailurePolicy'] === undefined ? 'TerminatingOrFailed' : 'Failed');
  setDefault(spec, 'manualSelector', false);
};

const defaultJob = (job: ApiObject): void => {
  const spec = ensureFields(job, 'spec');
  defaultJobSpec(spec);
};

/** A job without labels gets those of its pod template. */
const copyLabels = (job: ApiObject): void => {
  const labels = fieldsAt(fieldsAt(fieldsAt(specOf(job), 'template'), 'metadata'), 'labels');
  job.metadata.labels ??= { ...(labels as Record<string, string>) };
};

/** Pods are selected by labels that contain the UID of their job. */
const addSelector = (job: ApiObject): void => {
  const spec = specOf(job);
  if (spec['manualSelector'] === true) return;
  const uid = job.metadata.uid ?? '';
  const name = job.metadata.name ?? '';
  const labels = ensureFields(ensureFields(ensureFields(spec, 'template'), 'metadata'), 'labels');
  Object.assign(labels, { 'controller-uid': uid, 'job-name': name, [uidLabel]: uid, [nameLabel]: name });
  if (spec['selector'] === undefined) spec['selector'] = { matchLabels: { [uidLabel]: uid } };
};

const restartPolicies = ['OnFailure', 'Never'];

const validateJobSpec = (spec: Fields, path: string): Cause[] => {
  const pod = fieldsAt(fieldsAt(spec, 'template'), 'spec');
  const policy = textAt(pod, 'restartPolicy') ?? 'Always';
  const causes = validatePodSpec(pod, `${path}.template.spec`);
  if (!restartPolicies.includes(policy)) {
    const field = `${path}.template.spec.restartPolicy`;
    causes.push(
      policy === 'Always'
        ? required(field, 'valid values: "OnFailure", "Never"')
        : notSupported(field, policy, restartPolicies),
    );
  }
  for (const field of [
    'parallelism',
    'completions',
    'activeDeadlineSeconds',
    'backoffLimit',
    'ttlSecondsAfterFinished',
  ]) {
    const value = spec[field];
    if (typeof value === 'number' && value < 0) {
      causes.push(invalid(`${path}.${field}`, value, 'must be greater than or equal to 0'));
    }
  }
  return causes;
};

const fixed = ['selector', 'completionMode', 'podFailurePolicy', 'backoffLimitPerIndex'];

/** The template without scheduling fields. */
const fixedTemplate = (template: unknown): Fields => {
  const parts = isFields(template) ? template : {};
  const spec = omit(fieldsAt(parts, 'spec'), 'nodeSelector', 'affinity', 'tolerations', 'schedulingGates');
  return { ...parts, metadata: omit(fieldsAt(parts, 'metadata'), 'labels', 'annotations'), spec };
};

/** Only scheduling fields of the template may change, and only while the job is suspended and has not run. */
const validateJobUpdate = (job: ApiObject, old: ApiObject): Cause[] => {
  const spec = specOf(job);
  const before = specOf(old);
  const causes = fixed
    .filter((field) => !isSame(spec[field], before[field]))
    .map((field) => invalid(`spec.${field}`, (spec[field] ?? null) as Json, 'field is immutable'));
  if (!isSame(spec['completions'], before['completions']) && spec['completionMode'] !== 'Indexed') {
    causes.push(invalid('spec.completions', (spec['completions'] ?? null) as Json, 'field is immutable'));
  }
  const isIdle = valueAt(old, 'spec.suspend') === true && valueAt(old, 'status.startTime') === undefined;
  const shown = (template: unknown) => (isIdle ? fixedTemplate(template) : template);
  if (!isSame(shown(spec['template']), shown(before['template']))) {
    causes.push(invalid('spec.template', spec['template'] as Json, 'field is immutable'));
  }
  return causes;
};

export const jobStrategy: Strategy = withStatus({
  hasGeneration: true,
  defaults: defaultJob,
  prepareCreate: (job) => {
    addSelector(job);
    copyLabels(job);
    job['status'] = {};
  },
  validate: (job) => validateJobSpec(specOf(job), 'spec'),
  validateUpdate: validateJobUpdate,
  selectable: selectPaths('status.successful'),
});

export const cronJobStrategy: Strategy = withStatus({
  hasGeneration: true,
  defaults: (cron) => {
    const spec = ensureFields(cron, 'spec');
    setDefault(spec, 'concurrencyPolicy', 'Allow');
    setDefault(spec, 'suspend', false);
    setDefault(spec, 'successfulJobsHistoryLimit', 3);
    setDefault(spec, 'failedJobsHistoryLimit', 1);
    const template = ensureFields(spec, 'jobTemplate');
    ensureFields(template, 'metadata');
    defaultTemplate(ensureFields(template, 'spec'));
  },
  validate: (cron) => {
    const spec = specOf(cron);
    const template = fieldsAt(fieldsAt(spec, 'jobTemplate'), 'spec');
    const causes = (textAt(spec, 'schedule') ?? '') === '' ? [required('spec.schedule')] : [];
    return isFields(template) ? [...causes, ...validateJobSpec(template, 'spec.jobTemplate.spec')] : causes;
  },
});
