// Inspects a file on a web server by its start and its tables, for callers that pass its URL to another program.
import type { ServerReach } from '#shared/clients/http/reach.ts';
import { AppError, messageOf } from '#shared/runtime/errors.ts';
import { redact } from '#shared/runtime/redact.ts';
import { planTransfer, rangedReader } from '#shared/transfer/plan.ts';
import { readQcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { checkEnd } from '#shared/transfer/format/qcow2/refcounts.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import { type ClientSpec, openClient, parseUrl } from '#shared/transfer/source/access.ts';
import { createHttpSource } from '#shared/transfer/source/http/read.ts';

export type LookedAtFile =
  | { readonly is: 'found'; readonly inspection: Inspection }
  /** `waiting`: another inspection may succeed; `refused`: none will, until the file or its URL changes. */
  | { readonly is: 'waiting' | 'refused'; readonly reason: string; readonly message: string };

/** Throws only errors that are not caused by the file or its server. */
export type LookAtFile = (url: string, reach?: ServerReach) => Promise<LookedAtFile>;

/** An event function must answer within a minute. */
const mostMs = 20_000;
const idleSeconds = 15;

/** Allowed addresses, proxies and certificates. */
export interface FileLookSettings extends Pick<ClientSpec, 'proxies'> {
  readonly allowedAddresses: readonly string[];
}

/** Settings are read for each inspection. */
export const createFileLook =
  (settings: () => Promise<FileLookSettings>): LookAtFile =>
  async (url, reach) => {
    const signal = AbortSignal.timeout(mostMs);
    try {
      const { allowedAddresses, proxies } = await settings();
      const spec = {
        allowedAddresses: [...allowedAddresses],
        proxies,
        reach,
        limits: { idleSeconds, totalSeconds: 20, retries: 0 },
      };
      return { is: 'found', inspection: await inspect(url, spec, signal) };
    } catch (error) {
      if (signal.aborted)
        return {
          is: 'waiting',
          reason: 'SourceStalled',
          message: `the server did not send the beginning of the file within ${mostMs / 1000} seconds`,
        };
      if (!(error instanceof AppError)) throw error;
      const is = error.retryable ? 'waiting' : 'refused';
      return { is, reason: error.code, message: redact(messageOf(error)) };
    }
  };

const inspect = async (url: string, spec: ClientSpec, signal: AbortSignal): Promise<Inspection> => {
  const client = openClient(spec, undefined);
  const source = createHttpSource({
    client,
    url: parseUrl(url),
    secretHeaders: {},
    retries: 0,
    signal,
    onRetry: () => {},
  });
  try {
    const { inspection, facts } = await planTransfer(source);
    if (inspection.format === 'qcow2' && inspection.compression === 'none' && (facts.hasRanges || facts.isWhole)) {
      const reader = rangedReader(source, facts);
      await checkEnd(await readQcow2Header(reader), reader);
    }
    return inspection;
  } finally {
    await source.close();
  }
};
