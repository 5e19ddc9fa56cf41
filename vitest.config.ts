import { defineConfig } from 'vitest/config';

/** Unit tests live beside the code; flows and conformance run against a local cluster and take longer. */
export default defineConfig({
  test: {
    include: ['{functions,events,shared,infra,cli,test}/**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    globalSetup: 'test/support/setup.ts',
    pool: 'forks',
    maxWorkers: 2,
    // Long: a machine that is busy with other things makes everything late. Who waits for a state says how long; who does not, waits as long as this.
    testTimeout: 120_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
