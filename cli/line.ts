// How a command shows progress.
import { stripVTControlCharacters } from 'node:util';
import type { Terminal } from '#cli/command.ts';
import { formatBytes } from '#shared/api/quantity.ts';

export interface Line {
  show(text: string): void;
  /** One of many: shown at most once a second, and if it is the last one. */
  count(text: string, isLast?: boolean): void;
  /** Ends the line, so that the next output begins a new one. Idempotent. */
  end(): void;
}

const barCells = 20;

/** `percent` as a bar, for a terminal; empty elsewhere. */
export const barOf = ({ isLive, hasColors }: Pick<Terminal, 'isLive' | 'hasColors'>, percent: number): string => {
  if (!isLive) return '';
  const filled = Math.round((Math.min(100, Math.max(0, percent)) / 100) * barCells);
  const [done, left] = ['█'.repeat(filled), '░'.repeat(barCells - filled)];
  return hasColors === true ? `\u001B[36m${done}\u001B[90m${left}\u001B[39m ` : `${done}${left} `;
};

/** As wide as the screen at most, since only one line is overwritten; then without colours. A terminal that does not know its size says 0. */
export const cutTo = (width: number | undefined, text: string): string => {
  const plain = stripVTControlCharacters(text);
  return width === undefined || width === 0 || plain.length < width ? text : plain.slice(0, width - 1);
};

/** A line that is overwritten while a person watches, and written once for each change where none does. */
export const createLine = (terminal: Terminal): Line => {
  let last = '';
  let countedAt = -Infinity;
  let heldBack: string | undefined;
  const write = (text: string): void => {
    heldBack = undefined;
    if (text === last || terminal.isQuiet === true) return;
    last = text;
    terminal.err(terminal.isLive ? `\r\u001B[2K${cutTo(terminal.width?.(), text)}` : `${text}\n`);
  };
  const writeHeldBack = (): void => {
    if (heldBack !== undefined) write(heldBack);
  };
  return {
    count: (text: string, isLast = false): void => {
      heldBack = text;
      if (!isLast && performance.now() - countedAt < 1000) return;
      countedAt = performance.now();
      write(text);
    },
    show: (text: string): void => {
      writeHeldBack();
      write(text);
    },
    end: (): void => {
      writeHeldBack();
      if (terminal.isLive && last !== '') terminal.err('\n');
      last = '';
    },
  };
};

/** Bytes that move: how many of how many. */
export const countBytes = (line: Line, what: string, done: number, size?: number): void => {
  if (size === undefined) return line.count(`${what}: ${formatBytes(done)}`);
  const share = size === 0 ? 100 : Math.floor((100 * done) / size);
  const text = `${what}: ${formatBytes(done)} of ${formatBytes(size)} (${share}%)`;
  return line.count(text, done >= size);
};
