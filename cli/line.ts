// How a command shows progress.
import type { Terminal } from '#cli/command.ts';

export interface Line {
  show(text: string): void;
  /** One of many: shown at most once a second. */
  count(text: string): void;
  /** What is said next begins a line of its own; once more does nothing. */
  end(): void;
}

/** A line that is overwritten while a person watches, and written once for each change where none does. */
export const createLine = (terminal: Terminal): Line => {
  let last = '';
  let countedAt = -Infinity;
  return {
    count(text: string): void {
      if (performance.now() - countedAt < 1000) return;
      countedAt = performance.now();
      this.show(text);
    },
    show: (text: string): void => {
      if (text === last) return;
      last = text;
      terminal.err(terminal.isLive ? `\r\u001B[2K${text}` : `${text}\n`);
    },
    end: (): void => {
      if (terminal.isLive && last !== '') terminal.err('\n');
      last = '';
    },
  };
};
