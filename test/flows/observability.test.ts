// What operators observe of an import: its trace, from the event to the last byte, and its metrics.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { traceOfObject } from '#shared/runtime/trace.ts';
import {
  type TestCluster,
  anImage,
  deleteImage,
  images,
  namespace,
  settle,
  startTestCluster,
} from '#test/support/cluster.ts';
import { type CollectedSpan, type Collector, startCollector } from '#test/support/collector.ts';
import { type Origin, fileAnswer, startOrigin } from '#test/support/origin.ts';

const mib = 2 ** 20;

describe('an observed import', { timeout: 120_000 }, () => {
  const bytes = randomBytes(2 * mib);
  let collector: Collector;
  let origin: Origin;
  let cluster: TestCluster;
  beforeAll(async () => {
    collector = await startCollector();
    origin = await startOrigin((request) => fileAnswer(request, bytes));
    const functionEnvironment = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
    // Seldom: a tick that comes before the event makes the pass of `initialize`.
    cluster = await startTestCluster({ tickSeconds: 60, functionEnvironment });
    await settle(cluster.kube, anImage('watched', { source: { http: `${origin.url}/disk.raw` } }), 180);
  }, 300_000);
  afterAll(async () => {
    await cluster?.close();
    await origin?.close();
    await collector?.close();
  });

  const uidOf = async (name: string): Promise<string> =>
    (await cluster.kube.get(images, { namespace, name }))!.metadata.uid!;
  const metrics = async (): Promise<readonly string[]> => (await (await fetch(cluster.metricsUrl)).text()).split('\n');

  it('has one trace, its UID: every pass of every function, each Job with its phases, and its whole life as the root', async () => {
    const root = traceOfObject(await uidOf('watched'));
    const own = (): readonly CollectedSpan[] => collector.spans.filter(({ traceId }) => traceId === root.traceId);
    const imported = () => own().find(({ attributes }) => Number(attributes['bullion.received_bytes']) >= bytes.length);
    // Spans are sent with a delay.
    await vi.waitFor(
      () => {
        expect([imported(), own().find(({ spanId }) => spanId === root.spanId)]).not.toContain(undefined);
        const services = own().map(({ service }) => service);
        expect(services).toEqual(expect.arrayContaining(['transfer-job', 'initialize', 'sidecar-sync']));
      },
      { timeout: 20_000 },
    );
    const transfer = imported();
    expect(transfer).toMatchObject({
      name: 'transfer',
      parentSpanId: root.spanId,
      attributes: { outcome: 'succeeded' },
    });
    const phases = own().filter(({ parentSpanId }) => parentSpanId === transfer?.spanId);
    expect(phases.map(({ name }) => name)).toContain('Downloading');
  });

  it('is linked from the events that started a pass, and its requests for bytes belong to it', async () => {
    const { traceId } = traceOfObject(await uidOf('watched'));
    const passes = collector.spans.filter(({ name, traceId: of }) => name === 'reconcile' && of === traceId);
    const woken = collector.spans.filter(({ attributes }) => attributes['cloudevents.event_type'] !== undefined);
    const linked = new Set(passes.flatMap(({ links = [] }) => links.map((link) => link.traceId)));
    expect(woken.filter((span) => linked.has(span.traceId))).not.toEqual([]);
    expect(origin.requests.length).toBeGreaterThan(0);
    for (const { headers } of origin.requests) expect(headers['traceparent']).toContain(traceId);
  });

  it('is in the metrics with size and duration as long as it exists', async () => {
    const labels = `{resource="virtualmachineimages.hypercloud.tmaxanc.com",namespace="${namespace}",name="watched"}`;
    const before = await metrics();
    expect(before).toContain(`bullion_image_bytes${labels} ${bytes.length}`);
    expect(before.some((line) => line.startsWith(`bullion_import_seconds${labels} `))).toBe(true);
    expect(before.filter((line) => /^bullion_exporter_readable.* 0$/.test(line))).toEqual([]);
    expect(before).toContain(
      'bullion_objects{resource="virtualmachineimages.hypercloud.tmaxanc.com",phase="Available"} 1',
    );
    await deleteImage(cluster.kube, 'watched');
    expect((await metrics()).filter((line) => line.includes('name="watched"'))).toEqual([]);
  });

  it('is counted by its reason when it fails', async () => {
    const source = { http: `${origin.url}/disk.raw` };
    const { state } = await settle(
      cluster.kube,
      anImage('broken', { source, checksum: `sha256:${'0'.repeat(64)}` }),
      100,
    );
    expect(state).toBe('Error');
    const failed = (await metrics()).filter((line) => line.startsWith('bullion_failed_objects{'));
    expect(failed).toEqual([expect.stringMatching(/namespace="default",reason="\w+"\} 1$/)]);
  });
});
