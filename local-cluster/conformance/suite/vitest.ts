// The suite as vitest cases: one server per file, cases of all topics in parallel.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConformanceServer, Topic } from '#local-cluster/conformance/suite/case.ts';
import { createRunner, type Runner } from '#local-cluster/conformance/suite/run.ts';
import { isAvailable, type ServerKind, startServer } from '#local-cluster/conformance/suite/servers.ts';
import { topics } from '#local-cluster/conformance/topics/index.ts';

export const describeConformance = (kind: ServerKind): void => {
  describe.skipIf(!isAvailable(kind))(`the ${kind} API server`, () => {
    let server: ConformanceServer;
    let runner: Runner;
    beforeAll(async () => {
      server = await startServer(kind);
      runner = await createRunner(server);
    });
    afterAll(async () => {
      await runner.close();
      await server.close();
    });
    const define = (topic: Topic, name: string): void =>
      test(`${topic.topic}: ${name}`, async () => {
        expect((await runner.run(topic, name)).error).toBeUndefined();
      });
    describe('side by side', { concurrent: true }, () => {
      for (const topic of topics) for (const name of Object.keys(topic.cases)) define(topic, name);
    });
    describe('one at a time', () => {
      for (const topic of topics) for (const name of Object.keys(topic.alone ?? {})) define(topic, name);
    });
  });
};
