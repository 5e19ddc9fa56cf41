// The way to the transfer function: whom it trusts, and the proxy on the way (HTTP_PROXY, HTTPS_PROXY, NO_PROXY). Made once for each command.
import { readFile } from 'node:fs/promises';
import { getCACertificates } from 'node:tls';
import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici';
import { type Values, textOf } from '#cli/command.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';

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
