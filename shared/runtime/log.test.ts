import { describe, expect, it } from 'vitest';
import { newTrace, withContext } from './trace.ts';
import { createLogger } from '#shared/runtime/log.ts';

const collect = () => {
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line), now: () => new Date(0) });
  return { log, entries: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>), lines };
};

describe('createLogger', () => {
  it('writes one redacted JSON line with the context of the invocation', async () => {
    const { log, entries, lines } = collect();
    const trace = newTrace();
    await withContext({ function: 'initialize', eventId: 'e-1', trace }, async () => {
      await Promise.resolve();
      withContext({ object: 'Pod d/p' }, () =>
        log.with({ backend: 'csi' }).info('image observed', { url: 'http://u:p@h/?q' }),
      );
    });
    expect(lines[0]).toMatch(/^[^\n]+\n$/);
    expect(entries()).toEqual([
      {
        time: '1970-01-01T00:00:00.000Z',
        level: 'info',
        message: 'image observed',
        function: 'initialize',
        eventId: 'e-1',
        traceId: trace.traceId,
        object: 'Pod d/p',
        backend: 'csi',
        url: 'http://h/',
      },
    ]);
  });

  it('omits lines below its level', () => {
    const { log, lines } = collect();
    log.debug('noise');
    expect(lines).toEqual([]);
  });
});
