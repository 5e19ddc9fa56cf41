// A transfer from a registry on this machine into a file, with a spec for transfer-job.
import { dirname, join } from 'node:path';
import type { TransferReport } from '#shared/transfer/report.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';

export interface TransferOptions {
  readonly architecture?: string;
  readonly secretDir?: string;
  readonly retries?: number;
  readonly capacityBytes?: number;
  readonly floor?: TransferSpec['limits']['floor'];
}

export const transferSpec = (url: string, path: string, options: TransferOptions = {}): TransferSpec => {
  const { retries = 2, capacityBytes = 64 * 1024 * 1024, floor, ...source } = options;
  return TransferSpec.parse({
    mode: 'import',
    source: { type: 'registry', url, plainHttp: true, ...source },
    target: { path, volumeMode: 'Filesystem', capacityBytes },
    scratchDir: join(dirname(path), 'scratch'),
    limits: { retries, idleSeconds: 20, floor },
    allowedAddresses: ['127.0.0.0/8'],
  });
};

export const isSuccess = (report: TransferReport): boolean => report.outcome === 'succeeded';
