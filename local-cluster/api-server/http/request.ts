// The attributes of a request, parsed from its method, path and query, as in kube-apiserver's RequestInfo.

export interface RequestInfo {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly verb: string;
  /** Set when the path is below /api or /apis/<group>/<version>. */
  readonly resource: ResourcePath | undefined;
}

export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** Empty: all namespaces, or a cluster-scoped resource. */
  readonly namespace: string;
  /** Empty: the collection. */
  readonly name: string;
  /** Empty: the object itself. */
  readonly subresource: string;
}

const verbs: Readonly<Record<string, string>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
  GET: 'get',
  HEAD: 'get',
};

const isTrue = (value: string | null): boolean => value !== null && !['', 'false', '0'].includes(value);

const verbOf = (method: string, path: ResourcePath | undefined, query: URLSearchParams): string => {
  if (path === undefined) return method.toLowerCase();
  const verb = verbs[method] ?? method.toLowerCase();
  if (path.name !== '') return verb;
  if (verb === 'get') return isTrue(query.get('watch')) ? 'watch' : 'list';
  return verb === 'delete' ? 'deletecollection' : verb;
};

/** Subresources of namespaces; anything else after the name of a namespace is a resource in it. */
const namespaceSubresources = new Set(['status', 'finalize']);

const splitResource = (parts: readonly string[]): Omit<ResourcePath, 'group' | 'version'> | undefined => {
  const [first = '', second = '', third = '', ...rest] = parts;
  if (first === '') return undefined;
  if (first === 'namespaces' && second !== '' && third !== '' && !namespaceSubresources.has(third)) {
    const [name = '', ...subresource] = rest;
    return { plural: third, namespace: second, name, subresource: subresource.join('/') };
  }
  const namespace = first === 'namespaces' ? second : '';
  return {
    plural: first,
    namespace,
    name: second,
    subresource: [third, ...rest].filter((part) => part !== '').join('/'),
  };
};

const resourceOf = (path: string): ResourcePath | undefined => {
  const [root, ...parts] = path
    .split('/')
    .filter((part) => part !== '')
    .map(decode);
  const group = root === 'apis' ? parts.shift() : root === 'api' ? '' : undefined;
  const version = parts.shift();
  if (group === undefined || version === undefined) return undefined;
  const resource = splitResource(parts);
  return resource === undefined ? undefined : { group, version, ...resource };
};

const decode = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

export const parseRequest = (method: string, url: string): RequestInfo => {
  const { pathname, searchParams } = new URL(url, 'https://localhost');
  const resource = resourceOf(pathname);
  // The old form /api/v1/watch/… is not served; a watch is a list with ?watch=1.
  return { method, path: pathname, query: searchParams, verb: verbOf(method, resource, searchParams), resource };
};

export const isFlag = (query: URLSearchParams, name: string): boolean => isTrue(query.get(name));
