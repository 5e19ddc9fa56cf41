import { describe, expect, it } from 'vitest';
import type { CloudEvent } from '#events/event.ts';
import { type FetchHandler, createHandlerPost } from '#events/post.ts';
import { createSender } from '#events/send.ts';
import { type BrokerOptions, createBroker } from '#local-cluster/broker/broker.ts';
import { createIngress } from '#local-cluster/broker/ingress.ts';
import { parseBrokerManifests } from '#local-cluster/broker/manifest.ts';
import { createResolver } from '#local-cluster/broker/resolver.ts';
import { createLogger } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';

const anEvent = (more: Partial<CloudEvent> = {}): CloudEvent => ({
  id: 'e-1',
  source: '/s',
  type: 't',
  subject: '/o/1',
  datacontenttype: 'application/json',
  extensions: {},
  data: { a: 1 },
  ...more,
});

const aTrigger = (spec: object = {}, name = 'trigger') => ({
  apiVersion: 'eventing.knative.dev/v1',
  kind: 'Trigger',
  metadata: { name, namespace: 'ns' },
  spec: { broker: 'default', subscriber: { ref: { kind: 'Service', name: 'f' } }, ...spec },
});

const aBroker = (delivery?: object, annotations = {}) => ({
  apiVersion: 'eventing.knative.dev/v1',
  kind: 'Broker',
  metadata: { name: 'default', namespace: 'ns', annotations },
  spec: delivery === undefined ? {} : { delivery },
});

const quick = { retry: 3, backoffPolicy: 'exponential', backoffDelay: 'PT0.2S' };
const sink = { deadLetterSink: { ref: { kind: 'Service', name: 'dead' } } };

interface Seen {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** A broker whose function `f` answers as told, a sink `dead`, and a clock that only counts. */
const given = (
  answer: (request: Seen, call: number) => Response | Promise<Response>,
  documents: readonly object[],
  options: Partial<BrokerOptions> = {},
) => {
  const requests: Seen[] = [];
  const letters: Seen[] = [];
  const waits: number[] = [];
  const lines: Record<string, unknown>[] = [];
  const record = async (list: Seen[], request: Request): Promise<Seen> => {
    const seen = { headers: Object.fromEntries(request.headers), body: await request.text() };
    list.push(seen);
    return seen;
  };
  const subscribers = new Map<string, FetchHandler>([
    ['f', async (request) => answer(await record(requests, request), requests.length)],
    ['dead', async (request) => record(letters, request).then(() => new Response(null, { status: 204 }))],
  ]);
  const broker = createBroker({
    manifests: parseBrokerManifests(documents),
    resolve: createResolver(subscribers),
    log: createLogger({ write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) }),
    now: () => new Date('2026-01-02T03:04:05.000Z'),
    sleep: async (ms) => void waits.push(ms),
    random: () => 0.5,
    ...options,
  });
  return { broker, requests, letters, waits, lines, ingress: createIngress(broker) };
};

const status = (code: number, headers = {}) => new Response(null, { status: code, headers });

describe('a delivery', () => {
  it('is the request that broker-filter sends', async () => {
    const { broker, requests } = given(() => status(204), [aBroker(), aTrigger()]);
    expect(await broker.publish(anEvent({ extensions: { namespace: '' } }), { traceparent: 'x' })).toBe(202);
    expect(requests).toEqual([
      {
        headers: {
          'ce-id': 'e-1',
          'ce-knativearrivaltime': '2026-01-02T03:04:05.000Z',
          'ce-namespace': '',
          'ce-source': '/s',
          'ce-specversion': '1.0',
          'ce-subject': '/o/1',
          'ce-type': 't',
          'content-type': 'application/json',
          'kn-namespace': 'ns',
          prefer: 'reply',
          traceparent: 'x',
        },
        body: '{"a":1}',
      },
    ]);
  });

  it('is structured when the delivery format is json', async () => {
    const { broker, requests } = given(() => status(204), [aBroker(), aTrigger({ delivery: { format: 'json' } })]);
    await broker.publish(anEvent());
    expect(requests[0]?.headers['content-type']).toBe('application/cloudevents+json');
    expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject({ id: 'e-1', data: { a: 1 } });
  });

  it.each([
    ...[200, 201, 202, 204].map((code) => [code, 'delivered', 1] as const),
    ...[301, 304, 400, 401, 403, 405, 410, 413, 415, 422, 425].map((code) => [code, 'deadLettered', 1] as const),
    ...[404, 408, 409, 429, 500, 501, 502, 503, 504].map((code) => [code, 'deadLettered', 4] as const),
  ])('answered %d ends %s after %d attempts', async (code, fate, attempts) => {
    const { broker, requests } = given(() => status(code), [aBroker({ ...quick, ...sink }), aTrigger()]);
    await broker.publish(anEvent());
    expect(broker.counts).toMatchObject({ [fate]: 1 });
    expect(requests).toHaveLength(attempts);
  });

  it('that nobody answers is retried, and a late answer is none', async () => {
    const answers = [() => Promise.reject(new Error('refused')), () => new Promise<Response>(() => undefined)];
    const delivery = { ...quick, timeout: 'PT0.02S' };
    const { broker, requests } = given(
      (_, call) => answers[call - 1]?.() ?? status(204),
      [aBroker(delivery), aTrigger()],
    );
    await broker.publish(anEvent());
    expect(requests).toHaveLength(3);
    expect(broker.counts.delivered).toBe(1);
  });
});

describe('back-off', () => {
  it.each([
    ['MTChannelBasedBroker', 'exponential', [200, 400, 800]],
    ['MTChannelBasedBroker', 'linear', [0, 200, 400]],
    ['Kafka', 'exponential', [400, 800, 1600]],
    ['Kafka', 'linear', [200, 400, 600]],
    ['MTChannelBasedBroker', undefined, [0, 0, 0]],
  ] as const)('of %s, %s, is %j ms', async (brokerClass, backoffPolicy, expected) => {
    const { broker, waits } = given(() => status(500), [aBroker({ ...quick, backoffPolicy }), aTrigger()], {
      brokerClass,
    });
    await broker.publish(anEvent());
    expect(waits).toEqual(expected);
  });

  it('of a broker that says nothing is what Knative ships: 204.6 s', async () => {
    const { broker, waits } = given(() => status(500), [aBroker(), aTrigger()]);
    await broker.publish(anEvent());
    expect(waits).toHaveLength(10);
    expect(waits.reduce((sum, ms) => sum + ms, 0)).toBe(204_600);
  });

  it.each([
    [503, '7', 'PT60S', [7000, 7000, 7000]],
    [429, '7', 'PT60S', [7000, 7000, 7000]],
    [503, '7', 'PT5S', [5000, 5000, 5000]],
    [503, '7', 'PT0S', [200, 400, 800]],
    [503, '7', undefined, [200, 400, 800]],
    [500, '7', 'PT60S', [200, 400, 800]],
    [503, 'Fri, 02 Jan 2026 03:04:08 GMT', 'PT60S', [3000, 3000, 3000]],
    [503, 'soon', 'PT60S', [200, 400, 800]],
    [503, '0', 'PT60S', [200, 400, 800]],
  ])('after %d with Retry-After %s and retryAfterMax %s is %j ms', async (code, after, retryAfterMax, expected) => {
    const answer = () => status(code, { 'retry-after': after });
    const { broker, waits } = given(answer, [aBroker({ ...quick, retryAfterMax }), aTrigger()]);
    await broker.publish(anEvent());
    expect(waits).toEqual(expected);
  });

  it('of a Trigger replaces that of the Broker as a whole', async () => {
    const { broker, requests } = given(() => status(500), [aBroker(quick), aTrigger({ delivery: sink })]);
    await broker.publish(anEvent());
    expect(requests).toHaveLength(1);
    expect(broker.counts.deadLettered).toBe(1);
  });
});

describe('filters', () => {
  const event = anEvent({ type: 'dev.a.update', extensions: { kind: 'Pod', namespace: '', count: 3 } });
  it.each([
    [{}, true],
    [{ filter: { attributes: { type: 'dev.a.update', kind: 'Pod' } } }, true],
    [{ filter: { attributes: { type: 'dev.a.update', kind: 'Node' } } }, false],
    [{ filter: { attributes: { kind: '' } } }, true],
    [{ filter: { attributes: { namespace: '' } } }, false],
    [{ filter: { attributes: { missing: '' } } }, false],
    [{ filter: { attributes: { kind: 'Node' } }, filters: [{ exact: { kind: 'Pod' } }] }, true],
    [{ filter: { attributes: { kind: 'Node' } }, filters: [] }, false],
    [{ filters: [{ exact: { kind: 'Pod', type: 'other' } }] }, false],
    [{ filters: [{ exact: { kind: 'Pod' } }, { prefix: { type: 'dev.b' } }] }, false],
    [{ filters: [{ prefix: { type: 'dev.a' } }, { suffix: { type: '.update' } }] }, true],
    [{ filters: [{ suffix: { missing: 'x' } }] }, false],
    [{ filters: [{ exact: { count: '3' } }] }, false],
    [{ filters: [{ any: [{ exact: { kind: 'Node' } }, { exact: { kind: 'Pod' } }] }] }, true],
    [{ filters: [{ all: [{ exact: { kind: 'Node' } }, { exact: { kind: 'Pod' } }] }] }, false],
    [{ filters: [{ not: { any: [{ exact: { kind: 'Node' } }] } }] }, true],
    [{ filters: [{ exact: { specversion: '1.0', subject: '/o/1' } }] }, true],
    [{ filters: [{ exact: { constructor: 'x' } }] }, false],
  ])('%j want the event: %s', async (spec, isWanted) => {
    const { broker, requests } = given(() => status(204), [aBroker(), aTrigger(spec)]);
    expect(await broker.publish(event)).toBe(202);
    expect(requests).toHaveLength(isWanted ? 1 : 0);
  });

  it.each([
    [{ filters: [{ cesql: "type = 'x'" }] }, /cesql/],
    [{ filters: [{ exact: { kind: 'a' }, prefix: { kind: 'b' } }] }, /exactly one dialect/],
    [{ filters: [{ exact: { kind: '' } }] }, /filters/],
    [{ filters: [{ exact: { apiVersion: 'v1' } }] }, /filters/],
    [{ delivery: { backoffDelay: '200ms' } }, /no ISO 8601 duration/],
    [{ delivery: { retries: 3 } }, /retries/],
  ])('%j are refused', (spec, words) => {
    expect(() => parseBrokerManifests([aBroker(), aTrigger(spec)])).toThrow(words);
  });
});

describe('a reply', () => {
  const event = (type: string, more = {}) =>
    new Response('{}', {
      headers: { 'ce-specversion': '1.0', 'ce-id': 'r', 'ce-source': '/f', 'ce-type': type, ...more },
    });

  it.each([
    ['JSON', () => Response.json({ ok: true })],
    ['text', () => new Response('ok')],
    ['a broken event', () => new Response('{', { headers: { 'content-type': 'application/cloudevents+json' } })],
  ])('that is %s is a bad gateway: retried, then a dead letter', async (_, answer) => {
    const { broker, requests, letters } = given(answer, [aBroker({ ...quick, ...sink }), aTrigger()]);
    await broker.publish(anEvent());
    expect(requests).toHaveLength(4);
    expect(letters[0]?.headers['ce-knativeerrorcode']).toBe('502');
  });

  it('that lacks attributes is refused by the ingress, and a dead letter at once', async () => {
    const answer = () => new Response('{}', { headers: { 'ce-specversion': '1.0', 'ce-id': 'r' } });
    const { broker, requests, letters } = given(answer, [aBroker({ ...quick, ...sink }), aTrigger()]);
    await broker.publish(anEvent());
    expect(requests).toHaveLength(1);
    expect(letters[0]?.headers).toMatchObject({
      'ce-knativeerrorcode': '400',
      'ce-knativeerrordest': 'http://broker-ingress/ns/default',
    });
  });

  it('that is an event is routed again', async () => {
    const { broker, requests } = given(
      ({ headers }) => (headers['ce-type'] === 't' ? event('answer') : status(204)),
      [aBroker(), aTrigger()],
    );
    await broker.publish(anEvent());
    await broker.idle();
    expect(requests.map(({ headers }) => headers['ce-type'])).toEqual(['t', 'answer']);
  });

  it('that answers itself ends when the time to live does, and the last one is a dead letter', async () => {
    const { broker, requests, letters } = given(() => event('t'), [aBroker({ ...quick, ...sink }), aTrigger()], {
      acknowledge: 'before',
    });
    await broker.publish(anEvent());
    await broker.idle();
    expect(requests).toHaveLength(255);
    expect(letters.map(({ headers }) => [headers['ce-knativeerrorcode'], headers['ce-knativeerrordest']])).toEqual([
      ['400', 'http://broker-ingress/ns/default'],
    ]);
  });
});

describe('a dead letter', () => {
  it('is the original event with what went wrong', async () => {
    const { broker, letters } = given(
      () => new Response('no such image', { status: 400 }),
      [aBroker({ ...quick, ...sink }), aTrigger()],
    );
    await broker.publish(anEvent());
    expect(letters[0]?.headers).toMatchObject({
      'ce-id': 'e-1',
      'ce-type': 't',
      'ce-knativeerrordest': 'http://f.ns.svc.cluster.local/',
      'ce-knativeerrorcode': '400',
      'ce-knativeerrordata': Buffer.from('no such image').toString('base64'),
      'kn-namespace': 'ns',
    });
    expect(letters[0]?.headers).not.toHaveProperty('prefer');
  });

  it.each([
    ['MTChannelBasedBroker', Buffer.from('x'.repeat(2000)).toString('base64').slice(0, 1024)],
    ['Kafka', Buffer.from('x'.repeat(1024)).toString('base64')],
  ] as const)('of %s holds the beginning of the answer', async (brokerClass, data) => {
    const answer = () => new Response('x'.repeat(2000), { status: 400 });
    const { broker, letters } = given(answer, [aBroker(sink), aTrigger()], { brokerClass });
    await broker.publish(anEvent());
    expect(letters[0]?.headers['ce-knativeerrordata']).toBe(data);
  });

  it('of a silent function has code 500', async () => {
    const { broker, letters } = given(() => Promise.reject(new Error('refused')), [aBroker(sink), aTrigger()]);
    await broker.publish(anEvent());
    expect(letters[0]?.headers['ce-knativeerrorcode']).toBe('500');
  });

  it('goes to the owner that was given, not to the sink', async () => {
    const owned: CloudEvent[] = [];
    const { broker, letters } = given(() => status(400), [aBroker(sink), aTrigger()], {
      deadLetters: async (event) => void owned.push(event),
    });
    await broker.publish(anEvent());
    expect(letters).toEqual([]);
    expect(owned[0]?.extensions['knativeerrorcode']).toBe(400);
  });

  it('without a sink is lost and said so', async () => {
    const { broker, lines } = given(() => status(400), [aBroker(quick), aTrigger()]);
    expect(await broker.publish(anEvent())).toBe(500);
    expect(broker.counts.lost).toBe(1);
    expect(lines[0]).toMatchObject({ level: 'error', message: 'event lost', trigger: 'trigger', fault: 'status 400' });
  });
});

describe('the ingress', () => {
  const headers = { 'ce-specversion': '1.0', 'ce-id': 'e-1', 'ce-source': '/s', 'ce-type': 't' };
  const post = (more = {}) => ({ method: 'POST', headers: { ...headers, ...more }, body: '{}' });

  it.each([
    ['an event', '/ns/default', post(), 202],
    ['an unknown broker', '/ns/other', post(), 404],
    ['another method', '/ns/default', { method: 'GET' }, 405],
    ['a broken event', '/ns/default', { method: 'POST', headers: { 'ce-specversion': '1.0' } }, 400],
    ['an exhausted event', '/ns/default', post({ 'ce-knativebrokerttl': '1' }), 400],
    ['a living event', '/ns/default', post({ 'ce-knativebrokerttl': '2' }), 202],
  ])('answers %s', async (_, path, init, code) => {
    const { ingress } = given(() => status(204), [aBroker(), aTrigger()]);
    expect((await ingress.request(path, init)).status).toBe(code);
  });

  it('passes known headers through and hides the time to live', async () => {
    const { ingress, requests } = given(() => status(204), [aBroker(), aTrigger()]);
    const sent = {
      'x-request-id': 'r',
      'knative-x': 'k',
      'x-b3-traceid': 'b',
      authorization: 'secret',
      'ce-knativebrokerttl': '9',
    };
    await ingress.request('/ns/default', post(sent));
    expect(requests[0]?.headers).toMatchObject({ 'x-request-id': 'r', 'knative-x': 'k', 'x-b3-traceid': 'b' });
    expect(requests[0]?.headers).not.toHaveProperty('authorization');
    expect(requests[0]?.headers).not.toHaveProperty('ce-knativebrokerttl');
  });

  it('shows how deliveries of each Trigger ended', async () => {
    const { broker, ingress } = given(() => status(400), [aBroker(sink), aTrigger()]);
    await broker.publish(anEvent());
    const metrics = await (await ingress.request('/metrics')).text();
    expect(metrics).toContain('bullion_broker_deliveries_total{trigger="trigger",fate="deadLettered"} 1\n');
  });

  it('consents to webhooks', async () => {
    const { ingress } = given(() => status(204), [aBroker()]);
    const response = await ingress.request('/ns/default', { method: 'OPTIONS' });
    expect([response.status, response.headers.get('webhook-allowed-origin')]).toEqual([200, '*']);
  });

  it('answers after delivery, or before it where the Broker says so', async () => {
    const annotations = { 'messaging.knative.dev/async-handler': 'true' };
    const order: string[] = [];
    const slow = async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      order.push('delivered');
      return status(204);
    };
    for (const document of [aBroker(), aBroker(undefined, annotations)]) {
      const { broker } = given(slow, [document, aTrigger()]);
      await broker.publish(anEvent());
      order.push('answered');
      await broker.idle();
    }
    expect(order).toEqual(['delivered', 'answered', 'answered', 'delivered']);
  });

  it('takes what a sender posts over a socket', async () => {
    const { ingress, requests } = given(() => status(204), [aBroker(), aTrigger()]);
    const server = await startServer({ app: ingress, log: createLogger({ level: 'error' }), port: 0 });
    const delivery = await createSender({ sink: `${server.url}/ns/default` })(anEvent());
    await server.close();
    expect([delivery.isDelivered, requests.length]).toEqual([true, 1]);
  });
});

describe('concurrency', () => {
  const track = () => {
    const running = new Map<string, number>();
    const peak = { all: 0, perObject: 0 };
    const order: string[] = [];
    const handler = async ({ headers }: Seen) => {
      const subject = headers['ce-subject'] ?? '';
      running.set(subject, (running.get(subject) ?? 0) + 1);
      order.push(headers['ce-id'] ?? '');
      peak.perObject = Math.max(peak.perObject, running.get(subject) ?? 0);
      peak.all = Math.max(
        peak.all,
        [...running.values()].reduce((sum, count) => sum + count, 0),
      );
      await new Promise((resolve) => setTimeout(resolve, 2));
      running.set(subject, (running.get(subject) ?? 0) - 1);
      return status(204);
    };
    return { handler, peak, order };
  };
  const publishAll = (broker: ReturnType<typeof createBroker>) =>
    Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        broker.publish(anEvent({ id: String(index), subject: `/o/${index % 3}` })),
      ),
    );

  it('is bounded, and attempts about one object neither overlap nor overtake', async () => {
    const { handler, peak, order } = track();
    const { broker } = given(handler, [aBroker(), aTrigger()], { concurrency: 2 });
    await publishAll(broker);
    expect(peak).toEqual({ all: 2, perObject: 1 });
    for (const object of [0, 1, 2]) {
      const ofObject = order.map(Number).filter((id) => id % 3 === object);
      expect(ofObject).toEqual(ofObject.toSorted((a, b) => a - b));
    }
  });

  it('has no order when told so, like the in-memory channel', async () => {
    const { handler, peak } = track();
    const { broker } = given(handler, [aBroker(), aTrigger()], { ordering: 'none' });
    await publishAll(broker);
    expect(peak.perObject).toBeGreaterThan(1);
  });

  it('leaves its slot to others while an event waits for its retry', async () => {
    const resumed = Promise.withResolvers<void>();
    const { broker, requests } = given(
      ({ headers }, call) => status(headers['ce-id'] === 'bad' && call === 1 ? 503 : 204),
      [aBroker(quick), aTrigger()],
      { concurrency: 1, sleep: () => resumed.promise },
    );
    const bad = broker.publish(anEvent({ id: 'bad' }));
    expect(await broker.publish(anEvent({ id: 'good' }))).toBe(202);
    resumed.resolve();
    await bad;
    expect(requests.map(({ headers }) => headers['ce-id'])).toEqual(['bad', 'good', 'bad']);
  });

  it('makes senders wait when too much is in progress', async () => {
    const release = Promise.withResolvers<Response>();
    const { broker } = given(() => release.promise.then(() => status(204)), [aBroker(), aTrigger()], {
      acknowledge: 'before',
      maxInFlight: 2,
    });
    await broker.publish(anEvent());
    await broker.publish(anEvent());
    const third = broker.publish(anEvent());
    expect(await Promise.race([third, new Promise((resolve) => setTimeout(resolve, 20, 'waiting'))])).toBe('waiting');
    release.resolve(status(204));
    expect(await third).toBe(202);
    await broker.idle();
  });
});

describe('chaos', () => {
  const ids = (requests: readonly Seen[]) => requests.map(({ headers }) => headers['ce-id']);
  const publish = async (broker: ReturnType<typeof createBroker>, ...names: string[]) => {
    await Promise.all(names.map((id) => broker.publish(anEvent({ id }))));
    await broker.idle();
  };

  it('drops, duplicates, delays and reorders when switched on, and only then', async () => {
    const { broker, requests, waits } = given(() => status(204), [aBroker(), aTrigger()], {
      sleep: async (ms) => {
        waits.push(ms);
        await new Promise((resolve) => setTimeout(resolve, 5));
      },
      random: () => 0.5,
    });
    broker.chaos.drop = 1;
    await publish(broker, 'dropped');
    expect(ids(requests)).toEqual([]);
    Object.assign(broker.chaos, { drop: 0, duplicate: 1 });
    await publish(broker, 'twice');
    expect(ids(requests)).toEqual(['twice', 'twice']);
    Object.assign(broker.chaos, { duplicate: 0, delay: 1, maxDelayMs: 100 });
    await publish(broker, 'late');
    expect(waits).toEqual([50]);
    Object.assign(broker.chaos, { delay: 0, reorder: 1 });
    await publish(broker, 'first', 'second');
    expect(ids(requests).slice(3)).toEqual(['second', 'first']);
    broker.chaos.reorder = 0;
    await publish(broker, 'third', 'fourth');
    expect(ids(requests).slice(5)).toEqual(['third', 'fourth']);
  });

  it('a restart loses what is being delivered, and later events arrive', async () => {
    const { broker, requests } = given(
      (_, call) => (call === 1 ? new Promise(() => undefined) : status(204)),
      [aBroker({ ...quick, ...sink }), aTrigger()],
    );
    const first = broker.publish(anEvent({ id: 'lost' }));
    await expect.poll(() => requests.length).toBe(1);
    broker.restart();
    await first;
    await broker.publish(anEvent({ id: 'later' }));
    expect(ids(requests)).toEqual(['lost', 'later']);
    expect(broker.counts).toEqual({ delivered: 1, deadLettered: 0, lost: 0, abandoned: 1 });
  });

  it('a stopped broker takes nothing', async () => {
    const { broker } = given(() => status(204), [aBroker(), aTrigger()]);
    await broker.stop();
    expect(await broker.publish(anEvent())).toBe(503);
  });
});

describe('a Trigger whose subscriber is missing', () => {
  it('is said and left out', async () => {
    const trigger = aTrigger({ subscriber: { ref: { kind: 'Service', name: 'nobody' } } });
    const { broker, lines } = given(() => status(204), [aBroker(), trigger]);
    expect(await broker.publish(anEvent())).toBe(202);
    expect(lines[0]).toMatchObject({ level: 'warn', message: 'Trigger has no subscriber' });
  });
});

describe('createHandlerPost', () => {
  it('gives up with the signal though the handler does not', async () => {
    const post = createHandlerPost(() => new Promise<Response>(() => undefined));
    await expect(post('http://f/', { headers: {}, body: '' }, AbortSignal.timeout(10))).rejects.toThrow(/timeout/);
  });
});
