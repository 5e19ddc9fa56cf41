import { describe, expect, it } from 'vitest';
import {
  continueTrace,
  currentContext,
  parseTraceparent,
  type Span,
  toTraceparent,
  type Trace,
  traceHeaders,
  traceOfObject,
  type Tracer,
  withContext,
  withSpan,
} from './trace.ts';
import { toOtlp } from './otlp.ts';

const id = '4bf92f3577b34da6a3ce929d0e0e4736';
const span = '00f067aa0ba902b7';

describe('parseTraceparent', () => {
  it.each([
    [`00-${id}-${span}-01`, true],
    [`01-${id}-${span}-01-more`, true],
    [`00-${id}-${span}-01-more`, false],
    [`ff-${id}-${span}-01`, false],
    [`00-${'0'.repeat(32)}-${span}-01`, false],
    [`00-${id}-${'0'.repeat(16)}-01`, false],
    [`00-${id.toUpperCase()}-${span}-01`, false],
    ['garbage', false],
    [undefined, false],
  ])('parses %s: %s', (value, isValid) => {
    expect(parseTraceparent(value) !== undefined).toBe(isValid);
  });
});

describe('continueTrace', () => {
  it('keeps the trace and its flags and creates a new span', () => {
    const next = continueTrace(parseTraceparent(`00-${id}-${span}-01`, 'vendor=1'));
    expect(next).toMatchObject({ traceId: id, flags: '01' });
    expect(next.spanId).not.toBe(span);
    expect(traceHeaders(next)).toEqual({ traceparent: toTraceparent(next), tracestate: 'vendor=1' });
  });

  it('starts a trace when there is none', () => {
    expect(parseTraceparent(toTraceparent(continueTrace(undefined)))).toBeDefined();
    expect(traceHeaders(undefined)).toEqual({});
  });
});

const remember = (): { readonly tracer: Tracer; readonly spans: Span[] } => {
  const spans: Span[] = [];
  return { spans, tracer: { record: (span) => void spans.push(span), flush: () => Promise.resolve() } };
};
const uid = '11111111-2222-4333-8444-555555555555';
const parent: Trace = parseTraceparent(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`)!;

describe('a span', () => {
  it('is recorded as a child of the current one, with its attributes', async () => {
    const { tracer, spans } = remember();
    const answer = await withContext({ tracer, trace: parent }, () =>
      withSpan('outer', { attributes: { a: 1 } }, async (note) => {
        note({ b: 'x' });
        return withSpan('inner', {}, () => Promise.resolve(42));
      }),
    );
    const [inner, outer] = spans;
    expect(answer).toBe(42);
    expect(outer).toMatchObject({ name: 'outer', parentSpanId: parent.spanId, attributes: { a: 1, b: 'x' } });
    expect(inner).toMatchObject({ name: 'inner', traceId: parent.traceId, parentSpanId: outer?.spanId });
    expect(inner!.endMs).toBeGreaterThanOrEqual(inner!.startMs);
  });

  it('records its error, and rethrows it', async () => {
    const { tracer, spans } = remember();
    const work = withContext({ tracer }, () => withSpan('x', {}, () => Promise.reject(new Error('no'))));
    await expect(work).rejects.toThrow('no');
    expect(spans).toMatchObject([{ error: 'no' }]);
  });

  it('is recorded in a trace that others did not sample, and propagated as sampled', async () => {
    const { tracer, spans } = remember();
    const flags = await withContext({ tracer, trace: { ...parent, flags: '00' } }, () =>
      withSpan('x', {}, () => Promise.resolve(currentContext().trace?.flags)),
    );
    expect(flags).toBe('01');
    expect(spans).toMatchObject([{ traceId: parent.traceId, parentSpanId: parent.spanId }]);
  });

  it('is not created when nothing records it', async () => {
    const trace = await withContext({ trace: parent }, () =>
      withSpan('x', {}, () => Promise.resolve(currentContext().trace)),
    );
    expect(trace).toBe(parent);
  });
});

describe('the trace of an object', () => {
  it('has an ID derived from its UID, always the same, and valid for UIDs of any form', () => {
    expect(traceOfObject(uid)).toEqual(traceOfObject(uid));
    expect(traceOfObject(uid).traceId).toBe(uid.replaceAll('-', ''));
    for (const { traceId, spanId } of [traceOfObject(uid), traceOfObject('odd')]) {
      expect(parseTraceparent(`00-${traceId}-${spanId}-01`)).toBeDefined();
    }
  });
});

describe('OTLP', () => {
  it('has 64-bit numbers as strings, enums as numbers, and no secret', () => {
    const span: Span = {
      traceId: parent.traceId,
      spanId: parent.spanId,
      name: 'x',
      kind: 'consumer',
      startMs: 1_700_000_000_000.25,
      endMs: 1_700_000_000_001,
      attributes: { url: 'https://me:secret@host/x?sig=1', count: 3, share: 0.5, ok: true, none: undefined },
      links: [traceOfObject(uid)],
      error: 'password=hunter2',
    };
    const text = JSON.stringify(toOtlp('initialize', [span]));
    expect(JSON.parse(text)).toMatchObject({
      resourceSpans: [
        {
          resource: {
            attributes: expect.arrayContaining([{ key: 'service.name', value: { stringValue: 'initialize' } }]),
          },
          scopeSpans: [
            {
              spans: [
                {
                  kind: 5,
                  startTimeUnixNano: '1700000000000250000',
                  endTimeUnixNano: '1700000000001000000',
                  attributes: [
                    { key: 'url', value: { stringValue: 'https://host/x' } },
                    { key: 'count', value: { intValue: '3' } },
                    { key: 'share', value: { doubleValue: 0.5 } },
                    { key: 'ok', value: { boolValue: true } },
                  ],
                  links: [{ traceId: uid.replaceAll('-', '') }],
                  status: { code: 2 },
                },
              ],
            },
          ],
        },
      ],
    });
    expect(text).not.toMatch(/secret@|hunter2|sig=1/);
  });
});
