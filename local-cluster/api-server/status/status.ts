// Status bodies and the errors that contain them, with the messages of kube-apiserver. Thrown by every handler.
import type { Cause } from '../schema/cause.ts';

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly Cause[];
  readonly retryAfterSeconds?: number;
}

export interface StatusBody {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly status: 'Success' | 'Failure';
  readonly message?: string;
  readonly reason?: string;
  readonly details?: StatusDetails;
  readonly code?: number;
}

/** A resource as named in messages: `configmaps`, `jobs.batch`. */
export interface ResourceName {
  readonly group: string;
  readonly plural: string;
}

/** A response other than success. `status` is the body as sent. */
export class ApiError extends Error {
  readonly status: StatusBody;

  constructor(status: StatusBody) {
    super(status.message ?? status.reason ?? 'failure');
    this.name = 'ApiError';
    this.status = status;
  }
}

export const isApiError = (error: unknown): error is ApiError => error instanceof ApiError;

export const qualified = (resource: ResourceName): string =>
  resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`;

interface Failure {
  readonly code: number;
  readonly reason?: string;
  readonly message: string;
  readonly details?: StatusDetails;
}

export const failure = ({ code, reason, message, details }: Failure): ApiError =>
  new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    ...(reason === undefined ? {} : { reason }),
    ...(details === undefined ? {} : { details }),
    code,
  });

/** The response when no handler exists: for an unknown verb or resource. */
export const methodUnknown = (): ApiError =>
  failure({
    code: 405,
    reason: 'MethodNotAllowed',
    message: 'the server does not allow this method on the requested resource',
    details: {},
  });

export const resourceUnknown = (): ApiError =>
  failure({
    code: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
    details: {},
  });

/** An error without a reason: one that Go code in the server returned unchanged. */
export const plainError = (message: string): ApiError => failure({ code: 500, message });

const detailsOf = (resource: ResourceName, name: string): StatusDetails => ({
  ...(name === '' ? {} : { name }),
  ...(resource.group === '' ? {} : { group: resource.group }),
  kind: resource.plural,
});

export const badRequest = (message: string): ApiError => failure({ code: 400, reason: 'BadRequest', message });

export const unauthorized = (): ApiError => failure({ code: 401, reason: 'Unauthorized', message: 'Unauthorized' });

export const forbidden = (resource: ResourceName, name: string, message: string): ApiError =>
  failure({
    code: 403,
    reason: 'Forbidden',
    message: `${qualified(resource)}${name === '' ? '' : ` "${name}"`} is forbidden: ${message}`,
    details: detailsOf(resource, name),
  });

export const notFound = (resource: ResourceName, name: string): ApiError =>
  failure({
    code: 404,
    reason: 'NotFound',
    message: `${qualified(resource)} "${name}" not found`,
    details: detailsOf(resource, name),
  });

export const methodNotAllowed = (resource: ResourceName, verb: string): ApiError =>
  failure({
    code: 405,
    reason: 'MethodNotAllowed',
    message: `${verb} is not supported on resources of kind "${qualified(resource)}"`,
    details: detailsOf(resource, ''),
  });

export const notAcceptable = (accepted: readonly string[]): ApiError =>
  failure({
    code: 406,
    reason: 'NotAcceptable',
    message: `only the following media types are accepted: ${accepted.join(', ')}`,
  });

export const alreadyExists = (resource: ResourceName, name: string, isEnding = false): ApiError =>
  failure({
    code: 409,
    reason: 'AlreadyExists',
    message: `${isEnding ? 'object is being deleted: ' : ''}${qualified(resource)} "${name}" already exists`,
    details: detailsOf(resource, name),
  });

export const conflict = (resource: ResourceName, name: string, why: string): ApiError =>
  failure({
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`,
    details: detailsOf(resource, name),
  });

export const modifiedMessage =
  'the object has been modified; please apply your changes to the latest version and try again';

export const expired = (message: string): ApiError => failure({ code: 410, reason: 'Expired', message });

export const unsupportedMediaType = (accepted: readonly string[]): ApiError =>
  failure({
    code: 415,
    reason: 'UnsupportedMediaType',
    message: `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  });

export const internalError = (message: string): ApiError =>
  failure({
    code: 500,
    reason: 'InternalError',
    message: `Internal error occurred: ${message}`,
    details: { causes: [{ message } as Cause] },
  });

/** All errors of one object at once; `kind` is its kind, as in `details.kind`. */
export const invalid = (
  kind: { readonly group: string; readonly kind: string },
  name: string,
  causes: readonly Cause[],
): ApiError => {
  const faults = [...new Set(causes.map((cause) => `${cause.field}: ${cause.message}`))];
  const [only] = faults;
  const qualifiedKind = kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`;
  return failure({
    code: 422,
    reason: 'Invalid',
    message: `${qualifiedKind} "${name}" is invalid: ${faults.length === 1 ? only : `[${faults.join(', ')}]`}`,
    details: {
      ...(name === '' ? {} : { name }),
      ...(kind.group === '' ? {} : { group: kind.group }),
      ...(kind.kind === '' ? {} : { kind: kind.kind }),
      causes,
    },
  });
};
