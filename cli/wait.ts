// Waits for an image to be over, telling on the way what it does.
import { setTimeout as sleep } from 'node:timers/promises';
import { type ExitCode, type OptionSpec, type Terminal, type Values, exitCodes, textOf } from '#cli/command.ts';
import { barOf, createLine } from '#cli/line.ts';
import { type Found, type AnyImage, isOver, readyOf } from '#shared/catalogue/image.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { toSpan } from '#shared/runtime/age.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { InvalidInput, NotFound } from '#shared/runtime/errors.ts';

/** Milliseconds between two looks. */
const pollMs = 1000;

export const waitOptions = {
  'no-wait': { type: 'boolean', help: 'return at once instead of showing progress to the end' },
  timeout: { type: 'string', value: 'TIME', help: 'longest wait, such as 90s, 10m or 2h (no limit)' },
} as const satisfies Readonly<Record<string, OptionSpec>>;

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };

/** Milliseconds; `undefined` without a limit. */
export const timeoutOf = (values: Values): number | undefined => {
  const text = textOf(values, 'timeout');
  if (text === undefined) return undefined;
  const [, digits, unit = 's'] = /^(\d+(?:\.\d+)?)([smh])?$/.exec(text) ?? [];
  if (digits === undefined) throw new InvalidInput(`--timeout is a time such as 90s, 10m or 2h, not ${text}`);
  return Number(digits) * (units[unit] ?? 1000);
};

export interface Wait {
  readonly kube: KubeClient;
  readonly terminal: Terminal;
  readonly timeoutMs?: number | undefined;
  /** Value of the retry annotation that must have been acted on: until then the old failure is what status tells. */
  readonly retry?: string | undefined;
  readonly signal: AbortSignal;
  /** Told what is waited for as it was when the wait ended. */
  readonly onEnd?: ((image: AnyImage) => void) | undefined;
  /** What is waited for, and the command that says more of it; of an image where left out. */
  readonly words?: { readonly what: string; readonly work: string; readonly more: string } | undefined;
}

const wordsOf = ({ words }: Wait, { metadata: { name, namespace } }: AnyImage) =>
  words ?? { what: 'image', work: 'import', more: `bullion why ${name} -n ${namespace}` };

/** One line that says where an image stands. */
export const describeProgress = (found: Found, terminal: Pick<Terminal, 'isLive' | 'hasColors'>): string => {
  const { metadata, status = {} } = found.image;
  const { transfer, progress = 0 } = status;
  const speed = transfer?.bytesPerSecond === undefined ? '' : `, ${formatBytes(transfer.bytesPerSecond)}/s`;
  const left = transfer?.etaSeconds === undefined ? '' : `, ${toSpan(transfer.etaSeconds * 1000)} left`;
  const message = readyOf(found)?.message ?? 'waiting to be reconciled';
  return `${metadata.name}: ${barOf(terminal, progress)}${String(progress).padStart(3)}% ${message}${speed}${left}`;
};

const codeOfEnd = ({ terminal, onEnd }: Wait, found: Found): ExitCode => {
  onEnd?.(found.image);
  if (readyOf(found)?.status === 'True') return exitCodes.done;
  if (terminal.isQuiet === true) terminal.err(`${describeProgress(found, { isLive: false })}\n`);
  return exitCodes.failed;
};

/** Looks until the image is over, gone, or the time is. */
export const waitUntilOver = async (wait: Wait, { type, image }: Found): Promise<ExitCode> => {
  const deadline = wait.timeoutMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + wait.timeoutMs;
  const line = createLine(wait.terminal);
  const words = wordsOf(wait, image);
  for (;;) {
    const found = { type, image: await rewatch(wait.kube, { type, image }, words.what) };
    line.show(describeProgress(found, wait.terminal));
    if (hasEnded(wait, found)) {
      line.end();
      return codeOfEnd(wait, found);
    }
    if (performance.now() >= deadline || wait.signal.aborted) {
      line.end();
      const why = wait.signal.aborted ? 'No longer waiting' : 'Timed out';
      wait.terminal.err(`${why}; the ${words.work} continues: ${words.more}\n`);
      wait.onEnd?.(found.image);
      return wait.signal.aborted ? exitCodes.interrupted : exitCodes.timedOut;
    }
    await sleep(pollMs, undefined, { signal: wait.signal }).catch(() => undefined);
  }
};

const rewatch = async (kube: KubeClient, { type, image }: Found, what: string): Promise<AnyImage> => {
  const { namespace, name, uid } = image.metadata;
  const current = await kube.get(type, { namespace, name });
  if (current === undefined || current.metadata.uid !== uid)
    throw new NotFound(`${what} ${name} was deleted meanwhile`);
  return current;
};

const hasEnded = ({ retry }: Wait, found: Found): boolean =>
  isOver(found) && (retry === undefined || found.image.status?.retryHandled === retry);
