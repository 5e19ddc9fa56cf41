// The HTTP client of a transfer: where it may go, how long it waits, whom it trusts.
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { type HttpClient, createHttpClient } from '#shared/clients/http/client.ts';
import { redactUrl } from '#shared/runtime/redact.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import type { TransferSpec } from '#shared/transfer/spec.ts';

export const parseUrl = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new TransferError('InvalidSpec', `"${redactUrl(text)}" is not an http or https URL`);
};

export type ClientSpec = Pick<TransferSpec, 'allowedAddresses' | 'limits' | 'proxies'>;

export const openClient = (spec: ClientSpec, ca: string | undefined): HttpClient =>
  createHttpClient({
    isRefused: createAddressPolicy(spec.allowedAddresses),
    idleMs: spec.limits.idleSeconds * 1000,
    floor:
      spec.limits.floor === undefined
        ? undefined
        : { bytes: spec.limits.floor.bytes, windowMs: spec.limits.floor.seconds * 1000 },
    ca,
    proxies: spec.proxies,
  });
