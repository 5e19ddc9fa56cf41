// Builds responses: objects in the requested encoding, Status bodies, warnings.
import { stringify } from 'yaml';
import { type ApiError, type StatusBody, internalError, isApiError } from '../status/status.ts';
import type { Encoding } from './negotiate.ts';

const mediaTypes: Readonly<Record<Encoding, string>> = { json: 'application/json', yaml: 'application/yaml' };

export const toText = (value: unknown, encoding: Encoding): string =>
  encoding === 'json' ? JSON.stringify(value) : stringify(value, { aliasDuplicateObjects: false });

/** Each warning is one header (RFC 7234, code 299). */
export const warningHeader = (text: string): string =>
  `299 - "${text.replaceAll(/["\\]/g, String.raw`\$&`).replaceAll('\n', ' ')}"`;

export const respond = (
  value: unknown,
  options: { readonly code?: number; readonly encoding?: Encoding; readonly warnings?: readonly string[] } = {},
): Response => {
  const encoding = options.encoding ?? 'json';
  const headers = new Headers({ 'content-type': mediaTypes[encoding], 'cache-control': 'no-cache, private' });
  for (const warning of options.warnings ?? []) headers.append('warning', warningHeader(warning));
  return new Response(toText(value, encoding), { status: options.code ?? 200, headers });
};

const statusResponse = (status: StatusBody, warnings: readonly string[]): Response => {
  const response = respond(status, { code: status.code ?? 500, warnings });
  const retry = status.details?.retryAfterSeconds;
  if (retry !== undefined) response.headers.set('retry-after', String(retry));
  return response;
};

export const toApiError = (error: unknown): ApiError =>
  isApiError(error) ? error : internalError(error instanceof Error ? error.message : String(error));

export const respondError = (error: unknown, warnings: readonly string[] = []): Response =>
  statusResponse(toApiError(error).status, warnings);

/** The response for paths that are not served. */
export const notFoundPage = (): Response =>
  new Response('404 page not found\n', { status: 404, headers: { 'content-type': 'text/plain; charset=utf-8' } });
