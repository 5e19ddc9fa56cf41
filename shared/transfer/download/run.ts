// Runs a download transfer: serves the volume until there were no requests for a while. Loaded by run.ts on demand.
import { setTimeout as sleep } from 'node:timers/promises';
import { type DownloadServer, startDownloadServer } from '#shared/transfer/download/server.ts';
import { createShelf } from '#shared/transfer/download/shelf.ts';
import { lookAtVolume } from '#shared/transfer/export/volume.ts';
import { TransferError } from '#shared/transfer/fault.ts';
import type { Meter } from '#shared/transfer/meter.ts';
import type { PassResult } from '#shared/transfer/pass.ts';
import type { TransferSpec } from '#shared/transfer/spec.ts';
import { createTokenChecker } from '#shared/transfer/upload/keys.ts';

export interface ServeContext {
  /** Address to listen on. */
  readonly host: string;
  readonly signal: AbortSignal;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
  readonly meter: Meter;
}

/** Milliseconds between two checks for requests. */
const pollMs = 1_000;

const untilIdle = async (server: DownloadServer, idleMs: number, signal: AbortSignal): Promise<void> => {
  let [quietSince, observed] = [performance.now(), 0];
  for (;;) {
    await sleep(Math.min(pollMs, idleMs), undefined, { signal });
    if (server.active() > 0 || server.count() !== observed) quietSince = performance.now();
    observed = server.count();
    if (performance.now() - quietSince >= idleMs) return;
  }
};

/** Throws TransferError, or the reason of the signal. */
export const runServe = async (spec: TransferSpec, context: ServeContext): Promise<PassResult> => {
  const { source, serve } = spec;
  if (serve === undefined || source.type !== 'volume')
    throw new TransferError('InvalidSpec', 'mode serve needs `serve`, and a source that is a volume');
  const { host, signal, log, meter } = context;
  const { path } = source;
  const { size } = await lookAtVolume(path, 64 * 1024, signal);
  const shelf = createShelf({ path, identity: serve.identity, signal });
  const { port, subject, idleSeconds, keysUrl } = serve;
  const server = await startDownloadServer({
    shelf,
    host,
    port,
    subject,
    log,
    checker: createTokenChecker(keysUrl),
  });
  log('waiting for downloads', { port: server.port });
  meter.note('serving the volume');
  try {
    await untilIdle(server, idleSeconds * 1000, signal);
  } finally {
    await server.close();
    await shelf.close();
  }
  return { inspection: { format: 'raw', compression: 'none', virtualSize: size }, digests: {}, writtenBytes: 0 };
};
