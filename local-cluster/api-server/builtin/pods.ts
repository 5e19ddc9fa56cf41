// Pods and the pod templates of other kinds: defaults, required and immutable fields, graceful deletion.
import { type Cause, duplicate, forbidden, notSupported, required } from '../schema/cause.ts';
import { isSame } from '../objects/equal.ts';
import {
  type ApiObject,
  type Fields,
  ensureFields,
  fieldsAt,
  listAt,
  setDefault,
  textAt,
  toText,
  omit,
} from '../objects/object.ts';
import type { Strategy } from '../registry/resource.ts';
import { selectPaths, specOf, withStatus } from './define.ts';

const defaultGraceSeconds = 30;

const pullPolicy = (image: string | undefined): string => {
  const tag = image?.split('/').at(-1)?.split(':')[1];
  return image?.includes('@') === true || (tag !== undefined && tag !== 'latest') ? 'IfNotPresent' : 'Always';
};

const defaultResources = (container: Fields): void => {
  const resources = ensureFields(container, 'resources');
  const limits = fieldsAt(resources, 'limits');
  if (Object.keys(limits).length === 0) return;
  const requests = ensureFields(resources, 'requests');
  for (const [name, amount] of Object.entries(limits)) setDefault(requests, name, amount);
};

const defaultProbe = (probe: Fields): void => {
  for (const [key, value] of [
    ['timeoutSeconds', 1],
    ['periodSeconds', 10],
    ['successThreshold', 1],
    ['failureThreshold', 3],
  ] as const) {
    setDefault(probe, key, value);
  }
  if (probe['httpGet'] !== undefined) {
    const get = ensureFields(probe, 'httpGet');
    setDefault(get, 'path', '/');
    setDefault(get, 'scheme', 'HTTP');
  }
};

const defaultContainer = (container: Fields): void => {
  defaultResources(container);
  setDefault(container, 'terminationMessagePath', '/dev/termination-log');
  setDefault(container, 'terminationMessagePolicy', 'File');
  setDefault(container, 'imagePullPolicy', pullPolicy(textAt(container, 'image')));
  for (const port of listAt(container, 'ports')) setDefault(port, 'protocol', 'TCP');
  for (const probe of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    if (container[probe] !== undefined) defaultProbe(ensureFields(container, probe));
  }
  for (const variable of listAt(container, 'env')) {
    const reference = fieldsAt(variable, 'valueFrom')['fieldRef'];
    if (reference !== undefined) setDefault(reference as Fields, 'apiVersion', 'v1');
  }
};

const volumeModes: Readonly<Record<string, string>> = {
  secret: 'secret',
  configMap: 'configMap',
  downwardAPI: 'downwardAPI',
  projected: 'projected',
};

const defaultVolume = (volume: Fields): void => {
  if (Object.keys(volume).length === 1) volume['emptyDir'] = {};
  for (const source of Object.keys(volumeModes)) {
    if (volume[source] !== undefined) setDefault(ensureFields(volume, source), 'defaultMode', 0o644);
  }
  const hostPath = volume['hostPath'];
  if (hostPath !== undefined) setDefault(hostPath as Fields, 'type', '');
};

/** Sets the defaults of a pod spec. */
export const defaultPodSpec = (spec: Fields): void => {
  setDefault(spec, 'restartPolicy', 'Always');
  setDefault(spec, 'terminationGracePeriodSeconds', defaultGraceSeconds);
  setDefault(spec, 'dnsPolicy', 'ClusterFirst');
  ensureFields(spec, 'securityContext');
  setDefault(spec, 'schedulerName', 'default-scheduler');
  if (spec['serviceAccountName'] !== undefined) setDefault(spec, 'serviceAccount', spec['serviceAccountName']);
  for (const list of ['initContainers', 'containers']) listAt(spec, list).forEach(defaultContainer);
  listAt(spec, 'volumes').forEach(defaultVolume);
};

/** `enableServiceLinks` has a default in pods, not in templates. */
const defaultPod = (pod: ApiObject): void => {
  const spec = ensureFields(pod, 'spec');
  defaultPodSpec(spec);
  setDefault(spec, 'enableServiceLinks', true);
};

const unreachable = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
const tolerationSeconds = 300;

/** What the admission plugins Priority and DefaultTolerationSeconds set. */
const admitPod = (spec: Fields): void => {
  setDefault(spec, 'priority', 0);
  setDefault(spec, 'preemptionPolicy', 'PreemptLowerPriority');
  const tolerations = listAt(spec, 'tolerations');
  const missing = unreachable.filter((key) => !tolerations.some((item) => item['key'] === key));
  spec['tolerations'] = [
    ...tolerations,
    ...missing.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds })),
  ];
};

const qosClass = (spec: Fields): string => {
  const containers = [...listAt(spec, 'containers'), ...listAt(spec, 'initContainers')].map((c) =>
    fieldsAt(c, 'resources'),
  );
  const names = (resources: Fields, key: string) =>
    Object.keys(fieldsAt(resources, key)).filter((name) => name === 'cpu' || name === 'memory');
  if (containers.every((resources) => names(resources, 'limits').length + names(resources, 'requests').length === 0)) {
    return 'BestEffort';
  }
  const guaranteed = containers.every(
    (resources) => names(resources, 'limits').length === 2 && isSame(resources['limits'], resources['requests']),
  );
  return guaranteed ? 'Guaranteed' : 'Burstable';
};

const named = (items: readonly Fields[]): ReadonlySet<string> =>
  new Set(items.map((item) => textAt(item, 'name') ?? ''));

const nameCauses = (items: readonly Fields[], path: string): Cause[] => {
  const names = items.map((item) => textAt(item, 'name') ?? '');
  return names.flatMap((name, index) => {
    if (name === '') return [required(`${path}[${index}].name`)];
    return names.indexOf(name) < index ? [duplicate(`${path}[${index}].name`, name)] : [];
  });
};

const noSuchVolume = (field: string, name: string): Cause => ({
  reason: 'FieldValueNotFound',
  field,
  message: `Not found: "${name}"`,
});

const mountCauses = (container: Fields, path: string, volumes: ReadonlySet<string>): Cause[] =>
  listAt(container, 'volumeMounts').flatMap((mount, index) => {
    const name = textAt(mount, 'name') ?? '';
    const at = `${path}.volumeMounts[${index}]`;
    return [
      ...(volumes.has(name) ? [] : [noSuchVolume(`${at}.name`, name)]),
      ...((textAt(mount, 'mountPath') ?? '') === '' ? [required(`${at}.mountPath`)] : []),
    ];
  });

const containerCauses = (spec: Fields, list: string, path: string): Cause[] => {
  const containers = listAt(spec, list);
  const volumes = named(listAt(spec, 'volumes'));
  return [
    ...nameCauses(containers, `${path}.${list}`),
    ...containers.flatMap((container, index) => {
      const at = `${path}.${list}[${index}]`;
      const image = (textAt(container, 'image') ?? '') === '' ? [required(`${at}.image`)] : [];
      return [...image, ...mountCauses(container, at, volumes)];
    }),
  ];
};

const restartPolicies = ['Always', 'OnFailure', 'Never'];

/** Errors of a pod spec at `path`. */
export const validatePodSpec = (spec: Fields, path: string): Cause[] => {
  const policy = textAt(spec, 'restartPolicy') ?? '';
  return [
    ...nameCauses(listAt(spec, 'volumes'), `${path}.volumes`),
    ...(listAt(spec, 'containers').length === 0 ? [required(`${path}.containers`)] : []),
    ...containerCauses(spec, 'containers', path),
    ...containerCauses(spec, 'initContainers', path),
    ...(restartPolicies.includes(policy) ? [] : [notSupported(`${path}.restartPolicy`, policy, restartPolicies)]),
  ];
};

const mutable =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

/** The spec without the mutable fields of an existing pod. */
const fixedPart = (spec: Fields): Fields => {
  const withoutImage = (containers: Fields[]) => containers.map((container) => omit(container, 'image'));
  const rest = omit(spec, 'activeDeadlineSeconds', 'tolerations', 'nodeName', 'schedulingGates');
  return {
    ...rest,
    containers: withoutImage(listAt(spec, 'containers')),
    initContainers: withoutImage(listAt(spec, 'initContainers')),
  };
};

const isFinished = (pod: ApiObject): boolean =>
  ['Succeeded', 'Failed'].includes(toText(fieldsAt(pod, 'status')['phase']));

/** A pod that is not scheduled, or that has finished, is deleted at once. */
const graceSeconds = (pod: ApiObject, asked: number | undefined): number => {
  const spec = specOf(pod);
  if ((textAt(spec, 'nodeName') ?? '') === '' || isFinished(pod)) return 0;
  const given = asked ?? (spec['terminationGracePeriodSeconds'] as number | undefined) ?? defaultGraceSeconds;
  return given < 0 ? 1 : given;
};

export const podStrategy: Strategy = withStatus({
  hasGeneration: true,
  returnsDeleted: true,
  defaults: defaultPod,
  prepareCreate: (pod) => {
    const spec = specOf(pod);
    admitPod(spec);
    pod['status'] = { phase: 'Pending', qosClass: qosClass(spec) };
  },
  validate: (pod) => validatePodSpec(specOf(pod), 'spec'),
  validateUpdate: (pod, old) =>
    isSame(fixedPart(specOf(pod)), fixedPart(specOf(old))) ? [] : [forbidden('spec', mutable)],
  prepareStatus: (pod, old) => {
    pod.metadata.ownerReferences = old.metadata.ownerReferences ?? [];
    if (old.metadata.ownerReferences === undefined) delete pod.metadata.ownerReferences;
  },
  graceSeconds,
  selectable: (pod) => ({
    ...selectPaths(
      'spec.nodeName',
      'spec.restartPolicy',
      'spec.schedulerName',
      'spec.serviceAccountName',
      'status.phase',
      'status.podIP',
      'status.nominatedNodeName',
    )(pod),
    'spec.hostNetwork': toText(specOf(pod)['hostNetwork'], 'false'),
  }),
});
