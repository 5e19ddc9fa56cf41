// Workers in wrangler's local runtime: workerd on loopback, without persistence or telemetry.
import { fileURLToPath } from 'node:url';
import type { TestHarness, TestHarnessOptions } from 'wrangler';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Disables wrangler's telemetry, look-ups of its location, and log files. */
const quiet = {
  WRANGLER_SEND_METRICS: 'false',
  WRANGLER_SEND_ERROR_REPORTS: 'false',
  WRANGLER_WRITE_LOGS: 'false',
  WRANGLER_LOG: 'error',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  /** Directory for its machine ID. */
  XDG_CONFIG_HOME: `${root}node_modules/.cache/wrangler`,
};

export interface RunningWorkers {
  readonly server: TestHarness;
  /** Log lines of the Workers. */
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
