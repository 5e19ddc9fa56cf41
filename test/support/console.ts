// The console over a cluster in memory, and a visitor who is logged in.
import { createApp } from '#functions/console/app.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { openSession, seal } from '#shared/console/session.ts';
import type { ConsoleApp, ConsoleDeps } from '#shared/console/visit.ts';
import { Denied } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { testTime } from '#test/support/builders.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';

export const origin = 'http://console.example';
const sessionKey = new Uint8Array(32).fill(7);

export interface ConsoleWorld {
  readonly kube: MemoryKube;
  readonly app: ConsoleApp;
  /** Milliseconds since the epoch; may be moved. */
  readonly clock: { now: number };
  /** Tokens that were shown to the API server. */
  readonly shown: unknown[];
  readonly get: (path: string) => Promise<Response>;
  readonly text: (path: string) => Promise<string>;
  readonly post: (path: string, fields: Readonly<Record<string, string>>, headers?: object) => Promise<Response>;
}

export const createConsoleWorld = async (over: Partial<ConsoleDeps> = {}): Promise<ConsoleWorld> => {
  const clock = { now: testTime };
  const kube = createMemoryKube({ now: () => clock.now });
  const shown: unknown[] = [];
  const visitor = {
    ...kube,
    raw: async () => ({ status: { userInfo: { username: 'rita' } } }),
  } as unknown as KubeClient;
  const stranger = {
    ...visitor,
    raw: () => Promise.reject(new Denied('Unauthorized')),
  };
  const app = createApp({
    connect: async (identity) => {
      shown.push(identity);
      return identity !== 'owner' && identity.token === 'of-a-stranger' ? stranger : visitor;
    },
    sessionKey,
    url: origin,
    log: silentLogger,
    now: () => clock.now,
    ...over,
  });
  const session = await openSession(visitor, { token: 'ritas' }, clock.now);
  const cookie = `bullion_session=${await seal(session, sessionKey)}`;
  const ask = async (path: string, init: Omit<RequestInit, 'headers'> & { readonly headers?: object } = {}) =>
    app.request(`${origin}${path}`, { ...init, headers: { host: 'console.example', cookie, ...init.headers } });
  const get = (path: string) => ask(path);
  return {
    kube,
    app,
    clock,
    shown,
    get,
    text: async (path) => (await get(path)).text(),
    post: (path, fields, headers = {}) =>
      ask(path, { method: 'POST', headers: { origin, ...headers }, body: new URLSearchParams(fields) }),
  };
};
