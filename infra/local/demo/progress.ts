// Formats an image's status as one line of progress, and displays it. Called by the demo.
import { formatBytes } from '#shared/api/quantity.ts';
import type { CommonImageStatus } from '#shared/api/image-status.ts';

export type ShownStatus = CommonImageStatus & { readonly phase?: string | undefined };

/** Characters of the bar. */
const barWidth = 28;

export const formatSeconds = (seconds: number): string => {
  const whole = Math.ceil(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
};

const barOf = (percent: number): string => {
  const filled = Math.round((percent / 100) * barWidth);
  return `[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}]`;
};

/** Phase, bar, percent, speed and time left, if known. */
export const progressLine = (status: ShownStatus): string => {
  const { phase = 'Pending', progress = 0, transfer } = status;
  const parts = [`${phase.padEnd(12)} ${barOf(progress)} ${String(progress).padStart(3)} %`];
  if (transfer !== undefined && progress < 100) {
    const { receivedBytes, totalBytes, bytesPerSecond, etaSeconds } = transfer;
    parts.push(
      totalBytes === undefined
        ? formatBytes(receivedBytes)
        : `${formatBytes(receivedBytes)} of ${formatBytes(totalBytes)}`,
    );
    if (bytesPerSecond !== undefined) parts.push(`${formatBytes(Math.round(bytesPerSecond))}/s`);
    if (etaSeconds !== undefined) parts.push(`${formatSeconds(etaSeconds)} left`);
  }
  return parts.join('  ');
};

/** Displays progress. */
export interface Screen {
  /** Replaces the line of progress. */
  readonly progress: (line: string) => void;
  /** Prints a permanent line. */
  readonly say: (line: string) => void;
}

export interface DemoTerminal {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

/** On a terminal the line is overwritten; otherwise each change is a new line, at most one per 10 percent. */
export const createScreen = (terminal: DemoTerminal): Screen => {
  let shown = '';
  let step = '';
  const isLive = terminal.isTTY === true;
  return {
    progress: (line) => {
      if (line === shown) return;
      shown = line;
      if (isLive) {
        terminal.write(`\r\x1b[K${line.slice(0, (terminal.columns ?? 80) - 1)}`);
        return;
      }
      const now = stepOf(line);
      if (now !== step) terminal.write(`${line}\n`);
      step = now;
    },
    say: (line) => {
      const end = isLive && shown !== '' ? '\n' : '';
      shown = '';
      terminal.write(`${end}${line}\n`);
    },
  };
};

/** Phase and tens of percent. */
const stepOf = (line: string): string =>
  `${line.split(' ', 1)[0]} ${Math.floor(Number(/(\d+) %/.exec(line)?.[1] ?? 0) / 10)}`;
