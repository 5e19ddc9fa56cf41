// The console in the local cluster. Its owner logs in by a code that is printed, others by a token. Called by cluster.ts.
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createApp } from '#functions/console/app.ts';
import type { ApiServerHandle } from '#local-cluster/api.ts';
import { createVisitors } from '#shared/console/visitors.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';

export interface LocalConsole {
  readonly url: string;
  /** Logs the owner of this computer in; works once. */
  readonly loginUrl: () => string;
  readonly close: () => Promise<void>;
}

export interface LocalConsoleOptions {
  readonly apiServer: Pick<ApiServerHandle, 'kubeconfigPath' | 'connect'>;
  readonly port: number;
  readonly log: Logger;
}

/** Other users of this computer reach the port too: they know no code. */
const createCodes = () => {
  const open = new Set<string>();
  return {
    make: (): string => {
      const code = randomBytes(24).toString('base64url');
      open.add(code);
      return code;
    },
    take: (given: string): boolean => {
      const bytes = Buffer.from(given);
      const code = [...open].find((one) => one.length === bytes.length && timingSafeEqual(Buffer.from(one), bytes));
      return code !== undefined && open.delete(code);
    },
  };
};

export const startLocalConsole = async ({ apiServer, port, log }: LocalConsoleOptions): Promise<LocalConsole> => {
  const codes = createCodes();
  const url = `http://127.0.0.1:${port}`;
  const connectVisitor = createVisitors(apiServer.kubeconfigPath);
  const owner = await apiServer.connect(apiServer.kubeconfigPath);
  const app = createApp({
    connect: async (identity) => (identity === 'owner' ? owner : connectVisitor(identity)),
    sessionKey: randomBytes(32),
    url,
    takeCode: codes.take,
    log: log.with({ function: 'console' }),
    now: Date.now,
  });
  const server = await startServer({ app, port, log, drainMs: 1_000 });
  return { url, loginUrl: () => `${url}/login?code=${codes.make()}`, close: () => server.close() };
};
