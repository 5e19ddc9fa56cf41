// Makes the source that a spec names: the one place that knows all kinds of sources.
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { createHttpClient } from '#shared/clients/http/client.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { redactUrl } from '#shared/runtime/redact.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import { createHttpSource } from '#shared/transfer/source/http/create.ts';
import type { Source } from '#shared/transfer/source/source.ts';
import type { HttpSource, TransferSpec } from '#shared/transfer/spec.ts';

export interface SourceContext {
  readonly signal: AbortSignal;
  /** Told of each transient fault before it is waited out. */
  readonly onRetry: (error: unknown, waitMs: number) => void;
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Files whose names begin with two dots belong to the way Kubernetes mounts secrets. */
const readSecretHeaders = async (directory: string | undefined): Promise<Record<string, string>> => {
  if (directory === undefined) return {};
  const headers: Record<string, string> = {};
  for (const name of await readdir(directory)) {
    if (name.startsWith('..')) continue;
    const value = (await readFile(join(directory, name), 'utf8')).trim();
    if (!headerName.test(name) || /[\r\n\0]/.test(value))
      throw new TransferError('InvalidSpec', `"${name}" in the header secret is no HTTP header`);
    headers[name.toLowerCase()] = value;
  }
  return headers;
};

/** A secret or bundle that is not there may appear (mounted late, created late). */
const reading = async <T>(what: string, read: () => Promise<T>): Promise<T> => {
  try {
    return await read();
  } catch (error) {
    if (error instanceof TransferError) throw error;
    throw new TransferError('SourceForbidden', `cannot read the ${what}: ${messageOf(error)}`, {
      cause: error,
      retryable: true,
    });
  }
};

const parseUrl = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new TransferError('InvalidSpec', `"${redactUrl(text)}" is not an http or https URL`);
};

const openHttp = async (source: HttpSource, spec: TransferSpec, context: SourceContext): Promise<Source> => {
  const url = parseUrl(source.url);
  const { secretHeadersDir, caFile } = source;
  const secretHeaders = await reading('headers of the source', () => readSecretHeaders(secretHeadersDir));
  const ca =
    caFile === undefined ? undefined : await reading('CA bundle of the source', () => readFile(caFile, 'utf8'));
  const client = createHttpClient({
    isRefused: createAddressPolicy(spec.allowedAddresses),
    idleMs: spec.limits.idleSeconds * 1000,
    ca,
  });
  return createHttpSource({ client, url, secretHeaders, retries: spec.limits.retries, ...context });
};

/** Nothing is connected to yet. Throws TransferError. */
export const openSource = (spec: TransferSpec, context: SourceContext): Promise<Source> =>
  openHttp(spec.source, spec, context);
