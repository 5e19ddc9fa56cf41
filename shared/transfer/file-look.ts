// What a file on a web server is, from its beginning and its tables: for whoever gives its address to another program that fetches it.
import { AppError, messageOf } from '#shared/runtime/errors.ts';
import { redact } from '#shared/runtime/redact.ts';
import { planTransfer, rangedReader } from '#shared/transfer/plan.ts';
import { readQcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { checkEnd } from '#shared/transfer/format/qcow2/refcounts.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import { type ClientSpec, openClient, parseUrl } from '#shared/transfer/source/client.ts';
import { createHttpSource } from '#shared/transfer/source/http/read.ts';

export type LookedAtFile =
  | { readonly is: 'found'; readonly inspection: Inspection }
  /** `waiting`: another look may succeed; `refused`: none will, until the file or its address changes. */
  | { readonly is: 'waiting' | 'refused'; readonly reason: string; readonly message: string };

/** Throws only what is no fault of the file or its server. */
export type LookAtFile = (url: string) => Promise<LookedAtFile>;

/** An event function answers within a minute. */
const mostMs = 20_000;
const idleSeconds = 15;

/** Where files may lie, how they are reached, and whom they are trusted by. */
export interface FileLookSettings extends Pick<ClientSpec, 'proxies'> {
  readonly allowedAddresses: readonly string[];
}

/** Settings are asked for at each look. */
export const createFileLook =
  (settings: () => Promise<FileLookSettings>): LookAtFile =>
  async (url) => {
    const signal = AbortSignal.timeout(mostMs);
    try {
      const { allowedAddresses, proxies } = await settings();
      const spec = {
        allowedAddresses: [...allowedAddresses],
        proxies,
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
