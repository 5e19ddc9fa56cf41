// Workers in wrangler's local runtime: workerd on loopback, nothing kept, nobody told.
import { fileURLToPath } from 'node:url';
import type { TestHarness, TestHarnessOptions } from 'wrangler';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Wrangler tells nobody of itself, asks nobody where it is, and writes no logs of its own. */
const quiet = {
  WRANGLER_SEND_METRICS: 'false',
  WRANGLER_SEND_ERROR_REPORTS: 'false',
  WRANGLER_WRITE_LOGS: 'false',
  WRANGLER_LOG: 'error',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  /** Where it keeps a number for this machine. */
  XDG_CONFIG_HOME: `${root}node_modules/.cache/wrangler`,
};

export interface RunningWorkers {
  readonly server: TestHarness;
  /** What Workers logged, line by line. */
  readonly logged: () => readonly Record<string, unknown>[];
  readonly close: () => Promise<void>;
}

const linesOf = (messages: readonly string[]): readonly Record<string, unknown>[] =>
  messages
    .flatMap((message) => message.split('\n'))
    .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Record<string, unknown>] : []));

/** By their wrangler.jsonc under infra/workers, with settings for the test. */
export const startWorkers = async (workers: TestHarnessOptions['workers']): Promise<RunningWorkers> => {
  Object.assign(process.env, quiet);
  const { createTestHarness } = await import('wrangler');
  const server = createTestHarness({ root, workers });
  await server.listen();
  return {
    server,
    logged: () => linesOf(server.getLogs().map(({ message }) => message)),
    close: () => server.close(),
  };
};
