// The paths of an OpenAPI document: the verbs of a resource and its kind. Called by openapi.ts.

import type { Json, JsonObject } from './json.ts';
import { wellKnownTypes } from './openapi-names.ts';

export interface PathResource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  /** Such as `status`. */
  readonly subresources: readonly string[];
  /** Whether strategic merge patches are accepted: only for built-in kinds. */
  readonly strategic: boolean;
}

/** How a document refers to the schemas of a resource. */
export interface PathRefs {
  readonly prefix: '#/components/schemas/' | '#/definitions/';
  readonly object: string;
  readonly list: string;
}

const parameter = (name: string, type: string, where: 'query' | 'path', isVersion2: boolean): JsonObject => ({
  name,
  in: where,
  ...(where === 'path' ? { required: true } : {}),
  ...(isVersion2 ? { type, uniqueItems: true } : { schema: { type, uniqueItems: true } }),
});

const writeParameters = ['dryRun', 'fieldManager', 'fieldValidation'];
const listParameters: Readonly<Record<string, string>> = {
  allowWatchBookmarks: 'boolean',
  continue: 'string',
  fieldSelector: 'string',
  labelSelector: 'string',
  limit: 'integer',
  resourceVersion: 'string',
  resourceVersionMatch: 'string',
  sendInitialEvents: 'boolean',
  timeoutSeconds: 'integer',
  watch: 'boolean',
};
const deleteParameters: Readonly<Record<string, string>> = {
  dryRun: 'string',
  gracePeriodSeconds: 'integer',
  orphanDependents: 'boolean',
  propagationPolicy: 'string',
};

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

const queryOf = (action: string): Readonly<Record<string, string>> => {
  const write = Object.fromEntries(writeParameters.map((name) => [name, 'string']));
  if (action === 'patch') return { ...write, force: 'boolean' };
  if (action === 'post' || action === 'put') return write;
  if (action === 'list') return listParameters;
  return action === 'delete' || action === 'deletecollection' ? deleteParameters : {};
};

const patchTypes = (resource: PathResource): string[] => [
  'application/apply-patch+yaml',
  'application/json-patch+json',
  'application/merge-patch+json',
  ...(resource.strategic ? ['application/strategic-merge-patch+json'] : []),
];

const bodyOf = (resource: PathResource, refs: PathRefs, method: Method): JsonObject => {
  if (method === 'get') return {};
  const name =
    method === 'patch' ? wellKnownTypes.patch : method === 'delete' ? wellKnownTypes.deleteOptions : refs.object;
  const schema = { $ref: `${refs.prefix}${name}` };
  if (refs.prefix === '#/definitions/') return {};
  const types = method === 'patch' ? patchTypes(resource) : ['application/json', 'application/yaml'];
  return {
    requestBody: {
      content: Object.fromEntries(types.map((type) => [type, { schema }])),
      required: method !== 'delete',
    },
  };
};

const responses = (refs: PathRefs, name: string): JsonObject => {
  const schema = { $ref: `${refs.prefix}${name}` };
  if (refs.prefix === '#/definitions/')
    return { 200: { description: 'OK', schema }, 401: { description: 'Unauthorized' } };
  return {
    200: { description: 'OK', content: { 'application/json': { schema }, 'application/yaml': { schema } } },
    401: { description: 'Unauthorized' },
  };
};

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

const verbNames: Readonly<Record<string, string>> = {
  get: 'read',
  list: 'list',
  post: 'create',
  put: 'replace',
  patch: 'patch',
  delete: 'delete',
  deletecollection: 'deleteCollection',
};

interface OperationName {
  readonly method: Method;
  readonly action: string;
  readonly subresource: string;
}

const operation = (resource: PathResource, refs: PathRefs, name: OperationName): JsonObject => {
  const { group, version, kind } = resource;
  const isVersion2 = refs.prefix === '#/definitions/';
  const groupName = group === '' ? 'core' : group.replace(/\..*$/, '');
  const scope = resource.namespaced ? 'Namespaced' : '';
  const query: Json[] = Object.entries(queryOf(name.action)).map(([key, type]) =>
    parameter(key, type, 'query', isVersion2),
  );
  const isList = name.action === 'list';
  const answer = isList ? refs.list : name.action.startsWith('delete') ? wellKnownTypes.status : refs.object;
  return {
    description: `${verbNames[name.action] ?? name.action} ${name.subresource === '' ? '' : `${name.subresource} of `}the specified ${kind}`,
    operationId: `${verbNames[name.action] ?? name.action}${capital(groupName)}${capital(version)}${scope}${kind}${capital(name.subresource)}`,
    parameters: query,
    ...bodyOf(resource, refs, name.method),
    responses: responses(refs, answer),
    tags: [`${groupName}_${version}`],
    'x-kubernetes-action': name.action,
    'x-kubernetes-group-version-kind': { group, kind, version },
  };
};

const collectionActions: Readonly<Record<string, readonly [Method, string]>> = {
  list: ['get', 'list'],
  create: ['post', 'post'],
  deletecollection: ['delete', 'deletecollection'],
};
const objectActions: Readonly<Record<string, readonly [Method, string]>> = {
  get: ['get', 'get'],
  update: ['put', 'put'],
  patch: ['patch', 'patch'],
  delete: ['delete', 'delete'],
};

const operations = (
  resource: PathResource,
  refs: PathRefs,
  actions: Readonly<Record<string, readonly [Method, string]>>,
  subresource: string,
): JsonObject => {
  const verbs = subresource === '' ? resource.verbs : ['get', 'update', 'patch'];
  return Object.fromEntries(
    Object.entries(actions)
      .filter(([verb]) => verbs.includes(verb))
      .map(([, [method, action]]) => [method, operation(resource, refs, { method, action, subresource })]),
  );
};

/** Every path of a resource with its operations. */
export const pathsOf = (resource: PathResource, refs: PathRefs): JsonObject => {
  const isVersion2 = refs.prefix === '#/definitions/';
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const collection = `${root}${resource.namespaced ? '/namespaces/{namespace}' : ''}/${resource.plural}`;
  const namespace = resource.namespaced ? [parameter('namespace', 'string', 'path', isVersion2)] : [];
  const inObject = [parameter('name', 'string', 'path', isVersion2), ...namespace];
  return {
    ...(resource.namespaced
      ? { [`${root}/${resource.plural}`]: operations(resource, refs, { list: ['get', 'list'] }, '') }
      : {}),
    [collection]: { ...operations(resource, refs, collectionActions, ''), parameters: namespace },
    [`${collection}/{name}`]: { ...operations(resource, refs, objectActions, ''), parameters: inObject },
    ...Object.fromEntries(
      resource.subresources.map((name) => [
        `${collection}/{name}/${name}`,
        {
          ...operations(
            resource,
            refs,
            { get: ['get', 'get'], update: ['put', 'put'], patch: ['patch', 'patch'] },
            name,
          ),
          parameters: inObject,
        },
      ]),
    ),
  };
};
