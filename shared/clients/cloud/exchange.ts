// One request to a token service, and the token that it answers with.
import { z } from 'zod';
import type { HttpClient } from '#shared/clients/http/client.ts';
import { HttpFailure } from '#shared/clients/http/errors.ts';
import { parseRetryAfter } from '#shared/clients/http/refusal.ts';
import { parseJson } from '#shared/runtime/json.ts';
import { readUpTo } from '#shared/runtime/read-bytes.ts';
import { redact } from '#shared/runtime/redact.ts';

export interface Token {
  readonly value: string;
  /** Milliseconds since the epoch. */
  readonly expires: number;
}

export interface TokenRequest {
  readonly url: string;
  readonly body: URLSearchParams | object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of the credential, for messages: `the key in the Secret images`. */
  readonly what: string;
}

export interface Exchange {
  readonly http: HttpClient;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

const Answer = z.looseObject({
  access_token: z.string().optional(),
  expires_in: z.number().optional(),
  accessToken: z.string().optional(),
  expireTime: z.string().optional(),
});

/** OAuth has the reason as texts, Google's own APIs as an object. */
const Refusal = z.looseObject({
  error: z.union([z.string(), z.looseObject({ status: z.string().optional(), message: z.string().optional() })]),
  error_description: z.string().optional(),
});

const mostBytes = 64 * 1024;
/** Lifetime of a token whose service does not state it: a wrong guess costs one refused request. */
const shortestMs = 5 * 60_000;
const longestReason = 300;

const readJson = async (body: AsyncIterable<Buffer>): Promise<unknown> => {
  const { bytes } = await readUpTo(body, mostBytes);
  return parseJson(bytes.toString('utf8'));
};

const reasonIn = (body: unknown): string => {
  const { data } = Refusal.safeParse(body);
  if (data === undefined) return '';
  const parts = typeof data.error === 'string' ? [data.error, data.error_description] : Object.values(data.error);
  const text = parts.filter((part): part is string => typeof part === 'string').join(': ');
  return text === '' ? '' : ` (${redact(text.replace(/\s+/g, ' ')).slice(0, longestReason)})`;
};

/** Statuses after which the same request can succeed. */
const isPassing = (status: number): boolean => status >= 500 || status === 408 || status === 429;

const tokenIn = (body: unknown, now: number): Token | undefined => {
  const { access_token, expires_in, accessToken, expireTime } = Answer.safeParse(body).data ?? {};
  if (access_token !== undefined)
    return { value: access_token, expires: now + (expires_in === undefined ? shortestMs : expires_in * 1000) };
  if (accessToken === undefined) return undefined;
  const until = Date.parse(expireTime ?? '');
  return { value: accessToken, expires: Number.isNaN(until) ? now + shortestMs : until };
};

/** Throws HttpFailure: `CredentialsRefused` is final. Neither the request nor a token is ever part of its message. */
export const requestToken = async ({ http, now }: Exchange, request: TokenRequest): Promise<Token> => {
  const { url: address, body, what } = request;
  const isForm = body instanceof URLSearchParams;
  const url = new URL(address);
  const response = await http.get({
    url,
    method: 'POST',
    headers: {
      'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
      accept: 'application/json',
      ...request.headers,
    },
    body: Buffer.from(isForm ? body.toString() : JSON.stringify(body)),
  });
  const answered = await readJson(response.body);
  const token = response.status === 200 ? tokenIn(answered, now()) : undefined;
  if (token !== undefined) return token;
  const outcome = `${url.host} answered ${response.status}${reasonIn(answered)}`;
  if (isPassing(response.status)) {
    const retryAfterSeconds = parseRetryAfter(response.headers['retry-after'], now());
    const more = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
    throw new HttpFailure('Unreachable', `no token for ${what}: ${outcome}`, more);
  }
  throw new HttpFailure('CredentialsRefused', `${what} is not accepted: ${outcome}`);
};
