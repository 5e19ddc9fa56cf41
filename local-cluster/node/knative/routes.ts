// Where Knative wants a request to go: its Ingress objects as a table. Pure. Called by ingress.ts.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

interface Backend {
  readonly serviceNamespace: string;
  readonly serviceName: string;
  readonly servicePort: number | string;
}

interface Split extends Backend {
  readonly percent?: number;
  readonly appendHeaders?: Readonly<Record<string, string>>;
}

interface Path {
  readonly path?: string;
  /** All of them, exactly. */
  readonly headers?: Readonly<Record<string, { readonly exact: string }>>;
  readonly splits: readonly Split[];
  readonly appendHeaders?: Readonly<Record<string, string>>;
}

export interface KnativeIngress extends KubeObject {
  readonly spec: {
    readonly rules?: readonly {
      readonly hosts?: readonly string[];
      readonly http?: { readonly paths: readonly Path[] };
    }[];
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

export const knativeIngresses: ResourceType<KnativeIngress> = {
  group: 'networking.internal.knative.dev',
  version: 'v1alpha1',
  kind: 'Ingress',
  plural: 'ingresses',
  namespaced: true,
};

/** In Knative's ConfigMap `config-network`: no other controller has it. */
export const ingressClass = 'bullion.ingress.networking.knative.dev';

export const isOurs = ({ metadata: { annotations = {} } }: KnativeIngress): boolean =>
  annotations['networking.knative.dev/ingress.class'] === ingressClass;

export const backendsOf = ({ spec: { rules = [] } }: KnativeIngress): readonly Backend[] =>
  rules.flatMap(({ http }) => (http?.paths ?? []).flatMap(({ splits }) => splits));

export interface Request {
  /** Without port. */
  readonly host: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export interface Target extends Backend {
  /** They replace those of the request. */
  readonly headers: Readonly<Record<string, string>>;
}

/** `undefined` if no rule matches. `dice` is at least 0, less than 1: it decides between splits. */
export const targetOf = (ingresses: readonly KnativeIngress[], request: Request, dice: number): Target | undefined => {
  const rules = ingresses
    .flatMap(({ spec }) => spec.rules ?? [])
    .filter(({ hosts = [] }) => hosts.includes(request.host));
  const paths = rules.flatMap(({ http }) => http?.paths ?? []).filter((path) => matches(path, request));
  // One that asks for a header or a path is there for exceptions from one that does not.
  const [path] = paths.toSorted((a, b) => weightOf(b) - weightOf(a));
  if (path === undefined) return undefined;
  const split = splitOf(path.splits, dice * 100);
  if (split === undefined) return undefined;
  const { serviceNamespace, serviceName, servicePort, appendHeaders } = split;
  return { serviceNamespace, serviceName, servicePort, headers: { ...path.appendHeaders, ...appendHeaders } };
};

const matches = ({ path = '/', headers = {} }: Path, request: Request): boolean =>
  request.path.startsWith(path) &&
  Object.entries(headers).every(([name, { exact }]) => request.headers[name.toLowerCase()] === exact);

const weightOf = ({ path = '', headers = {} }: Path): number => Object.keys(headers).length * 10_000 + path.length;

/** A single one has everything, whatever its percentage. */
const splitOf = (splits: readonly Split[], at: number): Split | undefined => {
  let end = 0;
  return splits.length === 1 ? splits[0] : splits.find(({ percent = 0 }) => at < (end += percent));
};
