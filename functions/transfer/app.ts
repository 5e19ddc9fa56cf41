// Uploads and downloads, and the tokens for them. The API server requests tokens, users transfer bytes.
import type { Hono } from 'hono';
import { createExchange } from '#shared/exchange/app.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { type UploadTokenDeps, createUploadTokenApi } from '#shared/exchange/upload-token.ts';

export const createApp = (deps: ExchangeDeps): Hono => createExchange(deps);

/** Served only over TLS, because the front proxy is authenticated by its client certificate. */
export const createTokenApp = (deps: UploadTokenDeps): Hono => createUploadTokenApi(deps);
