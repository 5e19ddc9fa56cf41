import { describe, expect, it } from 'vitest';
import { InvalidInput } from '#shared/runtime/errors.ts';
import { parseSpec, serializeReport, toFailure } from '#shared/transfer/failure.ts';
import { TransferError, toWriteFault } from '#shared/transfer/fault.ts';
import { maxReportBytes, parseReport } from '#shared/transfer/report.ts';

describe('toFailure', () => {
  it.each([
    [new TransferError('SourceStalled', 'm'), { reason: 'SourceStalled', retryable: true }],
    [new TransferError('SourceForbidden', 'm', { retryable: true }), { reason: 'SourceForbidden', retryable: true }],
    [new InvalidInput('m'), { reason: 'InvalidSpec', retryable: false }],
    [new TypeError('m'), { reason: 'InternalFault', retryable: true }],
    ['m', { reason: 'InternalFault', retryable: true }],
  ])('of %s', (error, expected) => {
    expect(toFailure(error)).toEqual({ ...expected, message: 'm' });
  });

  it('contains no secret', () => {
    const { message } = toFailure(new Error('GET http://joe:pw1234@host/disk?X-Amz-Signature=abc failed'));
    expect(message).toBe('GET http://host/disk failed');
  });
});

describe('toWriteFault', () => {
  const system = (code: string) => Object.assign(new Error(code), { code });
  it.each([
    ['ENOSPC', 'TargetFull'],
    ['EDQUOT', 'TargetFull'],
    ['EFBIG', 'TargetFull'],
    ['EIO', 'TargetFailed'],
    ['EROFS', 'TargetFailed'],
  ])('of %s is %s', (code, reason) => {
    expect(toWriteFault(system(code), '/target')).toMatchObject({ code: reason, retryable: true });
  });

  it('returns other errors unchanged', () => {
    const bug = new TypeError('x is not a function');
    expect(toWriteFault(bug, '/target')).toBe(bug);
  });
});

describe('serializeReport', () => {
  it('fits the limit of Kubernetes, whatever the message', () => {
    const message = 'ü"\\\u0001'.repeat(5000);
    const text = serializeReport({
      outcome: 'failed',
      reason: 'InternalFault',
      message,
      retryable: true,
      receivedBytes: 0,
    });
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxReportBytes);
    expect(parseReport(text)).toMatchObject({ outcome: 'failed', reason: 'InternalFault' });
  });
});

describe('parseSpec', () => {
  it('sets defaults', () => {
    const { spec } = parseSpec(
      JSON.stringify({ mode: 'inspect', source: { type: 'http', url: 'http://h/x' }, scratchDir: '/s' }),
    );
    expect(spec).toMatchObject({ limits: { idleSeconds: 60, retries: 5 }, allowedAddresses: [] });
  });

  it.each(['', '[]', '{"mode":"inspect"}', 'null'])('returns a report for "%s"', (text) => {
    expect(parseSpec(text).report).toMatchObject({ outcome: 'failed', reason: 'InvalidSpec', retryable: false });
  });
});
