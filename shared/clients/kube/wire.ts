// Requests and answers of the Kubernetes API, independent of the transport: undici in functions, `fetch` in Workers.
import type { KubeObject, ObjectKey, ResourceType } from '#shared/api/object.ts';
import type { ListOptions } from '#shared/clients/kube/client.ts';
import { parseJson } from '#shared/runtime/json.ts';
import {
  InvalidInput,
  type AppError,
  type AppErrorOptions,
  Conflict,
  Denied,
  NotFound,
  Unavailable,
  messageOf,
} from '#shared/runtime/errors.ts';

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: string | undefined;
  readonly contentType?: string | undefined;
  /** Set for a watch: no timeout, ends with the signal. */
  readonly signal?: AbortSignal | undefined;
}

/** An answer; its body can be read once. */
export interface TransportAnswer {
  readonly statusCode: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: AsyncIterable<Uint8Array> & { json(): Promise<unknown>; text(): Promise<string> };
}

/** Sends one request; throws an AppError for anything but 2xx. */
export type Transport = (request: TransportRequest) => Promise<TransportAnswer>;

// The Accept header.

/** Objects as JSON, and the keys of service account tokens, which the API server serves only in their own format. */
export const accepted = 'application/json, application/jwk-set+json';

// Paths of objects in the Kubernetes API.

/** Path of a collection, in one namespace. Default: in all namespaces. */
export const collectionPath = (type: ResourceType, namespace?: string): string => {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  const scope = type.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${scope}/${type.plural}`;
};

/** Throws InvalidInput if the name is empty: that path would be the whole collection, read or deleted as one object. */
export const objectPath = (type: ResourceType, key: ObjectKey, subresource?: string): string => {
  if (key.name === '') throw new InvalidInput(`a ${type.kind} was requested without a name: set its name`);
  const path = `${collectionPath(type, key.namespace)}/${encodeURIComponent(key.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
};

/** Query string of the values that are set; empty if none is. */
export const queryOf = (values: Readonly<Record<string, string | number | boolean | undefined>>): string => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) query.set(name, String(value));
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
};

export const listQuery = (options: ListOptions): string =>
  queryOf({
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
    limit: options.limit,
    continue: options.continue,
  });

/** Items of a list lack `apiVersion` and `kind` on the wire. */
export const withType = <T extends KubeObject>(type: ResourceType<T>, item: T): T => ({
  ...item,
  apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
  kind: type.kind,
});

/** A Kubernetes Status answer, as an error. */
interface StatusBody {
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly field?: string; readonly message?: string }[] };
}

/** What the API server says, without how it was asked. */
export const serverMessageOf = (error: unknown): string =>
  messageOf(error).replace(/^Kubernetes API: [A-Z]+ \/\S+: /, '');

/** The error for a Status object, from an HTTP answer or a watch. */
export const errorOfStatus = (
  code: number,
  body: StatusBody,
  what: string,
  options: AppErrorOptions = {},
): AppError => {
  const message = `Kubernetes API: ${what}: ${body.message ?? `status ${code}`}`;
  if (code === 404) return new NotFound(message, options);
  if (code === 401 || code === 403) return new Denied(message, options);
  // 410: the requested version is no longer available. Both mean: read again.
  if (code === 409 || code === 410) return new Conflict(message, options);
  if (code === 429 || code >= 500) return new Unavailable(message, options);
  const faults = (body.details?.causes ?? []).map((cause) => ({
    field: cause.field ?? '',
    message: cause.message ?? '',
  }));
  return new InvalidInput(message, faults, options);
};

const bodyOf = async (response: TransportAnswer): Promise<StatusBody> => {
  const text = await response.body.text().catch((error: unknown) => messageOf(error));
  const body = parseJson(text) as StatusBody | undefined;
  return body ?? (text === '' ? {} : { message: text.slice(0, 500) });
};

/** The error for an answer that is not 2xx. */
export const faultOf = async (response: TransportAnswer, what: string): Promise<AppError> => {
  const after = Number(response.headers['retry-after']);
  const options = Number.isFinite(after) && after > 0 ? { retryAfterSeconds: after } : {};
  return errorOfStatus(response.statusCode, await bodyOf(response), what, options);
};

/** Nothing is created in a namespace that is being deleted. */
export const isNamespaceLeaving = (error: unknown): boolean =>
  error instanceof Denied && error.message.includes('because it is being terminated');
