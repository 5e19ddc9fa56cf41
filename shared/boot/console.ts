// What a guest writes on its serial console, as text: without the sequences that move a cursor, and no more than is needed. Pure but for its buffer.
import { redact } from '#shared/runtime/redact.ts';

/** Characters that are kept. */
const mostKept = 64 * 1024;
const mostShown = 2000;

// Sequences of terminals: colours, cursors, titles; and single control characters but for ends of lines and tabs.
// oxlint-disable-next-line no-control-regex
const sequences = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])/g;
// oxlint-disable-next-line no-control-regex
const controls = /[\x00-\x08\x0b-\x1f\x7f]/g;

/** An incomplete sequence at the end is left for the next piece. */
// oxlint-disable-next-line no-control-regex
const openSequence = /\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]{0,200}|[ -/]*)?$/;

export interface BootConsole {
  readonly add: (piece: Buffer) => void;
  readonly has: (text: string) => boolean;
  /** Why the guest cannot come up any more, in its own words. `isComplete`: the line has ended. */
  readonly panic: () => { readonly words: string; readonly isComplete: boolean } | undefined;
  /** Its last lines, without credentials. */
  readonly end: () => string;
}

/** Words after which no guest comes up. The guest may recover from anything else until the timeout. */
const panics = /^(.*(?:Kernel panic - not syncing|end Kernel panic|panic: cpu\d).*)(\n?)/m;

/** Empty lines and repeated spaces of boot menus say nothing. */
const linesOf = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.trimEnd().replaceAll(/ {8,}/g, '  '))
    .filter((line) => line !== '')
    .join('\n');

export const createBootConsole = (): BootConsole => {
  const decoder = new TextDecoder();
  let open = '';
  let text = '';
  return {
    add: (piece) => {
      const raw = open + decoder.decode(piece, { stream: true });
      open = openSequence.exec(raw)?.[0] ?? '';
      const added = raw
        .slice(0, raw.length - open.length)
        .replaceAll(sequences, '')
        .replaceAll(/\r\n?/g, '\n');
      text = (text + added.replaceAll(controls, '')).slice(-mostKept);
    },
    has: (wanted) => text.includes(wanted),
    panic: () => {
      const [, line, end] = panics.exec(text) ?? [];
      return line === undefined ? undefined : { words: line.trim().slice(0, 200), isComplete: end !== '' };
    },
    end: () => redact(linesOf(text)).slice(-mostShown),
  };
};
