// Sends progress as CloudEvents: one at a time, the newest first, and never longer than the transfer can bear.
import { buildTransferProgressed } from '#events/build.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { wordsOf } from '#events/sender.ts';
import { createSender } from '#events/send.ts';
import type { Send } from '#events/sender.ts';
import { signEvent } from '#events/signature.ts';
import { subjectOf } from '#events/build.ts';
import type { TransferJobConfig } from '#functions/transfer-job/config.ts';
import type { TransferProgress } from '#shared/transfer/progress.ts';

/** A sink that does not answer in this time is passed over. Bounds what the inspection's report may cost. */
const waitMs = 2000;

export interface Reporter {
  /** Settled once this report was delivered, given up, or overtaken by a newer one. Never throws. */
  send(progress: TransferProgress): Promise<void>;
  /** Waits for what is under way, unless the sink did not answer last time. */
  close(): Promise<void>;
}

export interface ReporterOptions {
  readonly owner: TransferJobConfig['owner'];
  readonly send: Send;
  /** PEM; left out: reports are not signed, and functions believe none of them. */
  readonly key?: string | undefined;
  /** Told of reports that did not arrive. */
  readonly onLoss: (reason: string) => void;
}

/** One try for each report: the next report is two seconds away and says more. */
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
    // A report that was overtaken while it waited has nothing left to say, unless somebody waits for the inspection in it.
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
