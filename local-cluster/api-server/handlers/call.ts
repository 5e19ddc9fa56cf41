// What every handler gets: the request, who asks, the resource it is about, and the parts of the server.
import type { ApiObject, Fields } from '../objects/object.ts';
import type { Action, Authorizer } from '../auth/authorizer.ts';
import type { Tokens } from '../auth/tokens.ts';
import type { User } from '../auth/user.ts';
import type { RequestInfo, ResourcePath } from '../http/request.ts';
import { type Negotiated, negotiate } from '../http/negotiate.ts';
import type { Registry } from '../registry/registry.ts';
import type { Resource, StrategyContext } from '../registry/resource.ts';
import type { Store } from '../store/store.ts';

/** What an admission webhook is told of a write. */
export interface Attributes {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  /** Absent for deletions. */
  readonly object: ApiObject | undefined;
  /** Absent for creations. */
  readonly old: ApiObject | undefined;
  readonly options: {
    readonly dryRun?: readonly string[];
    readonly raw?: Fields;
    readonly fieldManager?: string | undefined;
  };
}

/** The admission chain as the handlers know it: mutate before, validate after an object has its final form. */
export interface Admission {
  /** The object after all mutating webhooks; throws a Status when one refuses. */
  readonly mutate: (call: Call, attributes: Attributes & { readonly object: ApiObject }) => Promise<ApiObject>;
  /** Mutating webhooks are asked about deletions too, though there is nothing to change. */
  readonly mutateDelete: (call: Call, attributes: Attributes) => Promise<void>;
  readonly validate: (call: Call, attributes: Attributes) => Promise<void>;
}

export type Audit = (user: User, action: Action) => void;

/** The parts of the server. */
export interface Api {
  readonly store: Store;
  readonly registry: Registry;
  readonly clock: () => Date;
  readonly random: () => number;
  readonly uuid: () => string;
  readonly admission: Admission;
  readonly authorizer: Authorizer;
  readonly tokens: Tokens;
  /** Told of what each user was let do. */
  readonly audit?: Audit | undefined;
  readonly strategies: () => StrategyContext;
  /** File that holds a container's output; left out where nobody runs pods. */
  readonly containerLog?: ((podUid: string, container: string) => string) | undefined;
}

export interface Call {
  readonly api: Api;
  readonly request: Request;
  readonly info: RequestInfo;
  readonly path: ResourcePath;
  readonly resource: Resource;
  readonly user: User;
  /** Gathered while the request is handled and sent with the answer; a text appears once. */
  readonly warnings: Set<string>;
  readonly form: Negotiated;
}

export const createCall = (call: Omit<Call, 'warnings' | 'form'>): Call => {
  const form = negotiate(call.request.headers.get('accept'));
  return { ...call, warnings: new Set(), form };
};

export const storeKey = (call: Pick<Call, 'resource' | 'path'>, name = call.path.name) => ({
  collection: call.resource.collection,
  namespace: call.path.namespace,
  name,
});

/** Time stamps of the API have whole seconds. */
export const timestamp = (now: Date): string => `${now.toISOString().slice(0, 19)}Z`;

export const isDryRun = (options: { readonly dryRun?: readonly string[] }): boolean =>
  options.dryRun?.includes('All') === true;
