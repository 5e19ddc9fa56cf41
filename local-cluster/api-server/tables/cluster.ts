// Tables of the remaining built-in kinds.
import { type ApiObject, type Fields, fieldsAt, listAt, numberAt, textAt, valueAt, toText } from '../objects/object.ts';
import { toAge } from '#shared/runtime/age.ts';
import { type Cell, cell, nameCell, shapeOf, toShape } from './columns.ts';
import { selectorText } from './workloads.ts';

const none = '<none>';
const size = (value: unknown): number => Object.keys((value ?? {}) as object).length;
const text =
  (path: string, fallback = '') =>
  (o: ApiObject) =>
    valueAt(o, path) ?? fallback;

export const namespaceShape = shapeOf(cell('Status', text('status.phase')));
export const configMapShape = shapeOf(cell('Data', (o) => size(o['data']) + size(o['binaryData'])));
export const secretShape = shapeOf(
  cell('Type', text('type')),
  cell('Data', (o) => size(o['data'])),
);
export const serviceAccountShape = shapeOf();
export const webhooksShape = shapeOf(cell('Webhooks', (o) => listAt(o, 'webhooks').length, { type: 'integer' }));
export const leaseShape = shapeOf(cell('Holder', text('spec.holderIdentity')));

const ports = (o: ApiObject): string =>
  listAt(fieldsAt(o, 'spec'), 'ports')
    .map((port) => {
      const node = numberAt(port, 'nodePort') ?? 0;
      return `${toText(port['port'])}${node === 0 ? '' : `:${node}`}/${textAt(port, 'protocol') ?? 'TCP'}`;
    })
    .join(',');

const labelsText = (value: unknown): string =>
  Object.entries((value ?? {}) as Record<string, string>)
    .map(([key, item]) => `${key}=${item}`)
    .join(',') || none;

export const serviceShape = shapeOf(
  cell('Type', text('spec.type')),
  cell('Cluster-IP', text('spec.clusterIP', none)),
  cell('External-IP', (o) =>
    Array.isArray(valueAt(o, 'spec.externalIPs')) ? (valueAt(o, 'spec.externalIPs') as string[]).join(',') : none,
  ),
  cell('Port(s)', (o) => ports(o) || none),
  cell('Selector', (o) => labelsText(valueAt(o, 'spec.selector')), { wide: true }),
);

const endpointsText = (o: ApiObject): string => {
  const all = listAt(o, 'subsets').flatMap((subset) =>
    listAt(subset, 'addresses').flatMap((address) => {
      const ports = listAt(subset, 'ports');
      const ip = textAt(address, 'ip') ?? '';
      return ports.length === 0 ? [ip] : ports.map((port) => `${ip}:${toText(port['port'])}`);
    }),
  );
  const more = all.length - 3;
  return all.length === 0 ? none : all.slice(0, 3).join(',') + (more > 0 ? ` + ${more} more...` : '');
};
export const endpointsShape = shapeOf(cell('Endpoints', endpointsText));

const nodeStatus = (o: ApiObject): string => {
  const ready = listAt(fieldsAt(o, 'status'), 'conditions').find((condition) => condition['type'] === 'Ready');
  const base = ready === undefined ? 'Unknown' : ready['status'] === 'True' ? 'Ready' : 'NotReady';
  return valueAt(o, 'spec.unschedulable') === true ? `${base},SchedulingDisabled` : base;
};
const roles = (o: ApiObject): string =>
  Object.keys(o.metadata.labels ?? {})
    .filter((label) => label.startsWith('node-role.kubernetes.io/'))
    .map((label) => label.slice('node-role.kubernetes.io/'.length))
    .toSorted()
    .join(',') || none;
const address = (type: string) => (o: ApiObject) =>
  textAt(listAt(fieldsAt(o, 'status'), 'addresses').find((item) => item['type'] === type) ?? {}, 'address') ?? none;

export const nodeShape = toShape([
  nameCell,
  cell('Status', nodeStatus),
  cell('Roles', roles),
  // Age precedes the version here, unlike elsewhere.
  cell('Age', (o, now) => toAge(o.metadata.creationTimestamp, now)),
  cell('Version', text('status.nodeInfo.kubeletVersion')),
  cell('Internal-IP', address('InternalIP'), { wide: true }),
  cell('External-IP', address('ExternalIP'), { wide: true }),
  cell('OS-Image', text('status.nodeInfo.osImage', '<unknown>'), { wide: true }),
  cell('Kernel-Version', text('status.nodeInfo.kernelVersion', '<unknown>'), { wide: true }),
  cell('Container-Runtime', text('status.nodeInfo.containerRuntimeVersion', '<unknown>'), { wide: true }),
]);

const involved = (event: ApiObject): Fields =>
  fieldsAt(event, event['regarding'] === undefined ? 'involvedObject' : 'regarding');
const firstOf = (event: ApiObject, ...paths: string[]): unknown =>
  paths.map((path) => valueAt(event, path)).find((value) => value !== undefined && value !== null && value !== '');
const times = {
  first: ['firstTimestamp', 'deprecatedFirstTimestamp', 'eventTime'],
  last: ['series.lastObservedTime', 'lastTimestamp', 'deprecatedLastTimestamp', 'eventTime', 'firstTimestamp'],
} as const;
const countOf = (event: ApiObject): number => Number(firstOf(event, 'series.count', 'count', 'deprecatedCount') ?? 1);

const lastSeen = (event: ApiObject, now: Date): string => {
  const last = toAge(firstOf(event, ...times.last), now);
  const count = countOf(event);
  return count > 1 ? `${last} (x${count} over ${toAge(firstOf(event, ...times.first), now)})` : last;
};

const sourceOf = (event: ApiObject): string => {
  const source = fieldsAt(event, event['source'] === undefined ? 'deprecatedSource' : 'source');
  const component = textAt(source, 'component') ?? firstOf(event, 'reportingComponent', 'reportingController') ?? '';
  const host = textAt(source, 'host') ?? firstOf(event, 'reportingInstance') ?? '';
  return host === '' ? toText(component) : `${toText(component)}, ${toText(host)}`;
};

export const eventShape = toShape([
  cell('Last Seen', lastSeen),
  cell('Type', text('type')),
  cell('Reason', text('reason')),
  cell('Object', (o) => `${toText(involved(o)['kind']).toLowerCase()}/${toText(involved(o)['name'])}`),
  cell('Subobject', (o) => involved(o)['fieldPath'] ?? '', { wide: true }),
  cell('Source', sourceOf, { wide: true }),
  cell('Message', (o) => toText(firstOf(o, 'message', 'note')).trim()),
  cell('First Seen', (o, now) => toAge(firstOf(o, ...times.first), now), { wide: true }),
  cell('Count', (o) => String(countOf(o)), { wide: true }),
  { ...nameCell, priority: 1 },
]);

const subjects = (kind: string) => (o: ApiObject) =>
  listAt(o, 'subjects')
    .filter((subject) => subject['kind'] === kind)
    .map((subject) => (kind === 'ServiceAccount' ? `${toText(subject['namespace'])}/` : '') + toText(subject['name']))
    .join(', ');

const bindingCells: readonly Cell[] = [
  cell('Role', (o) => `${toText(valueAt(o, 'roleRef.kind'))}/${toText(valueAt(o, 'roleRef.name'))}`),
  cell('Users', subjects('User'), { wide: true }),
  cell('Groups', subjects('Group'), { wide: true }),
  cell('ServiceAccounts', subjects('ServiceAccount'), { wide: true }),
];
export const bindingShape = shapeOf(...bindingCells);

export const networkPolicyShape = shapeOf(cell('Pod-Selector', (o) => selectorText(valueAt(o, 'spec.podSelector'))));

export const disruptionShape = shapeOf(
  cell('Min Available', (o) => toText(valueAt(o, 'spec.minAvailable'), 'N/A')),
  cell('Max Unavailable', (o) => toText(valueAt(o, 'spec.maxUnavailable'), 'N/A')),
  cell('Allowed Disruptions', (o) => valueAt(o, 'status.disruptionsAllowed') ?? 0, { type: 'integer' }),
);

export const apiServiceShape = shapeOf(
  cell('Service', (o) => {
    const service = fieldsAt(fieldsAt(o, 'spec'), 'service');
    return service['name'] === undefined ? 'Local' : `${toText(service['namespace'])}/${toText(service['name'])}`;
  }),
  cell('Available', (o) => {
    const available = listAt(fieldsAt(o, 'status'), 'conditions').find(
      (condition) => condition['type'] === 'Available',
    );
    if (available === undefined) return 'Unknown';
    return available['status'] === 'True' ? 'True' : `${toText(available['status'])} (${toText(available['reason'])})`;
  }),
);

export const priorityClassShape = toShape([
  nameCell,
  cell('Value', (o) => o['value'] ?? 0, { type: 'integer' }),
  cell('Global-Default', (o) => o['globalDefault'] ?? false, { type: 'boolean' }),
  cell('Age', (o, now) => toAge(o.metadata.creationTimestamp, now)),
  cell('PreemptionPolicy', text('preemptionPolicy')),
]);
