// An import as its Job runs it, in a process of its own, and the memory that the process and its programs had.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseQuantity } from '#shared/api/quantity.ts';
import { defaultSettings } from '#shared/populate/settings.ts';
import { parseReport } from '#shared/transfer/report.ts';
import type { TransferSource, TransferTarget } from '#shared/transfer/spec.ts';
import { transferJobProgram } from '#test/support/bundles.ts';

/** Bytes a pod may have. It counts the pages of files, too, but those it can drop. */
export const podBytes = parseQuantity(defaultSettings.transferResources.limits?.['memory']) ?? 0;

/** The process and all below it. */
const familyOf = (pid: number): readonly number[] => {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
    return [pid, ...children.flatMap((child) => familyOf(Number(child)))];
  } catch {
    return [];
  }
};

/** Bytes of memory of its own that a process has now. */
const memoryOf = (pid: number): number => {
  try {
    const counts = readFileSync(`/proc/${pid}/status`, 'utf8').matchAll(/Rss(?:Anon|Shmem):\s+(\d+)/g);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0) * 1024;
  } catch {
    return 0;
  }
};

export interface JobRun {
  /** Bytes that the Job and its programs had together, at most. */
  readonly peak: number;
  /** `succeeded`, or the message of the failure. */
  readonly outcome: string;
  /** Path of what it wrote. */
  readonly target: string;
}

/** `folder`: for its files. */
export const runImport = async (
  folder: string,
  source: TransferSource,
  over: Pick<TransferTarget, 'capacityBytes' | 'content'>,
): Promise<JobRun> => {
  const own = mkdtempSync(join(folder, 'job-'));
  const [target, terminationLog] = [join(own, 'disk.img'), join(own, 'report')];
  if (over.content === 'archive') mkdirSync(target);
  const spec = {
    mode: 'import',
    source,
    target: { path: target, volumeMode: 'Filesystem', ...over },
    scratchDir: join(own, 'scratch'),
    limits: { idleSeconds: 120, retries: 0 },
    allowedAddresses: ['127.0.0.0/8'],
  };
  const owner = { apiVersion: 'v1', kind: 'X', namespace: 'ns', name: 'x', uid: 'uid-1' };
  const child = spawn(process.execPath, [transferJobProgram], {
    stdio: 'ignore',
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      BULLION_TRANSFER: JSON.stringify(spec),
      BULLION_OWNER: JSON.stringify(owner),
      POD_NAME: 'import-uid-1',
      BULLION_TERMINATION_LOG: terminationLog,
    },
  });
  let peak = 0;
  const look = (): void => {
    const now = familyOf(child.pid ?? 0).reduce((sum, pid) => sum + memoryOf(pid), 0);
    peak = Math.max(peak, now);
  };
  const watching = setInterval(look, 5);
  await once(child, 'exit');
  clearInterval(watching);
  const report = parseReport(readFileSync(terminationLog, 'utf8'));
  return { peak, outcome: report?.outcome === 'failed' ? report.message : (report?.outcome ?? 'none'), target };
};
