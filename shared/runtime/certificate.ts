// The certificate of an HTTPS server, read from mounted files and reloaded when they change. Called by serve.ts.
import { readFileSync } from 'node:fs';
import type { Server } from 'node:https';
import type { Logger } from '#shared/runtime/log.ts';

/** Kubernetes replaces mounted certificates long before they expire, so one check per minute is enough. */
const certificateCheckMs = 60_000;

export interface TlsFiles {
  /** PEM files. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Milliseconds between two checks of the files. */
  readonly checkMs?: number;
}

/** Throws when a file cannot be read. */
export const readCertificate = ({ certFile, keyFile }: TlsFiles) => ({
  cert: readFileSync(certFile, 'utf8'),
  key: readFileSync(keyFile, 'utf8'),
});

/** A certificate that does not match its key, as in the middle of a replacement, is ignored: the old pair stays in use. */
export const reloadCertificate = (server: Server, tls: TlsFiles, log: Logger, clientCa?: string): (() => void) => {
  let current = JSON.stringify(readCertificate(tls));
  const timer = setInterval(() => {
    try {
      const pair = readCertificate(tls);
      const next = JSON.stringify(pair);
      if (next === current) return;
      server.setSecureContext({ ...pair, ...(clientCa === undefined ? {} : { ca: clientCa }) });
      current = next;
      log.info('certificate replaced', { file: tls.certFile });
    } catch (error) {
      log.error('certificate not replaced', { file: tls.certFile, error });
    }
  }, tls.checkMs ?? certificateCheckMs);
  timer.unref();
  return () => clearInterval(timer);
};
