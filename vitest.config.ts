import { defineConfig } from 'vitest/config';

/** Unit tests live beside the code; flows and conformance run against a local cluster and take longer. */
export default defineConfig({
  test: {
    include: ['{functions,events,shared,infra,cli,test}/**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    globalSetup: 'test/support/setup.ts',
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
