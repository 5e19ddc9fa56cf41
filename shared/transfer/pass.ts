// Context and result of one pass over a source. A pass reads from the first byte; a run makes several if the source changes meanwhile.
import type { Meter } from '#shared/transfer/meter.ts';
import type { TransferPlan } from '#shared/transfer/plan.ts';
import type { BackupResult, Inspection, StoredResult } from '#shared/transfer/report.ts';
import type { SavePolicy } from '#shared/transfer/resume/policy.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import type { ByteSource } from '#shared/transfer/source/source.ts';
import type { TransferSpec } from '#shared/transfer/spec.ts';

/** Digests of the published file, computed as its bytes are read. */
export interface Digester {
  /** Returns `input` and computes the digests of all of it. */
  watch(input: AsyncIterable<Buffer>): AsyncIterable<Buffer>;
  /** Hex digests by algorithm, after the end of the file; `undefined` before. */
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
  /** Called with the byte of the file at which this pass resumes. */
  readonly onResume: (position: number) => void;
}

/** The result of a successful pass. */
export interface PassResult {
  readonly inspection: Inspection;
  readonly digests: Readonly<Record<string, string>>;
  readonly writtenBytes: number;
  /** The exported object. */
  readonly object?: StoredResult;
  readonly backup?: BackupResult;
}

/** The end of every import: the sender confirms the bytes, and the target is complete. */
export const complete = async ({ source }: Pass, sink: Sink, virtualSize: number): Promise<void> => {
  await source.confirm?.();
  await sink.commit(virtualSize);
};
