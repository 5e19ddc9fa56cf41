import { type CloudEvent as SdkEvent, HTTP } from 'cloudevents';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type EventOf, eventTypes, objectOf } from '#events/catalogue.ts';
import { decodeEvent } from '#events/message.ts';
import { encodeEvent } from '#events/message.ts';
import type { CloudEvent } from '#events/event.ts';
import { receiveEvent } from '#events/receive.ts';

const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'd', uid: 'u-1' } };
const attributes: Record<string, unknown> = {
  specversion: '1.0',
  id: 'e-1',
  source: 'https://10.96.0.1:443',
  type: eventTypes.objectUpdated,
  subject: '/apis/v1/namespaces/d/pods/p',
  time: '2026-01-02T03:04:05.123456789Z',
  kind: 'Pod',
  namespace: 'd',
};

interface Given {
  readonly attributes?: Record<string, unknown>;
  readonly contentType?: string | null;
  readonly body?: string | Uint8Array;
}

/** Drops attributes set to undefined, so that a row can remove one. */
const present = (values: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

const binary = (given: Given = {}): Request => {
  const all = present({ ...attributes, ...given.attributes });
  const headers = new Headers(Object.entries(all).map(([name, value]) => [`ce-${name}`, String(value)]));
  if (given.contentType !== null) headers.set('content-type', given.contentType ?? 'application/json');
  const body = given.body ?? JSON.stringify(pod);
  const request = new Request('http://f/', {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? Buffer.from(body) : body,
  });
  if (given.contentType === null) request.headers.delete('content-type');
  return request;
};

const structured = (given: Given = {}): Request => {
  const all = present({ ...attributes, datacontenttype: 'application/json', data: pod, ...given.attributes });
  const headers = { 'content-type': given.contentType ?? 'application/cloudevents+json' };
  return new Request('http://f/', { method: 'POST', headers, body: given.body ?? JSON.stringify(all) });
};

const modes = { binary, structured };
const updated = async (request: Request) => (await receiveEvent(request)) as EventOf<typeof eventTypes.objectUpdated>;
const refusal = async (request: Request): Promise<string> => {
  const result = await receiveEvent(request).catch((error: unknown) => error);
  expect(result).toMatchObject({ code: 'InvalidInput' });
  return (result as Error).message;
};

describe.each(['binary', 'structured'] as const)('an event in %s mode', (mode) => {
  const make = modes[mode];

  it('is received with every attribute as it was sent', async () => {
    const event = await updated(make());
    expect(event).toEqual({
      id: 'e-1',
      source: 'https://10.96.0.1:443',
      type: eventTypes.objectUpdated,
      subject: '/apis/v1/namespaces/d/pods/p',
      time: '2026-01-02T03:04:05.123456789Z',
      datacontenttype: 'application/json',
      extensions: { kind: 'Pod', namespace: 'd' },
      data: pod,
    });
    expect(objectOf(event)).toEqual({ apiVersion: 'v1', kind: 'Pod', namespace: 'd', name: 'p', uid: 'u-1' });
  });

  it.each([
    ['no type', { type: undefined }, 'type is missing or empty'],
    ['an empty id', { id: '' }, 'id is missing or empty'],
    ['no id', { id: undefined }, 'id is missing or empty'],
    ['no source', { source: undefined }, 'source is missing or empty'],
    [
      'nothing required',
      { id: undefined, source: undefined, type: undefined },
      'id is missing or empty; source is missing',
    ],
    ['specversion 0.3', { specversion: '0.3' }, 'specversion is "0.3"; only "1.0" is accepted'],
    ['specversion 2.0', { specversion: '2.0' }, 'specversion is "2.0"'],
    ['no specversion', { specversion: undefined }, 'specversion is missing'],
    ['a garbage time', { time: 'yesterday' }, 'time is not an RFC 3339 time'],
    ['a source with spaces', { source: 'not a uri' }, 'source must match format "uri-reference"'],
    ['a relative dataschema', { dataschema: '/schema' }, 'dataschema must match format "uri"'],
    ['an extension with a dash', { 'my-ext': 'x' }, 'my-ext is not a valid attribute name'],
    ['an unknown type', { type: 'com.example.other' }, 'which is not handled here'],
  ])('with %s is rejected with a message', async (_, wrong, words) => {
    expect(await refusal(make({ attributes: wrong }))).toContain(words);
  });

  it('keeps an empty namespace, as Knative sends for cluster-scoped objects', async () => {
    const event = await updated(make({ attributes: { namespace: '' } }));
    expect(event.extensions).toEqual({ kind: 'Pod', namespace: '' });
  });

  it('omits an empty optional attribute and needs no time', async () => {
    const event = await updated(make({ attributes: { subject: '', time: undefined } }));
    expect(event.subject).toBeUndefined();
    expect(event.time).toBeUndefined();
  });

  it('accepts extensions that shadow methods and prototypes', async () => {
    const names = { validate: 'x', tojson: 'x', emit: 'x', constructor: 'x', tostring: 'x' };
    const event = await updated(make({ attributes: names }));
    expect(event.extensions).toEqual({ kind: 'Pod', namespace: 'd', ...names });
  });

  it('accepts a body of 1.5 MiB', async () => {
    const large = { ...pod, metadata: { ...pod.metadata, annotations: { large: 'x'.repeat(1.5 * 1024 * 1024) } } };
    const request = mode === 'binary' ? make({ body: JSON.stringify(large) }) : make({ attributes: { data: large } });
    expect((await updated(request)).data).toEqual(large);
  });

  it('rejects data that does not match the schema of its type', async () => {
    const wrong = { apiVersion: 'v1', metadata: {} };
    const request = mode === 'binary' ? make({ body: JSON.stringify(wrong) }) : make({ attributes: { data: wrong } });
    const message = await refusal(request);
    expect(message).toContain('data.kind');
    expect(message).toContain('data.metadata.name');
  });
});

describe('binary mode', () => {
  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=utf-8',
    'application/json; charset=UTF-8',
    'Application/JSON; Charset="utf-8"; x=y',
    'text/json',
    'application/merge-patch+json',
  ])('decodes JSON data of content type %s', async (contentType) => {
    expect((await updated(binary({ contentType }))).data).toEqual(pod);
  });

  it('decodes JSON data in another character set', async () => {
    const body = Buffer.from(JSON.stringify({ ...pod, note: 'ä€' }), 'utf16le');
    const event = await updated(binary({ contentType: 'application/json; charset=utf-16le', body }));
    expect(event.data).toMatchObject({ note: 'ä€' });
  });

  it.each([
    ['whitespace first', `\n  ${JSON.stringify(pod)}\n`, pod],
    ['a byte order mark first', `\uFEFF${JSON.stringify(pod)}`, pod],
  ])('decodes JSON with %s', async (_, body, data) => {
    expect((await updated(binary({ body }))).data).toEqual(data);
  });

  it.each([
    ['42', 42],
    ['true', true],
    ['null', null],
    ['"text"', 'text'],
    ['[1]', [1]],
    ['', undefined],
  ])('decodes the JSON body %j', async (body, data) => {
    const request = binary({ body });
    expect(decodeEvent(request.headers, new Uint8Array(await request.arrayBuffer())).data).toEqual(data);
  });

  it.each([
    ['{', 'body is not valid JSON'],
    [Buffer.from([0x22, 0xff, 0x22]), 'body is not valid utf-8 text'],
  ])('rejects an invalid body', async (body, words) => {
    expect(await refusal(binary({ body }))).toContain(words);
  });

  it('rejects an unknown character set', async () => {
    expect(await refusal(binary({ contentType: 'application/json; charset=klingon' }))).toContain(
      'not valid klingon text',
    );
  });

  it('returns a ping without a content type as text', async () => {
    const ping = { type: eventTypes.ping, subject: undefined };
    expect((await receiveEvent(binary({ attributes: ping, contentType: null, body: 'tick' }))).data).toBe('tick');
  });

  it.each([
    ['percent-encoded', '/k/%E2%82%AC%20a', '/k/€ a'],
    ['raw UTF-8 (Latin-1 in Node)', Buffer.from('/k/€').toString('latin1'), '/k/€'],
    ['a lone percent sign', '/k/100%', '/k/100%'],
    ['double quotes', '"a \\"b\\""', 'a "b"'],
  ])('decodes a subject in %s', async (_, subject, decoded) => {
    expect((await updated(binary({ attributes: { subject } }))).subject).toBe(decoded);
  });

  it('rejects a request that is not an event', async () => {
    const request = new Request('http://f/', {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    });
    expect(await refusal(request)).toContain('not a CloudEvent in binary or structured mode');
  });

  it('rejects data attributes as headers', async () => {
    expect(await refusal(binary({ attributes: { data: 'x' } }))).toContain('ce-data may not be a header');
  });
});

describe('structured mode', () => {
  it.each([
    'application/cloudevents+json',
    'application/cloudevents+json; charset=utf-8',
    'application/cloudevents+json;charset=utf-8',
    'application/cloudevents+json; charset=UTF-8',
  ])('is recognized by %s', async (contentType) => {
    expect((await updated(structured({ contentType }))).data).toEqual(pod);
  });

  it.each([0, false, null, ''])('keeps the falsy data %j', (data) => {
    const body = Buffer.from(JSON.stringify({ ...attributes, data }));
    expect(decodeEvent(new Headers({ 'content-type': 'application/cloudevents+json' }), body).data).toBe(data);
  });

  it.each([
    ['JSON', 'application/json', '{"a":1}', { a: 1 }],
    ['text', 'text/plain', 'hi', 'hi'],
    ['bytes', 'application/octet-stream', Buffer.from([0xff, 0xfe]), new Uint8Array([0xff, 0xfe])],
  ])('decodes base64 data as %s', (_, datacontenttype, content, data) => {
    const body = JSON.stringify({
      ...attributes,
      datacontenttype,
      data_base64: Buffer.from(content as string).toString('base64'),
    });
    const event = decodeEvent(new Headers({ 'content-type': 'application/cloudevents+json' }), Buffer.from(body));
    expect(event.data instanceof Uint8Array ? new Uint8Array(event.data) : event.data).toEqual(data);
  });

  it('keeps native extension types and omits null', async () => {
    const event = await updated(structured({ attributes: { knativeerrorcode: 503, flag: true, gone: null } }));
    expect(event.extensions).toEqual({ kind: 'Pod', namespace: 'd', knativeerrorcode: 503, flag: true });
  });

  it.each([
    ['a capital extension', { apiVersion: 'v1' }, 'apiVersion is not a valid attribute name'],
    ['a fractional extension', { ratio: 1.5 }, 'ratio must be a string, a boolean or an integer'],
    ['an object as extension', { nested: {} }, 'nested must be'],
    ['a number as id', { id: 7 }, 'id must be a string'],
    ['both kinds of data', { data_base64: 'YQ==' }, 'together with data'],
  ])('rejects %s', async (_, wrong, words) => {
    expect(await refusal(structured({ attributes: wrong }))).toContain(words);
  });

  it.each([
    ['an array', '[]', undefined, 'must be one JSON object'],
    ['a batch', '[]', 'application/cloudevents-batch+json', 'send one event as'],
    ['another format', '<e/>', 'application/cloudevents+xml', 'send one event as'],
    ['an own __proto__', '{"__proto__":{"id":"x"}}', undefined, '__proto__ is not a valid attribute name'],
  ])('rejects %s', async (_, body, contentType, words) => {
    expect(await refusal(structured({ body, ...(contentType === undefined ? {} : { contentType }) }))).toContain(words);
  });
});

describe('encodeEvent', () => {
  const anEvent = (more: Partial<CloudEvent> = {}): CloudEvent => ({
    id: 'e-1',
    source: '/s',
    type: 't',
    datacontenttype: 'application/json',
    extensions: { namespace: '', count: 3 },
    data: { a: 1 },
    ...more,
  });

  it('writes only strings in binary mode', () => {
    expect(encodeEvent(anEvent())).toEqual({
      headers: {
        'ce-specversion': '1.0',
        'ce-id': 'e-1',
        'ce-source': '/s',
        'ce-type': 't',
        'ce-namespace': '',
        'ce-count': '3',
        'content-type': 'application/json',
      },
      body: '{"a":1}',
    });
  });

  it.each(['€', 'a b', '100%', '"q"', 'line\nbreak'])('uses structured mode for the unsafe subject %j', (subject) => {
    expect(encodeEvent(anEvent({ subject })).headers).toEqual({ 'content-type': 'application/cloudevents+json' });
  });

  it('is decoded to the same event in both modes, also by the cloudevents package', () => {
    const text = fc.string({ minLength: 1, unit: 'binary' }).filter((value) => value.isWellFormed());
    const event = fc.record({
      id: text,
      type: text,
      subject: fc.option(text, { nil: undefined }),
      data: fc.jsonValue({ maxDepth: 3 }).filter((value) => value !== null),
      extension: fc.string({ maxLength: 20 }).filter((value) => value.isWellFormed()),
      mode: fc.constantFrom('binary', 'structured'),
    });
    fc.assert(
      fc.property(event, ({ id, type, subject, data, extension, mode }) => {
        const sent = anEvent({ id, type, subject, data, extensions: { extension } });
        const { headers, body } = encodeEvent(sent, mode as 'binary' | 'structured');
        expect(decodeEvent(new Headers(headers), Buffer.from(body as string))).toEqual(
          JSON.parse(JSON.stringify(sent)),
        );
        if (typeof data !== 'object') return;
        const oracle = HTTP.toEvent({ headers, body }) as SdkEvent;
        expect({ id: oracle.id, type: oracle.type, data: oracle.data }).toEqual({
          id,
          type,
          data: JSON.parse(JSON.stringify(data)),
        });
      }),
    );
  });
});
