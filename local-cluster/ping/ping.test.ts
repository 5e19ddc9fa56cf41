import { describe, expect, it } from 'vitest';
import type { CloudEvent } from '#events/event.ts';
import { createHandlerPost } from '#events/post.ts';
import { createSender } from '#events/send.ts';
import { buildPing, parsePingSource, parseSchedule, startPing } from './ping.ts';
import { silentLogger } from '#shared/runtime/log.ts';

describe('parseSchedule', () => {
  it.each([
    ['* * * * *', 'UTC', '2026-01-31T23:59:30Z', '2026-02-01T00:00:00.000Z'],
    ['*/5 * * * *', 'UTC', '2026-01-01T00:00:00Z', '2026-01-01T00:05:00.000Z'],
    ['30 * * * * *', 'UTC', '2026-01-01T00:00:30Z', '2026-01-01T00:01:30.000Z'],
    ['0 3 * * mon-fri', 'UTC', '2026-01-02T04:00:00Z', '2026-01-05T03:00:00.000Z'],
    ['0 0 29 feb *', 'UTC', '2026-01-01T00:00:00Z', '2028-02-29T00:00:00.000Z'],
    ['0 0 13 * 5', 'UTC', '2026-01-01T12:00:00Z', '2026-01-02T00:00:00.000Z'],
    ['0 0 * * 7', 'UTC', '2026-01-01T00:00:00Z', '2026-01-04T00:00:00.000Z'],
    ['@hourly', 'UTC', '2026-01-01T00:59:59Z', '2026-01-01T01:00:00.000Z'],
    ['0 2 * * *', 'Europe/Berlin', '2026-07-01T12:00:00Z', '2026-07-02T00:00:00.000Z'],
    ['0 12 * * *', 'Asia/Kathmandu', '2026-01-01T00:00:00Z', '2026-01-01T06:15:00.000Z'],
    ['10/20 * * * *', 'UTC', '2026-01-01T00:31:00Z', '2026-01-01T00:50:00.000Z'],
    ['0 0 * * 5/2', 'UTC', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00.000Z'],
    // The clock skips 02:30 on the 29th, and shows it twice on the 25th.
    ['30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', '2026-03-30T00:30:00.000Z'],
    ['30 2 * * *', 'Europe/Berlin', '2026-10-25T00:30:00Z', '2026-10-25T01:30:00.000Z'],
  ])('%s in %s after %s is %s', (schedule, zone, after, expected) => {
    expect(parseSchedule(schedule, zone).next(new Date(after))?.toISOString()).toBe(expected);
  });

  it('knows when there is no such time', () => {
    expect(parseSchedule('0 0 31 feb *').next(new Date('2026-01-01T00:00:00Z'))).toBeUndefined();
  });

  it.each([
    '* * * *',
    '60 * * * *',
    '* 24 * * *',
    'a * * * *',
    '5-1 * * * *',
    '*/0 * * * *',
    '@every 1m',
    '1-2-3 * * * *',
  ])('refuses %s', (schedule) => {
    expect(() => parseSchedule(schedule)).toThrow(/schedule/);
  });

  it('refuses an unknown time zone', () => {
    expect(() => parseSchedule('* * * * *', 'Mars/Olympus')).toThrow(/time zone Mars\/Olympus/);
  });
});

const manifest = {
  apiVersion: 'sources.knative.dev/v1',
  kind: 'PingSource',
  metadata: { name: 'tick', namespace: 'bullion-system' },
  spec: { schedule: '* * * * *', contentType: 'application/json', data: '{"job":"sweep"}', sink: {} },
};
const withSpec = (spec: object) => ({ ...manifest, spec: { ...manifest.spec, ...spec } });

describe('parsePingSource', () => {
  it.each([
    [{ data: '[1]' }, /must be a JSON object/],
    [{ dataBase64: 'YQ==' }, /exclude each other/],
    [{ schedule: '@every 1m' }, /schedule/],
  ])('refuses %j', (spec, words) => {
    expect(() => parsePingSource(withSpec(spec))).toThrow(words);
  });
});

/** Sends into a list, on a clock that moves only when somebody sleeps. */
const run = async (spec: object, options: { readonly tickSeconds?: number; readonly events: number }) => {
  let clock = Date.parse('2026-01-01T00:00:20Z');
  let pings = 0;
  const requests: { headers: Record<string, string>; body: string }[] = [];
  const post = createHandlerPost(async (request) => {
    requests.push({ headers: Object.fromEntries(request.headers), body: await request.text() });
    return new Response(null, { status: 204 });
  });
  const ping = startPing({
    source: parsePingSource(withSpec(spec)),
    send: createSender({ sink: 'http://broker/', post }),
    log: silentLogger,
    tickSeconds: options.tickSeconds,
    now: () => new Date(clock),
    newId: () => ((pings += 1), 'id-1'),
    sleep: async (ms, signal) => {
      if (pings >= options.events) await new Promise((resolve) => signal?.addEventListener('abort', resolve));
      clock += ms;
      await new Promise((resolve) => setTimeout(resolve, 1));
    },
  });
  await expect.poll(() => requests.length).toBe(options.events);
  await ping.stop();
  return requests;
};

describe('startPing', () => {
  it('sends exactly what PingSource sends', async () => {
    const [first, second] = await run({}, { events: 2 });
    expect(first).toEqual({
      headers: {
        'ce-id': 'id-1',
        'ce-source': '/apis/v1/namespaces/bullion-system/pingsources/tick',
        'ce-specversion': '1.0',
        'ce-time': '2026-01-01T00:01:00.000Z',
        'ce-type': 'dev.knative.sources.ping',
        'content-type': 'application/json',
        traceparent: expect.stringMatching(/^00-/) as string,
      },
      body: '{"job":"sweep"}',
    });
    expect(second?.headers['ce-time']).toBe('2026-01-01T00:02:00.000Z');
  });

  it('names no content type when the manifest names none', async () => {
    const [request] = await run({ contentType: undefined, data: 'hi' }, { events: 1 });
    expect(request?.headers['content-type']).toBeUndefined();
    expect(request?.body).toBe('hi');
  });

  it('sends every few seconds when told so', async () => {
    const times = (await run({}, { events: 3, tickSeconds: 2 })).map(({ headers }) => headers['ce-time']);
    expect(times).toEqual(['2026-01-01T00:00:22.000Z', '2026-01-01T00:00:24.000Z', '2026-01-01T00:00:26.000Z']);
  });

  it('decodes dataBase64', () => {
    const source = parsePingSource(withSpec({ data: undefined, dataBase64: '/w==' }));
    const event: CloudEvent = buildPing(source, 'id', new Date(0));
    expect(new Uint8Array(event.data as Uint8Array)).toEqual(new Uint8Array([0xff]));
  });
});
