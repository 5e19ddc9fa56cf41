// Bytes in and out by hand, and the tokens for it. The API server of the cluster asks for tokens, people bring and take bytes.
import type { Hono } from 'hono';
import { createExchange } from '#shared/exchange/app.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { type UploadTokenDeps, createUploadTokenApi } from '#shared/exchange/upload-token.ts';

export const createApp = (deps: ExchangeDeps): Hono => createExchange(deps);

/** Served over TLS alone, since whom it believes is told by a certificate. */
export const createTokenApp = (deps: UploadTokenDeps): Hono => createUploadTokenApi(deps);
