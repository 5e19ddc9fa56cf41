// Subresources that are not a view of their object: eviction, binding, scale, namespace finalizers.
import { clone } from '../objects/equal.ts';
import { decodeObject } from '../objects/decode.ts';
import {
  type ApiObject,
  type Fields,
  ensureFields,
  fieldsAt,
  isFields,
  numberAt,
  textAt,
  toText,
} from '../objects/object.ts';
import { respond } from '../http/respond.ts';
import { type Resource, type ScalePaths, type Subresource, groupVersion } from '../registry/resource.ts';
import { badRequest, failure } from '../status/status.ts';
import { toLabelMatcher } from '../selectors/label.ts';
import { compileJsonPath } from '../tables/json-path.ts';
import { readAs, readBody } from './body.ts';
import type { Call } from './call.ts';
import { deleteObject } from './delete.ts';
import { getObject } from './get.ts';
import { parseWriteOptions } from './options.ts';
import { changeObject, respondChanged } from './update.ts';

const success = (code: number): Response =>
  respond({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code }, { code });

/** Throws a 429 while a disruption budget of the pod allows no eviction. */
const checkBudgets = (call: Call): void => {
  const pod = getObject(call);
  const budgets = call.api.strategies().all('poddisruptionbudgets.policy');
  const exhausted = budgets.find(
    (budget) =>
      budget.metadata.namespace === call.path.namespace &&
      toLabelMatcher(fieldsAt(budget, 'spec')['selector'])(pod.metadata.labels) &&
      (numberAt(fieldsAt(budget, 'status'), 'disruptionsAllowed') ?? 0) <= 0,
  );
  if (exhausted === undefined) return;
  const { name = '', generation = 0 } = exhausted.metadata;
  const status = fieldsAt(exhausted, 'status');
  const isBehind = (numberAt(status, 'observedGeneration') ?? 0) < generation;
  const message = isBehind
    ? `The disruption budget ${name} is still being processed by the server.`
    : `The disruption budget ${name} needs ${numberAt(status, 'desiredHealthy') ?? 0} healthy pods and has ${numberAt(status, 'currentHealthy') ?? 0} currently`;
  throw failure({
    code: 429,
    reason: 'TooManyRequests',
    message: "Cannot evict pod as it would violate the pod's disruption budget.",
    details: {
      causes: [{ reason: 'DisruptionBudget' as never, message, field: '' }],
      ...(isBehind ? { retryAfterSeconds: 10 } : {}),
    },
  });
};

export const handleEviction = async (call: Call, sub: Subresource): Promise<Response> => {
  const body = await readAs(call, sub, parseWriteOptions(call));
  const options = fieldsAt(body, 'deleteOptions');
  checkBudgets(call);
  await deleteObject(call, {
    gracePeriodSeconds: numberAt(options, 'gracePeriodSeconds'),
    propagation: undefined,
    uid: textAt(fieldsAt(options, 'preconditions'), 'uid'),
    resourceVersion: undefined,
    dryRun: Array.isArray(options['dryRun']) ? options['dryRun'].map(String) : [],
    raw: options,
  });
  return success(201);
};

/** Assigns a pod to a node, once. */
export const handleBinding = async (call: Call, sub: Subresource): Promise<Response> => {
  const options = parseWriteOptions(call);
  const body = await readAs(call, sub, options);
  const node = textAt(fieldsAt(body, 'target'), 'name') ?? '';
  const build = (live: ApiObject | undefined): ApiObject => {
    if (live === undefined) throw badRequest('pod does not exist');
    const spec = ensureFields(live, 'spec');
    if ((textAt(spec, 'nodeName') ?? '') !== '') {
      throw failure({
        code: 409,
        reason: 'Conflict',
        message: `Operation cannot be fulfilled on pods/binding "${call.path.name}": pod ${call.path.name} is already assigned to node "${textAt(spec, 'nodeName') ?? ''}"`,
        details: { name: call.path.name, kind: 'pods/binding' },
      });
    }
    spec['nodeName'] = node;
    return live;
  };
  await changeObject(
    { ...call, path: { ...call.path, subresource: '' } },
    { build, creates: false, tracksItself: false, options },
  );
  return success(201);
};

/** Replaces `spec.finalizers` of a namespace that is being deleted. */
export const handleFinalize = async (call: Call): Promise<Response> => {
  const options = parseWriteOptions(call);
  const wanted = decodeObject(await readBody(call.request), call.resource, {
    fieldValidation: options.fieldValidation,
    warn: (text) => call.warnings.add(text),
  });
  const build = (live: ApiObject | undefined): ApiObject => {
    const object = clone(live ?? wanted);
    object['spec'] = fieldsAt(wanted, 'spec');
    if (wanted.metadata.resourceVersion !== undefined)
      object.metadata.resourceVersion = wanted.metadata.resourceVersion;
    return object;
  };
  return respondChanged(call, await changeObject(call, { build, creates: false, tracksItself: false, options }));
};

const pathValue = (object: ApiObject, path: string | undefined): unknown =>
  path === undefined ? undefined : compileJsonPath(path)(object)[0];

/** The scale of a custom resource, by the paths of its definition. */
const customScale = (object: ApiObject, scale: ScalePaths) => {
  const selector = pathValue(object, scale.labelSelectorPath);
  return {
    wanted: Number(pathValue(object, scale.specReplicasPath) ?? 0),
    current: Number(pathValue(object, scale.statusReplicasPath) ?? 0),
    selector: typeof selector === 'string' ? selector : undefined,
  };
};

const builtinScale = (object: ApiObject) => {
  const labels = Object.entries(fieldsAt(fieldsAt(fieldsAt(object, 'spec'), 'selector'), 'matchLabels'));
  return {
    wanted: replicasOf(object, 'spec'),
    current: replicasOf(object, 'status'),
    selector: labels.length === 0 ? undefined : labels.map(([key, value]) => `${key}=${toText(value)}`).join(','),
  };
};

/** Sets the number in `.spec.replicas` or the path in the definition. */
const setReplicas = (object: ApiObject, path: string, replicas: number): void => {
  const keys = path.split('.').filter((key) => key !== '');
  const last = keys.pop() ?? 'replicas';
  keys.reduce<Fields>(ensureFields, object)[last] = replicas;
};

const replicasOf = (object: ApiObject, field: 'spec' | 'status'): number => {
  const value = isFields(object[field]) ? numberAt(object[field], 'replicas') : undefined;
  return value ?? 0;
};

const toScale = (resource: Resource, object: ApiObject): Fields => {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const scale = resource.custom?.scale;
  const shown = scale === undefined ? builtinScale(object) : customScale(object, scale);
  return {
    kind: 'Scale',
    apiVersion: groupVersion('autoscaling', 'v1'),
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: shown.wanted },
    status: { replicas: shown.current, ...(shown.selector === undefined ? {} : { selector: shown.selector }) },
  };
};

/** A merge patch of a scale and a complete scale are parsed alike: only the replica count is used. */
const withoutType = async (request: Request): Promise<Request> =>
  new Request('http://local', {
    method: 'POST',
    body: await request.text(),
    headers: { 'content-type': 'application/json' },
  });

export const handleScale = async (call: Call): Promise<Response> => {
  if (call.info.verb === 'get') return respond(toScale(call.resource, getObject(call)));
  const options = parseWriteOptions(call, call.info.verb === 'patch' ? 'application/merge-patch+json' : undefined);
  const body = (await readBody(await withoutType(call.request))) as Fields;
  const replicas = numberAt(fieldsAt(body, 'spec'), 'replicas');
  const build = (live: ApiObject | undefined): ApiObject => {
    const object = live as ApiObject;
    if (replicas !== undefined)
      setReplicas(object, call.resource.custom?.scale?.specReplicasPath ?? '.spec.replicas', replicas);
    return object;
  };
  const main = { ...call, path: { ...call.path, subresource: '' } };
  const { object } = await changeObject(main, { build, creates: false, tracksItself: false, options });
  return respond(toScale(call.resource, object));
};
