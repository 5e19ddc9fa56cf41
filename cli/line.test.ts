import { expect, it } from 'vitest';
import { createLine } from '#cli/line.ts';

it('ends its line once, whoever ends it', () => {
  let told = '';
  const line = createLine({
    out: () => undefined,
    err: (text) => (told += text),
    isLive: true,
    now: () => new Date(),
  });
  line.end();
  line.show('half');
  line.end();
  line.end();
  expect(told).toBe('\r\u001B[2Khalf\n');
});
