// Calls a webhook over HTTPS and reports errors with the messages of kube-apiserver.
import { isIP } from 'node:net';
import { Agent, type Dispatcher, request } from 'undici';
import { goWords } from '../http/go-words.ts';
import { type Webhook } from './webhook.ts';

/** The address of a service for this process; undefined when there is none of that name. */
export type ServiceResolver = (service: {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
}) => { readonly host: string; readonly port: number } | undefined;

export interface Sender {
  /** The JSON of the response; throws an Error. */
  readonly send: (webhook: Webhook, body: unknown) => Promise<unknown>;
  readonly close: () => Promise<void>;
}

interface Target {
  /** As shown in messages. */
  readonly shown: string;
  readonly url: string;
  readonly servername: string;
}

const limitBytes = 3 * 1024 * 1024;

const targetOf = (webhook: Webhook, resolve: ServiceResolver): Target => {
  const suffix = `timeout=${webhook.timeoutSeconds}s`;
  const withTimeout = (url: string) => `${url}${url.includes('?') ? '&' : '?'}${suffix}`;
  if (webhook.url !== undefined) {
    const url = withTimeout(webhook.url);
    return { shown: url, url, servername: new URL(webhook.url).hostname };
  }
  const { namespace = '', name = '', port = 443, path = '' } = webhook.service ?? {};
  const address = resolve({ namespace, name, port });
  const servername = `${name}.${namespace}.svc`;
  const place = path === '' || path.startsWith('/') ? path : `/${path}`;
  const shown = withTimeout(`https://${servername}:${port}${place}`);
  if (address === undefined) throw new Error(`Post "${shown}": service "${name}" not found`);
  return { shown, url: withTimeout(`https://${address.host}:${address.port}${place}`), servername };
};

const wordOf = (error: unknown, url: string): string => {
  const { name } = error as Error;
  return name === 'TimeoutError' || name === 'AbortError' ? 'context deadline exceeded' : goWords(error, url);
};

const readJson = async (response: Dispatcher.ResponseData): Promise<unknown> => {
  const text = await response.body.text();
  if (response.statusCode !== 200) {
    throw new Error(
      response.statusCode >= 500
        ? `an error on the server (${JSON.stringify(text.slice(0, 200))}) has prevented the request from succeeding`
        : 'the server rejected our request for an unknown reason',
    );
  }
  if (text.length > limitBytes) throw new Error('the answer is too large');
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new Error(`couldn't get version/kind; json parse error`);
  }
};

export const createSender = (resolve: ServiceResolver): Sender => {
  /** Connections are kept for each authority and server name. */
  const agents = new Map<string, Agent>();
  const agentOf = (webhook: Webhook, servername: string): Agent => {
    const key = `${servername}\n${webhook.caBundle ?? ''}`;
    const known = agents.get(key);
    if (known !== undefined) return known;
    const ca = webhook.caBundle === undefined ? {} : { ca: webhook.caBundle };
    // An address is verified with the certificate but not sent as a server name.
    const name = isIP(servername.replaceAll(/[[\]]/g, '')) === 0 ? { servername } : {};
    const agent = new Agent({ connect: { ...ca, ...name } });
    agents.set(key, agent);
    return agent;
  };

  const post = async (webhook: Webhook, target: Target, body: unknown): Promise<Dispatcher.ResponseData> => {
    try {
      return await request(target.url, {
        method: 'POST',
        dispatcher: agentOf(webhook, target.servername),
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          'user-agent': 'kube-apiserver-admission',
        },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(webhook.timeoutSeconds * 1000),
      });
    } catch (error) {
      throw new Error(`Post "${target.shown}": ${wordOf(error, target.url)}`, { cause: error });
    }
  };

  return {
    send: async (webhook, body) => {
      const target = targetOf(webhook, resolve);
      return readJson(await post(webhook, target, body));
    },
    close: async () => {
      await Promise.all([...agents.values()].map((agent) => agent.destroy()));
    },
  };
};
