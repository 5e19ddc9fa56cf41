// Creates the sink for a target.
import { createBlockSink } from '#shared/transfer/sink/block.ts';
import { createFileSink } from '#shared/transfer/sink/file.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import type { TransferTarget } from '#shared/transfer/spec.ts';

/** Nothing is changed before the sink's `prepare`. Throws TransferError if the device does not exist. */
export const openSink = async (target: TransferTarget, signal: AbortSignal): Promise<Sink> =>
  target.volumeMode === 'Block' ? createBlockSink(target, signal) : createFileSink(target, signal);
