import { describe, expect, it } from 'vitest';
import { type Line, barOf, countBytes, createLine, cutTo } from '#cli/line.ts';

it('ends its line once, whoever ends it', () => {
  let written = '';
  const line = createLine({
    out: () => undefined,
    err: (text) => (written += text),
    isLive: true,
    now: () => new Date(),
  });
  line.end();
  line.show('half');
  line.end();
  line.end();
  expect(written).toBe('\r\u001B[2Khalf\n');
});

it('says nothing of progress where nobody wants it', () => {
  let written = '';
  const line = createLine({
    out: () => undefined,
    err: (text) => (written += text),
    isLive: true,
    isQuiet: true,
    now: () => new Date(),
  });
  line.show('half');
  line.end();
  expect(written).toBe('');
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

describe('bytes that move', () => {
  const written = (isLive: boolean, work: (line: Line) => void): string => {
    let text = '';
    const line = createLine({ out: () => undefined, err: (more) => (text += more), isLive, now: () => new Date() });
    work(line);
    line.end();
    return text;
  };
  const mib = 2 ** 20;

  it('are shown to the last one', () =>
    expect(
      written(false, (line) => {
        for (const done of [1, 2, 4]) countBytes(line, 'uploading jammy', done * mib, 4 * mib);
        countBytes(line, 'uploading fedora', mib, 4 * mib);
      }),
    ).toBe(
      [
        'uploading jammy: 1.0 MiB of 4.0 MiB (25%)',
        'uploading jammy: 4.0 MiB of 4.0 MiB (100%)',
        'uploading fedora: 1.0 MiB of 4.0 MiB (25%)\n',
      ].join('\n'),
    ));

  it.each([
    [false, 'a: 1.0 MiB\na: 3.0 MiB\nretrying\n'],
    [true, '\r\u001B[2Ka: 1.0 MiB\r\u001B[2Ka: 3.0 MiB\r\u001B[2Kretrying\n'],
  ])('are shown as far as they came before anything else is said (live: %s)', (isLive, text) =>
    expect(
      written(isLive, (line) => {
        for (const done of [1, 2, 3]) countBytes(line, 'a', done * mib);
        line.show('retrying');
      }),
    ).toBe(text),
  );
});
