// One whole transfer: an origin, a target, and its results.
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type TransferProgress, TransferReport } from '#shared/transfer/report.ts';
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { sharedDirectory } from '#test/support/directory.ts';
import { type Answer, type FileOptions, type OriginRequest, fileAnswer, startOrigin } from '#test/support/origin.ts';

const root = sharedDirectory();
const mib = 1024 * 1024;

export interface Wanted {
  readonly mode?: 'inspect' | 'import';
  readonly volumeMode?: 'Filesystem' | 'Block';
  readonly capacityBytes?: number;
  readonly checksum?: TransferSpec['checksum'];
  readonly expected?: TransferSpec['expected'];
  readonly retries?: number;
  readonly idleSeconds?: number;
  readonly totalSeconds?: number;
  readonly floor?: TransferSpec['limits']['floor'];
  /** Delay before each retry. */
  readonly waitMs?: number;
  readonly path?: string;
  readonly allowedAddresses?: readonly string[];
  readonly signal?: AbortSignal;
  readonly headerSecrets?: readonly { readonly dir: string; readonly name: string }[];
  /** Called with each report before it counts as sent. */
  readonly onProgress?: (progress: TransferProgress, target: string) => void;
}

export interface Outcome {
  readonly report: TransferReport;
  readonly progress: readonly TransferProgress[];
  readonly target: string;
  readonly log: string;
  readonly leftovers: readonly string[];
}

/** Runs a transfer of the file that `respond` serves, into a separate folder. */
export const transfer = async (respond: (request: OriginRequest) => Answer, wanted: Wanted = {}): Promise<Outcome> => {
  const origin = await startOrigin(respond);
  const own = mkdtempSync(join(root, 'case-'));
  const target = wanted.path ?? join(own, 'disk.img');
  const scratchDir = join(own, 'scratch');
  const spec = TransferSpec.parse({
    mode: wanted.mode ?? 'import',
    source: { type: 'http', url: `${origin.url}/disk?token=s3cret`, headerSecrets: wanted.headerSecrets },
    checksum: wanted.checksum,
    expected: wanted.expected,
    target: {
      path: target,
      volumeMode: wanted.volumeMode ?? 'Filesystem',
      capacityBytes: wanted.capacityBytes ?? 64 * mib,
    },
    scratchDir,
    limits: {
      idleSeconds: wanted.idleSeconds ?? 5,
      floor: wanted.floor,
      totalSeconds: wanted.totalSeconds ?? 60,
      retries: wanted.retries ?? 2,
    },
    allowedAddresses: wanted.allowedAddresses ?? ['127.0.0.0/8'],
  });
  const progress: TransferProgress[] = [];
  const lines: unknown[] = [];
  const report = await runTransfer(spec, {
    run: 'run-1',
    signal: wanted.signal ?? new AbortController().signal,
    send: (entry) => {
      wanted.onProgress?.(entry, target);
      progress.push(entry);
      return Promise.resolve();
    },
    log: (message, facts) => lines.push([message, facts]),
    wait: wanted.waitMs === undefined ? undefined : () => delay(wanted.waitMs),
  });
  await origin.close();
  const left = (directory: string) => (existsSync(directory) ? readdirSync(directory) : []);
  const leftovers = [...left(scratchDir), ...left(own).filter((name) => name !== 'scratch' && name !== 'disk.img')];
  return { report: TransferReport.parse(report), progress, target, log: JSON.stringify(lines), leftovers };
};

export const serve =
  (bytes: Buffer, options: FileOptions = {}) =>
  (request: OriginRequest): Answer =>
    fileAnswer(request, bytes, options);

export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
