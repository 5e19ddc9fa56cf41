// The authenticated user.
import type { ResourcePath } from '../http/request.ts';
import { type ApiError, forbidden } from '../status/status.ts';

export interface User {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export const anonymous: User = { username: 'system:anonymous', groups: ['system:unauthenticated'] };

/** Needs no authorization. */
export const superGroup = 'system:masters';

export const isSuperuser = (user: User): boolean => user.groups.includes(superGroup);

/** The user of a service account, as named in tokens and RBAC subjects. */
export const serviceAccountUser = (namespace: string, name: string, uid: string): User => ({
  username: `system:serviceaccount:${namespace}:${name}`,
  ...(uid === '' ? {} : { uid }),
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
});

/** The 403 of the authorizer, with the message that kubectl users know. */
const where = (path: ResourcePath): string =>
  path.namespace === '' ? ' at the cluster scope' : ` in the namespace "${path.namespace}"`;

export const denied = (user: User, verb: string, path: ResourcePath): ApiError => {
  const resource = path.subresource === '' ? path.plural : `${path.plural}/${path.subresource}`;
  const message = `User "${user.username}" cannot ${verb} resource "${resource}" in API group "${path.group}"${where(path)}`;
  return forbidden({ group: path.group, plural: path.plural }, path.name, message);
};
