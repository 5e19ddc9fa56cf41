// The 403 of the authoriser, worded as kubectl users know it.
import type { ResourcePath } from '../http/request.ts';
import { type ApiError, forbidden } from '../status/status.ts';
import type { User } from './user.ts';

const where = (path: ResourcePath): string =>
  path.namespace === '' ? ' at the cluster scope' : ` in the namespace "${path.namespace}"`;

export const denied = (user: User, verb: string, path: ResourcePath): ApiError => {
  const resource = path.subresource === '' ? path.plural : `${path.plural}/${path.subresource}`;
  const message = `User "${user.username}" cannot ${verb} resource "${resource}" in API group "${path.group}"${where(path)}`;
  return forbidden({ group: path.group, plural: path.plural }, path.name, message);
};
