// The input of every handler: the request, the user, the resource, and the parts of the server.
import type { ApiObject, Fields } from '../objects/object.ts';
import type { Action, Authorizer } from '../auth/authorizer.ts';
import type { Tokens } from '../auth/tokens.ts';
import type { User } from '../auth/user.ts';
import type { RequestInfo, ResourcePath } from '../http/request.ts';
import { type Negotiated, negotiate } from '../http/negotiate.ts';
import type { Registry } from '../registry/registry.ts';
import type { Resource, StrategyContext } from '../registry/resource.ts';
import type { Store } from '../store/store.ts';

/** The attributes of a write for an admission webhook. */
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

/** The admission chain for the handlers: mutate before, validate after an object has its final form. */
export interface Admission {
  /** The object after all mutating webhooks; throws a Status when one rejects it. */
  readonly mutate: (call: Call, attributes: Attributes & { readonly object: ApiObject }) => Promise<ApiObject>;
  /** Mutating webhooks are called for deletions too, though there is nothing to change. */
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
  /** Called with every request that was allowed. */
  readonly audit?: Audit | undefined;
  readonly strategies: () => StrategyContext;
  /** File with a container's output; unset when nothing runs pods. */
  readonly containerLog?: ((podUid: string, container: string) => string) | undefined;
}

export interface Call {
  readonly api: Api;
  readonly request: Request;
  readonly info: RequestInfo;
  readonly path: ResourcePath;
  readonly resource: Resource;
  readonly user: User;
  /** Collected while the request is handled and sent with the response; each text occurs once. */
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

/** Timestamps of the API have whole seconds. */
export const timestamp = (now: Date): string => `${now.toISOString().slice(0, 19)}Z`;

export const isDryRun = (options: { readonly dryRun?: readonly string[] }): boolean =>
  options.dryRun?.includes('All') === true;
