// Handles one request: authenticates, authorizes, dispatches. The same for sockets and for callers in this process.
import { type User, anonymous } from '../auth/user.ts';
import type { Api } from '../handlers/call.ts';
import { authorize, dispatch } from '../handlers/dispatch.ts';
import { denied } from '../auth/user.ts';
import { type ApiError, unauthorized } from '../status/status.ts';
import { extensionOf } from '../aggregation/extension.ts';
import { type Connector } from '../aggregation/connect.ts';
import { forward } from '../aggregation/proxy.ts';
import { type NonResources, handleNonResource } from './non-resource.ts';
import { parseRequest, type RequestInfo } from './request.ts';
import { respondError } from './respond.ts';

export type Handle = (request: Request) => Promise<Response>;

const authenticate = (api: Api, request: Request): User => {
  const header = request.headers.get('authorization');
  if (header === null) return anonymous;
  const token = /^Bearer\s+(.+)$/i.exec(header)?.[1];
  const verified = token === undefined ? undefined : api.tokens.verify(token);
  const isOurs = verified?.audiences.some((audience) => api.tokens.audiences.includes(audience)) === true;
  if (verified === undefined || !isOurs) throw unauthorized();
  return verified.user;
};

/** The message for an impersonated request. */
const mayNotImpersonate = (user: User, request: Request): ApiError => {
  const { verb, resource } = parseRequest(request.method, request.url);
  const path = resource ?? { group: '', version: '', plural: '', namespace: '', name: '', subresource: '' };
  return denied(user, `impersonate-on:user-info:${verb}`, path);
};

const extraPrefix = 'impersonate-extra-';

const impersonated = (api: Api, request: Request, user: User): User => {
  const name = request.headers.get('impersonate-user');
  if (name === null) return user;
  if (!api.authorizer.decide(user, { verb: 'impersonate', plural: 'users', name }).allowed) {
    throw mayNotImpersonate(user, request);
  }
  const groups =
    request.headers
      .get('impersonate-group')
      ?.split(',')
      .map((group) => group.trim()) ?? [];
  const account = /^system:serviceaccount:([^:]+):/.exec(name);
  const implied = account === null ? [] : ['system:serviceaccounts', `system:serviceaccounts:${account[1] ?? ''}`];
  const extra = [...request.headers]
    .filter(([header]) => header.startsWith(extraPrefix))
    .map(([header, value]) => [decodeURIComponent(header.slice(extraPrefix.length)), value.split(', ')] as const);
  return {
    username: name,
    groups: [...new Set([...groups, ...implied, 'system:authenticated'])],
    ...(extra.length === 0 ? {} : { extra: Object.fromEntries(extra) }),
  };
};

/** The group and version of a path, both for resources and for their discovery. */
const groupVersionOf = ({ path }: RequestInfo): readonly [string, string] | undefined => {
  const [root, group, version] = path.split('/').filter((part) => part !== '');
  return root === 'apis' && group !== undefined && version !== undefined ? [group, version] : undefined;
};

export interface RouterParts extends NonResources {
  readonly connector: Connector;
}

export const createRouter = (api: Api, { connector, ...nonResources }: RouterParts): Handle => {
  const route = async (request: Request, info: RequestInfo): Promise<Response> => {
    const user = impersonated(api, request, authenticate(api, request));
    authorize(api, user, info);
    const groupVersion = groupVersionOf(info);
    const extension = groupVersion === undefined ? undefined : extensionOf(api.store, ...groupVersion);
    if (extension !== undefined) return forward(connector, extension, request, user);
    return info.resource === undefined
      ? handleNonResource(nonResources, info, request)
      : dispatch(api, request, info, user);
  };
  const answer = async (request: Request): Promise<Response> => {
    try {
      return await route(request, parseRequest(request.method, request.url));
    } catch (error) {
      return respondError(error);
    }
  };
  return async (request) => {
    const response = await answer(request);
    response.headers.set('audit-id', request.headers.get('audit-id') ?? api.uuid());
    return response;
  };
};
