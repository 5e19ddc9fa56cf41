import { describe, expect, it } from 'vitest';
import { continueTrace, parseTraceparent, toTraceparent, traceHeaders } from '#shared/runtime/trace.ts';

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
