import { expect, it } from 'vitest';
import { barOf, createLine, cutTo } from '#cli/line.ts';

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

it('says nothing of progress where nobody wants it', () => {
  let told = '';
  const line = createLine({
    out: () => undefined,
    err: (text) => (told += text),
    isLive: true,
    isQuiet: true,
    now: () => new Date(),
  });
  line.show('half');
  line.end();
  expect(told).toBe('');
});

it.each([
  [{ isLive: false }, ''],
  [{ isLive: true }, `${'█'.repeat(5)}${'░'.repeat(15)} `],
  [{ isLive: true, hasColors: true }, `\u001B[36m${'█'.repeat(5)}\u001B[90m${'░'.repeat(15)}\u001B[39m `],
])('draws a bar on a terminal, with colours where it shows them: %o', (terminal, bar) =>
  expect(barOf(terminal, 25)).toBe(bar),
);

it.each([
  ['jammy: 10%', undefined, 'jammy: 10%'],
  ['jammy: 10%', 7, 'jammy:'],
  ['\u001B[36mab\u001B[39mcd', 4, 'abc'],
  ['\u001B[36mab\u001B[39mcd', 5, '\u001B[36mab\u001B[39mcd'],
])('is no wider than the screen: %j in %s', (text, width, cut) => expect(cutTo(width, text)).toBe(cut));
