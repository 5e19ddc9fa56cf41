// The Worker as it is deployed, under workerd, between a queue and something that answers as import-object does.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Hono } from 'hono';
import { receiveEvent } from '#events/receive.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { freePorts } from '#local-cluster/free-ports.ts';
import { type RunningServer, startServer } from '#shared/runtime/serve.ts';
import { type R2, anR2Message, startR2 } from '#test/support/r2.ts';

interface Told {
  readonly key: string;
  readonly id: string;
  readonly source: string;
  readonly authorization: string | null;
  readonly traceparent: string | null;
}

/** Keys that headers, URLs, forms and JSON each have trouble with. */
const oddKeys = [
  'a b',
  'ü/ö.img',
  '100%.img',
  'a+b%20c.img',
  '#?&=;',
  '../x',
  '"quoted"',
  '\\',
  '\u{1F4BF}',
  'a\nb',
  '\u0000',
  '日本語.qcow2',
];

describe('the Worker between R2 and import-object', { timeout: 240_000 }, () => {
  const told: Told[] = [];
  let answerTo: (key: string) => Response;
  let server: RunningServer | undefined;
  let r2: R2;
  const app = new Hono().post('/', async (c) => {
    const authorization = c.req.header('authorization') ?? null;
    const traceparent = c.req.header('traceparent') ?? null;
    const { id, source, data } = await receiveEvent(c.req.raw);
    const { key } = data as { readonly key: string };
    told.push({ key, id, source, authorization, traceparent });
    return answerTo(key);
  });
  const open = async (port: number) => (server = await startServer({ app, log: silentLogger, port, drainMs: 100 }));

  beforeAll(async () => {
    // A port that no other process uses while it is closed.
    const { url } = await open((await freePorts(1))[0] ?? 0);
    r2 = await startR2(url);
  });
  afterAll(async () => {
    await r2?.close();
    await server?.close();
  });

  const taken = () => new Response(null, { status: 204 });
  const until = (isSo: () => void) => vi.waitFor(isSo, { timeout: 100_000, interval: 50 });
  const toldOf = (key: string) => told.filter((one) => one.key === key);
  const reasonsOf = (key: string) => r2.logged().flatMap((line) => (line['key'] === key ? [line['reason']] : []));

  it('reports every object by a CloudEvent with the shared token, whatever its key', async () => {
    answerTo = taken;
    await r2.notify(...oddKeys.map((key) => anR2Message('PutObject', key)));
    await until(() => expect(new Set(told.map(({ key }) => key))).toEqual(new Set(oddKeys)));
    for (const { authorization, traceparent, source } of told) {
      expect(authorization).toBe('Bearer shared');
      expect(traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
      expect(source).toBe('bullion.dev/r2-notifications/images');
    }
    expect(told).toHaveLength(oddKeys.length);
  });

  it('gives a notification that R2 sent twice the same ID, and different ones different IDs', async () => {
    answerTo = taken;
    await r2.notify(anR2Message('PutObject', 'twice.img'));
    await until(() => expect(toldOf('twice.img')).toHaveLength(1));
    await r2.notify(anR2Message('PutObject', 'twice.img'));
    await until(() => expect(toldOf('twice.img')).toHaveLength(2));
    await r2.notify(anR2Message('DeleteObject', 'twice.img'));
    await until(() => expect(toldOf('twice.img')).toHaveLength(3));
    const [first, second, third] = toldOf('twice.img').map(({ id }) => id);
    expect(second).toBe(first);
    expect(third).not.toBe(first);
  });

  it('loses nothing while the cluster is unreachable', async () => {
    answerTo = taken;
    const { port } = server!;
    await server!.close();
    await r2.notify(anR2Message('PutObject', 'away.img'));
    await until(() => expect(reasonsOf('away.img').join()).toContain('fetch failed'));
    await open(port);
    await until(() => expect(toldOf('away.img')).toHaveLength(1));
  });

  it('retries as long as import-object asks for it, or until its token is corrected', async () => {
    const answers = [503, 401, 500, 404];
    answerTo = () => new Response(null, { status: answers.shift() ?? 204 });
    await r2.notify(anR2Message('CopyObject', 'later.img'));
    await until(() => expect(toldOf('later.img')).toHaveLength(5));
    const reasons = ['HTTP 503', 'HTTP 401', 'HTTP 500', 'HTTP 404', undefined];
    await until(() => expect(reasonsOf('later.img')).toEqual(reasons));
    expect(r2.deadLetters).toEqual([]);
  });

  it('moves rejected messages to the dead letters, with the reason in its log', async () => {
    answerTo = (key) => (key === 'wrong.img' ? new Response('the event is too old', { status: 400 }) : taken());
    const wrong = anR2Message('PutObject', 'wrong.img');
    await r2.notify(wrong, anR2Message('PutObject', 'right.img'), { not: 'of R2' });
    await until(() => expect(r2.deadLetters).toHaveLength(2));
    expect(r2.deadLetters).toEqual(expect.arrayContaining([wrong, { not: 'of R2' }]));
    expect(toldOf('right.img')).toHaveLength(1);
    expect(reasonsOf('wrong.img')).toEqual(['HTTP 400: the event is too old']);
    const lines = r2.logged().filter(({ message }) => message === 'notification refused');
    expect(lines.map(({ reason }) => reason)).toContainEqual(
      expect.stringContaining('is not a notification of AWS S3'),
    );
  });

  it('does not log its token', () => {
    expect(JSON.stringify(r2.logged())).not.toContain('shared');
  });
});
