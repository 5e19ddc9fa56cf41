// The AdmissionReview that a webhook gets, and the meaning of its response.
import type { Call } from '../handlers/call.ts';
import { type ApiObject, type Fields, fieldsAt, isFields, textAt, toText } from '../objects/object.ts';
import { type Resource, apiVersionOf, subresourceOf } from '../registry/resource.ts';
import { ApiError } from '../status/status.ts';
import { isDryRun } from '../handlers/call.ts';
import type { Attributes } from '../handlers/call.ts';

const optionKinds: Readonly<Record<Attributes['operation'], string>> = {
  CREATE: 'CreateOptions',
  UPDATE: 'UpdateOptions',
  DELETE: 'DeleteOptions',
  CONNECT: 'CreateOptions',
};

const optionsOf = (call: Call, { operation, options }: Attributes): Fields => {
  const { query } = call.info;
  const head = { kind: optionKinds[operation], apiVersion: 'meta.k8s.io/v1' };
  if (operation === 'DELETE') return { ...options.raw, ...head };
  return {
    ...head,
    ...((options.dryRun ?? []).length === 0 ? {} : { dryRun: options.dryRun }),
    ...(query.has('fieldManager') ? { fieldManager: query.get('fieldManager') } : {}),
    ...(query.has('fieldValidation') ? { fieldValidation: query.get('fieldValidation') } : {}),
  };
};

const kindOf = (call: Call, resource: Resource) => {
  const sub = subresourceOf(resource, call.path.subresource);
  const own = { group: resource.group, version: resource.version, kind: resource.kind };
  return sub === undefined
    ? own
    : { group: sub.group ?? own.group, version: sub.version ?? own.version, kind: sub.kind };
};

const resourceOf = ({ group, version, plural }: Resource) => ({ group, version, resource: plural });

/** The object in the version that the webhook requested. Versions differ only in name. */
const inVersion = (object: ApiObject | undefined, resource: Resource): ApiObject | null =>
  object === undefined ? null : { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind };

const userInfo = ({ username, uid, groups, extra }: Call['user']): Fields => ({
  username,
  ...(uid === undefined ? {} : { uid }),
  groups,
  ...(extra === undefined ? {} : { extra }),
});

export interface Review extends Fields {
  readonly request: Fields & { readonly uid: string };
}

export const buildReview = (call: Call, resource: Resource, attributes: Attributes): Review => {
  const { subresource, namespace, name } = call.path;
  const objectName = name === '' ? ((attributes.object ?? attributes.old)?.metadata.name ?? '') : name;
  return {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid: call.api.uuid(),
      kind: kindOf(call, resource),
      resource: resourceOf(resource),
      ...(subresource === '' ? {} : { subResource: subresource }),
      requestKind: kindOf(call, call.resource),
      requestResource: resourceOf(call.resource),
      ...(subresource === '' ? {} : { requestSubResource: subresource }),
      ...(objectName === '' ? {} : { name: objectName }),
      ...(call.resource.namespaced
        ? { namespace }
        : call.resource.collection === 'namespaces' && objectName !== ''
          ? { namespace: objectName }
          : {}),
      operation: attributes.operation,
      userInfo: userInfo(call.user),
      object: inVersion(attributes.object, resource),
      oldObject: inVersion(attributes.old, resource),
      dryRun: isDryRun(attributes.options),
      options: optionsOf(call, attributes),
    },
  };
};

export interface Verdict {
  readonly allowed: boolean;
  readonly status: Fields | undefined;
  /** From a JSON patch, decoded; undefined when there is none. */
  readonly patch: unknown;
  readonly warnings: readonly string[];
}

const patchOf = (response: Fields): unknown => {
  const patch = textAt(response, 'patch') ?? '';
  const type = response['patchType'];
  if (patch === '') {
    if (type !== undefined && type !== null)
      throw new Error('webhook returned response.patchType but not response.patch');
    return undefined;
  }
  if (type === undefined || type === null)
    throw new Error('webhook returned response.patch but not response.patchType');
  if (type !== 'JSONPatch') throw new Error(`webhook returned invalid response.patchType of "${toText(type)}"`);
  return JSON.parse(Buffer.from(patch, 'base64').toString()) as unknown;
};

/** The response inside a well-formed AdmissionReview that answers this review. */
const responseOf = (body: unknown, review: Review): Fields => {
  if (!isFields(body)) throw new Error('the answer is no AdmissionReview');
  const apiVersion = toText(body['apiVersion']);
  const kind = toText(body['kind']);
  if (apiVersion !== 'admission.k8s.io/v1' || kind !== 'AdmissionReview') {
    throw new Error(
      `expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got ${apiVersion}, Kind=${kind}`,
    );
  }
  const response = body['response'];
  if (!isFields(response)) throw new Error('webhook response was absent');
  if (response['uid'] === review.request.uid) return response;
  throw new Error(`expected response.uid="${review.request.uid}", got "${toText(response['uid'])}"`);
};

/** Parses a response; throws an Error that says how it violates the contract. `mutates`: a patch is allowed. */
export const parseVerdict = (body: unknown, review: Review, mutates: boolean): Verdict => {
  const response = responseOf(body, review);
  return {
    allowed: response['allowed'] === true,
    status: response['status'] === undefined ? undefined : fieldsAt(response, 'status'),
    patch: mutates ? patchOf(response) : undefined,
    warnings: Array.isArray(response['warnings']) ? response['warnings'].map(String) : [],
  };
};

/** The rejection that a client sees. */
export const denial = (name: string, { status = {} }: Verdict): ApiError => {
  const by = `admission webhook "${name}" denied the request`;
  const why = textAt(status, 'message') ?? textAt(status, 'reason') ?? '';
  const code = typeof status['code'] === 'number' && status['code'] >= 400 ? status['code'] : 400;
  return new ApiError({
    ...status,
    kind: 'Status',
    apiVersion: 'v1',
    metadata: fieldsAt(status, 'metadata'),
    status: 'Failure',
    message: why === '' ? `${by} without explanation` : `${by}: ${why}`,
    code,
  });
};
