// What one pass over a source has at hand, and how it ends. A pass reads from the first byte; a run makes several when the source changes under it.
import type { Meter } from '#shared/transfer/meter.ts';
import type { TransferPlan } from '#shared/transfer/plan.ts';
import type { BackupResult, Inspection, StoredResult } from '#shared/transfer/report.ts';
import type { SavePolicy } from '#shared/transfer/resume/policy.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import type { ByteSource } from '#shared/transfer/source/source.ts';
import type { TransferSpec } from '#shared/transfer/spec.ts';

/** Digests of the published file, taken as its bytes pass. */
export interface Digester {
  /** Hands `input` on and takes the digests of all of it. */
  watch(input: AsyncIterable<Buffer>): AsyncIterable<Buffer>;
  /** Hex digests by algorithm, once the file is over; `undefined` before. */
  digests(): Readonly<Record<string, string>> | undefined;
}

export interface Pass {
  readonly spec: TransferSpec;
  readonly source: ByteSource;
  readonly plan: TransferPlan;
  readonly digester: Digester;
  readonly meter: Meter;
  readonly signal: AbortSignal;
  readonly saving: SavePolicy;
  /** Told from which byte of the file this pass goes on. */
  readonly onResume: (position: number) => void;
}

/** What a pass that ended well found out. */
export interface PassResult {
  readonly inspection: Inspection;
  readonly digests: Readonly<Record<string, string>>;
  readonly writtenBytes: number;
  /** What an export made. */
  readonly object?: StoredResult;
  /** What a backup made. */
  readonly backup?: BackupResult;
}

/** The end of every import: the sender vouches for what was read, and the target counts as complete. */
export const complete = async ({ source }: Pass, sink: Sink, virtualSize: number): Promise<void> => {
  await source.confirm?.();
  await sink.commit(virtualSize);
};
