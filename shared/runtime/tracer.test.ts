import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { silentLogger } from '#shared/runtime/log.ts';
import type { Span } from '#shared/runtime/trace.ts';
import { createTracer } from '#shared/runtime/tracer.ts';

const span: Span = {
  traceId: 'a'.repeat(32),
  spanId: 'b'.repeat(16),
  name: 'x',
  kind: 'internal',
  startMs: 1,
  endMs: 2,
  attributes: {},
};

interface Exported {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly unknown[] }[] }[];
}

let close: (() => void) | undefined;
afterEach(() => close?.());

/** Answers when the test releases it, and records how many spans each request contained. */
const startCollector = async () => {
  const counts: number[] = [];
  const answers: (() => void)[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.once('end', () => {
      const { resourceSpans } = JSON.parse(Buffer.concat(parts).toString()) as Exported;
      counts.push(resourceSpans[0]?.scopeSpans[0]?.spans.length ?? 0);
      answers.push(() => response.end('{}'));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, counts, answers };
};

it('keeps a bounded number of spans while the collector is slow, however often they are flushed', async () => {
  const collector = await startCollector();
  const tracer = createTracer({ endpoint: collector.url, service: 'x', log: silentLogger })!;
  tracer.record(span);
  const first = tracer.flush();
  await expect.poll(() => collector.counts).toEqual([1]);
  for (let round = 0; round < 3; round += 1) {
    for (let count = 0; count < 1_500; count += 1) tracer.record(span);
    void tracer.flush();
  }
  collector.answers[0]?.();
  await first;
  await expect.poll(() => collector.counts).toEqual([1, 2_048]);
  collector.answers[1]?.();
  await tracer.flush();
  expect(collector.counts).toEqual([1, 2_048]);
});

it('is undefined when no collector is configured', () => {
  expect(createTracer({ endpoint: undefined, service: 'x', log: silentLogger })).toBe(undefined);
});
