// Tables of pods, jobs and the kinds that create them.
import {
  type ApiObject,
  type Fields,
  fieldsAt,
  isFields,
  listAt,
  numberAt,
  textAt,
  valueAt,
  toText,
} from '../objects/object.ts';
import { toAge, toSpan } from '#shared/runtime/age.ts';
import { type Cell, cell, shapeOf } from './columns.ts';

const none = '<none>';

/** A `LabelSelector` as text. */
export const selectorText = (selector: unknown): string => {
  if (!isFields(selector)) return none;
  const labels = Object.entries(fieldsAt(selector, 'matchLabels')).map(([key, value]) => `${key}=${String(value)}`);
  const expressions = listAt(selector, 'matchExpressions').map((item) => {
    const values = Array.isArray(item['values']) ? item['values'].join(',') : '';
    const key = toText(item['key']);
    switch (item['operator']) {
      case 'In':
        return `${key} in (${values})`;
      case 'NotIn':
        return `${key} notin (${values})`;
      case 'DoesNotExist':
        return `!${key}`;
      default:
        return key;
    }
  });
  return [...labels.toSorted(), ...expressions].join(',') || none;
};

const templateOf = (object: ApiObject, path: string): Fields => {
  const found = valueAt(object, path);
  return isFields(found) ? found : {};
};

const containerCells = (path: string): Cell[] => [
  cell(
    'Containers',
    (o) =>
      listAt(templateOf(o, path), 'containers')
        .map((c) => textAt(c, 'name'))
        .join(','),
    { wide: true },
  ),
  cell(
    'Images',
    (o) =>
      listAt(templateOf(o, path), 'containers')
        .map((c) => textAt(c, 'image'))
        .join(','),
    { wide: true },
  ),
];

const selectorCell = cell('Selector', (o) => selectorText(fieldsAt(o, 'spec')['selector']), { wide: true });

const specNumber = (path: string) => (o: ApiObject) => (valueAt(o, path) as number | undefined) ?? 0;

/** Reason why a container is not running, as shown in the Status column of a pod. */
const containerReason = (status: Fields): string | undefined => {
  const state = fieldsAt(status, 'state');
  const waiting = textAt(fieldsAt(state, 'waiting'), 'reason');
  if (waiting !== undefined && waiting !== '') return waiting;
  const terminated = state['terminated'];
  if (!isFields(terminated)) return undefined;
  const reason = textAt(terminated, 'reason');
  if (reason !== undefined && reason !== '') return reason;
  const signal = numberAt(terminated, 'signal') ?? 0;
  return signal === 0 ? `ExitCode:${numberAt(terminated, 'exitCode') ?? 0}` : `Signal:${signal}`;
};

const podStatus = (pod: ApiObject): string => {
  const status = fieldsAt(pod, 'status');
  if (pod.metadata.deletionTimestamp !== undefined) return status['reason'] === 'NodeLost' ? 'Unknown' : 'Terminating';
  const base = textAt(status, 'reason') ?? textAt(status, 'phase') ?? '';
  const reasons = listAt(status, 'containerStatuses')
    .map(containerReason)
    .filter((reason) => reason !== undefined);
  const reason = reasons[0] ?? base;
  const running = listAt(status, 'containerStatuses').some(
    (c) => isFields(fieldsAt(c, 'state')['running']) && c['ready'] === true,
  );
  if (reason !== 'Completed' || !running) return reason;
  return 'Running';
};

const restarts = (pod: ApiObject, now: Date): string => {
  const statuses = listAt(fieldsAt(pod, 'status'), 'containerStatuses');
  const count = statuses.reduce((sum, status) => sum + (numberAt(status, 'restartCount') ?? 0), 0);
  const last = statuses
    .map((status) => valueAt(status, 'lastState.terminated.finishedAt'))
    .filter((time) => typeof time === 'string')
    .toSorted()
    .at(-1);
  return count === 0 || last === undefined ? String(count) : `${count} (${toAge(last, now)} ago)`;
};

const podReady = (pod: ApiObject): string => {
  const total = listAt(fieldsAt(pod, 'spec'), 'containers').length;
  const ready = listAt(fieldsAt(pod, 'status'), 'containerStatuses').filter((status) => status['ready'] === true);
  return `${ready.length}/${total}`;
};

const orNone = (path: string) => (o: ApiObject) => {
  const value = valueAt(o, path);
  return value === undefined || value === '' ? none : value;
};

export const podShape = shapeOf(
  cell('Ready', podReady),
  cell('Status', podStatus),
  cell('Restarts', restarts),
  cell('IP', orNone('status.podIP'), { wide: true }),
  cell('Node', orNone('spec.nodeName'), { wide: true }),
  cell('Nominated Node', orNone('status.nominatedNodeName'), { wide: true }),
  cell('Readiness Gates', () => none, { wide: true }),
);

const jobCondition = (job: ApiObject, type: string): boolean =>
  listAt(fieldsAt(job, 'status'), 'conditions').some((c) => c['type'] === type && c['status'] === 'True');

const jobStatus = (job: ApiObject): string => {
  if (jobCondition(job, 'Complete')) return 'Complete';
  if (jobCondition(job, 'Failed')) return 'Failed';
  if (job.metadata.deletionTimestamp !== undefined) return 'Terminating';
  if (jobCondition(job, 'Suspended')) return 'Suspended';
  if (jobCondition(job, 'FailureTarget')) return 'FailureTarget';
  return jobCondition(job, 'SuccessCriteriaMet') ? 'SuccessCriteriaMet' : 'Running';
};

const completions = (job: ApiObject): string => {
  const succeeded = specNumber('status.succeeded')(job);
  const wanted = valueAt(job, 'spec.completions');
  if (typeof wanted === 'number') return `${succeeded}/${wanted}`;
  const parallel = specNumber('spec.parallelism')(job);
  return parallel > 1 ? `${succeeded}/1 of ${parallel}` : `${succeeded}/1`;
};

const jobDuration = (job: ApiObject, now: Date): string => {
  const start = valueAt(job, 'status.startTime');
  if (typeof start !== 'string') return '';
  const end = valueAt(job, 'status.completionTime');
  return toSpan((typeof end === 'string' ? Date.parse(end) : now.getTime()) - Date.parse(start));
};

export const jobShape = shapeOf(
  cell('Status', jobStatus),
  cell('Completions', completions),
  cell('Duration', jobDuration),
  ...containerCells('spec.template.spec'),
  selectorCell,
);

export const cronJobShape = shapeOf(
  cell('Schedule', (o) => valueAt(o, 'spec.schedule') ?? ''),
  cell('Timezone', (o) => valueAt(o, 'spec.timeZone') ?? none),
  cell('Suspend', (o) => valueAt(o, 'spec.suspend') ?? false, { type: 'boolean' }),
  cell('Active', (o) => listAt(fieldsAt(o, 'status'), 'active').length, { type: 'integer' }),
  cell('Last Schedule', (o, now) => {
    const last = valueAt(o, 'status.lastScheduleTime');
    return last === undefined ? none : toAge(last, now);
  }),
  ...containerCells('spec.jobTemplate.spec.template.spec'),
  cell('Selector', (o) => selectorText(valueAt(o, 'spec.jobTemplate.spec.selector')), { wide: true }),
);

const readyOf = (o: ApiObject) => `${specNumber('status.readyReplicas')(o)}/${specNumber('spec.replicas')(o)}`;
const count = (name: string, path: string) => cell(name, specNumber(path), { type: 'integer' });

export const deploymentShape = shapeOf(
  cell('Ready', readyOf),
  cell('Up-to-date', specNumber('status.updatedReplicas')),
  cell('Available', specNumber('status.availableReplicas')),
  ...containerCells('spec.template.spec'),
  selectorCell,
);

export const statefulSetShape = shapeOf(cell('Ready', readyOf), ...containerCells('spec.template.spec'));

export const replicaSetShape = shapeOf(
  count('Desired', 'spec.replicas'),
  count('Current', 'status.replicas'),
  count('Ready', 'status.readyReplicas'),
  ...containerCells('spec.template.spec'),
  selectorCell,
);

export const daemonSetShape = shapeOf(
  count('Desired', 'status.desiredNumberScheduled'),
  count('Current', 'status.currentNumberScheduled'),
  count('Ready', 'status.numberReady'),
  count('Up-to-date', 'status.updatedNumberScheduled'),
  count('Available', 'status.numberAvailable'),
  cell('Node Selector', (o) => {
    const selector = valueAt(o, 'spec.template.spec.nodeSelector');
    return isFields(selector)
      ? Object.entries(selector)
          .map(([key, value]) => `${key}=${String(value)}`)
          .join(',')
      : none;
  }),
  ...containerCells('spec.template.spec'),
  selectorCell,
);
