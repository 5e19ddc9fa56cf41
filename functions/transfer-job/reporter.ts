// Sends progress as CloudEvents: one at a time, the latest first, without delaying the transfer.
import { buildTransferProgressed } from '#events/build.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { wordsOf } from '#events/sender.ts';
import { createSender } from '#events/send.ts';
import type { Send } from '#events/sender.ts';
import { signEvent } from '#events/signature.ts';
import { subjectOf } from '#events/build.ts';
import type { TransferJobConfig } from '#functions/transfer-job/config.ts';
import type { TransferProgress } from '#shared/transfer/report.ts';

/** Timeout of the sink in milliseconds. Limits the time for the report with the inspection. */
const waitMs = 2000;

export interface Reporter {
  /** Resolves once this report was delivered, dropped, or superseded by a newer one. Never throws. */
  send(progress: TransferProgress): Promise<void>;
  /** Waits for a report in progress, unless the sink did not answer the previous one. */
  close(): Promise<void>;
}

export interface ReporterOptions {
  readonly owner: TransferJobConfig['owner'];
  readonly send: Send;
  /** PEM. Default: reports are not signed, and functions reject them. */
  readonly key?: string | undefined;
  /** Called for reports that were not delivered. */
  readonly onLoss: (reason: string) => void;
}

/** One try per report: the next report follows in two seconds with newer data. */
export const createProgressSender = (sink: string, tokenFile?: string): Send =>
  createSender({
    sink,
    tokenFile,
    timeoutMs: waitMs,
    policy: { retries: 0, delayMs: () => 0, isRetried: () => false },
  });

export const createReporter = ({ owner, send, key, onLoss }: ReporterOptions): Reporter => {
  let underWay: Promise<void> = Promise.resolve();
  let newest = -1;
  let isInspectionSent = false;
  let isDeaf = false;
  const deliver = async (progress: TransferProgress): Promise<void> => {
    // A report that was superseded while it waited is dropped, unless it contains the awaited inspection.
    const isAwaited = progress.inspection !== undefined && !isInspectionSent;
    if (progress.sequence < newest && !isAwaited) return;
    isInspectionSent ||= isAwaited;
    const event = buildTransferProgressed({ owner, progress }, { source: subjectOf(owner) });
    const { isDelivered, last } = await send(key === undefined ? event : signEvent(event, key));
    isDeaf = !isDelivered;
    if (isDeaf) onLoss(wordsOf(last));
  };
  return {
    send: (progress) => {
      newest = progress.sequence;
      underWay = underWay.then(() => deliver(progress));
      return Promise.race([underWay, delay(waitMs, undefined, { ref: false })]);
    },
    close: () => (isDeaf ? Promise.resolve() : underWay),
  };
};
