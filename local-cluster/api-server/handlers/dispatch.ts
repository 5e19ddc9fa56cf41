// Passes a request for a resource to the handler of its verb, after authorization.
import {
  type ApiError,
  failure,
  methodNotAllowed,
  methodUnknown,
  notFound,
  resourceUnknown,
} from '../status/status.ts';
import { notFoundPage, respondError } from '../http/respond.ts';
import type { RequestInfo, ResourcePath } from '../http/request.ts';
import { denied } from '../auth/user.ts';
import type { User } from '../auth/user.ts';
import { selectedName } from '../selectors/field.ts';
import { type Resource, subresourceOf } from '../registry/resource.ts';
import { handleWatch } from '../watch/watch.ts';
import { type Api, type Call, createCall } from './call.ts';
import { handleCreate } from './create.ts';
import { handleDeleteCollection } from './delete.ts';
import { handleDelete } from './delete.ts';
import { handleGet } from './get.ts';
import { handleList } from './list.ts';
import { handlePatch } from './patch.ts';
import { handleReview, reviewOf } from './reviews.ts';
import { handleLog } from './log.ts';
import * as subresources from './subresources.ts';
import { handleTokenRequest } from './token-request.ts';
import { handleUpdate } from './update.ts';

type Handler = (call: Call) => Response | Promise<Response>;

const handlers: Readonly<Record<string, Handler>> = {
  create: handleCreate,
  get: handleGet,
  list: handleList,
  watch: handleWatch,
  update: handleUpdate,
  patch: handlePatch,
  delete: handleDelete,
  deletecollection: handleDeleteCollection,
};

const specialOf = (call: Call): Handler | undefined => {
  const sub = subresourceOf(call.resource, call.path.subresource);
  if (sub === undefined) return undefined;
  switch (sub.name) {
    case 'token':
      return (c) => handleTokenRequest(c, sub);
    case 'eviction':
      return (c) => subresources.handleEviction(c, sub);
    case 'binding':
      return (c) => subresources.handleBinding(c, sub);
    case 'finalize':
      return subresources.handleFinalize;
    case 'scale':
      return subresources.handleScale;
    case 'log':
      return handleLog;
    default:
      return handlers[call.info.verb];
  }
};

export const authorize = (api: Api, user: User, info: RequestInfo): void => {
  const { resource: path } = info;
  if (path !== undefined) {
    const name = path.name === '' ? (selectedName(info.query.get('fieldSelector')) ?? '') : path.name;
    const action = { verb: info.verb, ...path, name };
    if (!api.authorizer.decide(user, action).allowed) throw denied(user, info.verb, path);
    api.audit?.(user, action);
    return;
  }
  if (api.authorizer.decide(user, { verb: info.verb, path: info.path }).allowed) return;
  throw failure({
    code: 403,
    reason: 'Forbidden',
    message: `forbidden: User "${user.username}" cannot ${info.verb} path "${info.path}"`,
    details: {},
  });
};

const isCollectionVerb = (verb: string): boolean => ['create', 'list', 'watch', 'deletecollection'].includes(verb);

const handlerOf = (call: Call): Handler | undefined => {
  const { verb } = call.info;
  const { subresource } = call.path;
  if (subresource !== '') {
    const found = subresourceOf(call.resource, subresource);
    return found?.verbs.includes(verb) === true ? specialOf(call) : undefined;
  }
  if (!call.resource.verbs.includes(verb) || isCollectionVerb(verb) !== (call.path.name === '')) return undefined;
  const answer = verb === 'create' ? reviewOf(call) : undefined;
  return answer === undefined ? handlers[verb] : (c) => handleReview(c, answer);
};

/** A verb that only the collection or only the item supports, or a namespace for a cluster-scoped resource. */
const isMisplaced = (call: Call): boolean => {
  const { verb } = call.info;
  const { name, namespace } = call.path;
  if (!call.resource.namespaced && namespace !== '' && call.resource.plural !== 'namespaces') return true;
  if (verb === 'create') return false;
  return call.resource.namespaced && name !== '' && namespace === '';
};

/** Of built-in groups it is known what they do not serve; of others nothing is known. */
const unknownResource = (api: Api, path: ResourcePath): Response => {
  const group = api.registry.groups().find((item) => item.group === path.group);
  const isBuiltin =
    group?.versions.some(({ resources }) => resources.some(({ custom }) => custom === undefined)) === true;
  if (isBuiltin) throw resourceUnknown();
  return notFoundPage();
};

/** A subresource that is not served: for a custom resource it is not found, otherwise the path does not exist. */
const unknownSubresource = (resource: Resource, path: ResourcePath): ApiError =>
  resource.custom === undefined ? resourceUnknown() : notFound(resource, path.name);

/** The path of a namespace is parsed as if it were in the namespace of its own name, which it is not. */
const scopedPath = (resource: Resource, path: ResourcePath): ResourcePath =>
  resource.collection === 'namespaces' && path.name === '' ? { ...path, name: path.namespace, namespace: '' } : path;

export const dispatch = async (api: Api, request: Request, info: RequestInfo, user: User): Promise<Response> => {
  const { resource: path } = info;
  if (path === undefined) return notFoundPage();
  const resource = api.registry.find(path.group, path.version, path.plural);
  if (resource === undefined) return unknownResource(api, path);
  const scoped = scopedPath(resource, path);
  const call = createCall({ api, request, info, path: cluster(scoped, resource.namespaced), resource, user });
  if (path.subresource !== '' && subresourceOf(resource, path.subresource) === undefined) {
    throw unknownSubresource(resource, path);
  }
  if (isMisplaced({ ...call, path: scoped })) return notFoundPage();
  const handler = handlerOf(call);
  if (handler === undefined)
    throw resource.custom === undefined ? methodUnknown() : methodNotAllowed(resource, info.verb);
  if (resource.custom?.deprecation !== undefined) call.warnings.add(resource.custom.deprecation);
  try {
    return await handler(call);
  } catch (error) {
    return respondError(error, [...call.warnings]);
  }
};

const cluster = (path: ResourcePath, namespaced: boolean): ResourcePath =>
  namespaced ? path : { ...path, namespace: '' };
