// A Kubernetes Status answer as one of our errors.
import type { TransportAnswer } from '#shared/clients/kube/wire.ts';
import {
  type AppError,
  type AppErrorOptions,
  Conflict,
  Denied,
  InvalidInput,
  NotFound,
  Unavailable,
  messageOf,
} from '#shared/runtime/errors.ts';

interface StatusBody {
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly field?: string; readonly message?: string }[] };
}

/** Builds the error of a Status object, from an HTTP answer or inside a watch. */
export const errorOfStatus = (
  code: number,
  body: StatusBody,
  what: string,
  options: AppErrorOptions = {},
): AppError => {
  const message = `Kubernetes API: ${what}: ${body.message ?? `status ${code}`}`;
  if (code === 404) return new NotFound(message, options);
  if (code === 401 || code === 403) return new Denied(message, options);
  // 410: the version asked for is no longer kept. Both mean: read again.
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
  try {
    return JSON.parse(text) as StatusBody;
  } catch {
    return text === '' ? {} : { message: text.slice(0, 500) };
  }
};

/** The error of an answer that is not 2xx. */
export const faultOf = async (response: TransportAnswer, what: string): Promise<AppError> => {
  const after = Number(response.headers['retry-after']);
  const options = Number.isFinite(after) && after > 0 ? { retryAfterSeconds: after } : {};
  return errorOfStatus(response.statusCode, await bodyOf(response), what, options);
};
