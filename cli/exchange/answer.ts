// What the transfer function answered, and whether to try again.
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { getCACertificates } from 'node:tls';
import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { textOf, type Values } from '#cli/command.ts';
import { AppError, Denied, InvalidInput, messageOf, NotFound, Unavailable } from '#shared/runtime/errors.ts';

// The way to the transfer function: whom it trusts, and the proxy on the way (HTTP_PROXY, HTTPS_PROXY, NO_PROXY). Made once for each command.

export interface Connection {
  to(url: string): Dispatcher;
  close(): Promise<void>;
}

/** What packs a large disk takes its time before the first byte: each request says itself how long it waits. */
const timeouts = { headersTimeout: 0, bodyTimeout: 0, connectTimeout: 10_000 };

const readAuthority = async (path: string): Promise<string> => {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new InvalidInput(`--transfer-ca cannot be read: ${messageOf(error)}`, [], { cause: error });
  }
};

/** A name such as `localhost.example.com` is somewhere else. */
export const isHere = (url: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);

/** Throws InvalidInput. */
export const openConnection = async (values: Values): Promise<Connection> => {
  const file = textOf(values, 'transfer-ca');
  const tls = {
    rejectUnauthorized: values['transfer-insecure'] !== true,
    ...(file === undefined ? {} : { ca: [...getCACertificates('default'), await readAuthority(file)] }),
  };
  const direct = new Agent({ ...timeouts, connect: tls });
  const proxied = new EnvHttpProxyAgent({ ...timeouts, connect: tls, requestTls: tls });
  return {
    to: (url) => (isHere(url) ? direct : proxied),
    // Whatever is still on its way is of no interest any more.
    close: async () => void (await Promise.all([direct.destroy(), proxied.destroy()])),
  };
};

/** Of answers that others give in the place of the transfer function. */
const hints: Readonly<Record<number, string>> = {
  413: 'it refuses a body as large as this: raise its limit (ingress-nginx: the annotation proxy-body-size "0")',
  502: 'it does not reach the transfer function',
  503: 'the transfer function is not there',
  504: 'it timed out waiting for the transfer function: raise its timeout above one minute',
};

const wordsOf = async ({ body, statusCode }: Dispatcher.ResponseData): Promise<string> => {
  const text = await body.text();
  try {
    return (JSON.parse(text) as { message?: string }).message ?? text;
  } catch {
    if (text === '') return `the transfer function answered ${statusCode}`;
    // It speaks JSON and, to some, text. Pages are of others.
    if (!text.trimStart().startsWith('<')) return text.trim();
    const hint = hints[statusCode];
    return `${statusCode} from a proxy before the transfer function${hint === undefined ? '' : `: ${hint}`}`;
  }
};

/** Of an answer that is none of the good ones. Reads its body. */
export const toError = async (answer: Dispatcher.ResponseData): Promise<AppError> => {
  const { statusCode: status } = answer;
  const words = await wordsOf(answer);
  if (status === 401 || status === 403) return new Denied(words);
  if (status === 404) return new NotFound(words);
  if (status >= 500 || status === 423 || status === 408 || status === 410) return new Unavailable(words);
  return new InvalidInput(words, [{ field: 'file', message: words }]);
};

export interface Persistence {
  readonly signal: AbortSignal;
  readonly connection: Pick<Connection, 'to'>;
  /** Tries in a row that get nowhere. */
  readonly tries: number;
  readonly onRetry: (why: string, seconds: number) => void;
  /** Milliseconds in which something has to move, looked at between tries; left out: as many tries as there are. */
  readonly patienceMs?: number | undefined;
}

/** Of a wait that was given a time. */
export class TimeIsOver extends Error {}

/** Longest pause between two tries, in seconds. */
const longestPause = 30;

/** Words of OpenSSL and Node for a certificate that is not good: trying again does not make it better. */
const untrusted =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT.*|CERT_.*|ERR_TLS_CERT_ALTNAME_INVALID)$/;

const requireTrust = (error: unknown): void => {
  const { code } = error as { readonly code?: unknown };
  if (typeof code !== 'string' || !untrusted.test(code)) return;
  throw new Denied(
    `the certificate of the transfer function is not trusted (${messageOf(error)}): name its authority with --transfer-ca`,
    { cause: error },
  );
};

/** Again after a fault of the network or the cluster, as long as something moves. `step` throws where not all is done. */
export const persist = async (
  step: () => Promise<void>,
  progress: () => number,
  { signal, tries, onRetry, patienceMs = Number.POSITIVE_INFINITY }: Persistence,
): Promise<void> => {
  let failures = 0;
  let movedAt = performance.now();
  for (;;) {
    const before = progress();
    try {
      await step();
      return;
    } catch (error) {
      if (signal.aborted) throw new Unavailable('interrupted; run the same command again to resume', { cause: error });
      if (error instanceof TimeIsOver || (error instanceof AppError && !error.retryable)) throw error;
      requireTrust(error);
      const hasMoved = progress() > before;
      if (hasMoved) movedAt = performance.now();
      failures = hasMoved ? 1 : failures + 1;
      if (performance.now() - movedAt >= patienceMs) throw new TimeIsOver(messageOf(error), { cause: error });
      if (failures > tries) throw new Unavailable(`given up: ${messageOf(error)}`, { cause: error });
      const seconds = Math.min(longestPause, 2 ** (failures - 1));
      onRetry(messageOf(error), seconds);
      await sleep(seconds * 1000, undefined, { signal }).catch(() => undefined);
    }
  }
};
