// The certificate of an HTTPS server, read from mounted files or from memory, and reloaded when it changes. Called by serve.ts.
import { readFileSync } from 'node:fs';
import type { Server } from 'node:https';
import type { Logger } from '#shared/runtime/log.ts';
import { X509Certificate } from 'node:crypto';

/** Kubernetes replaces mounted certificates long before they expire, so one check per minute is enough. */
const certificateCheckMs = 60_000;

export interface TlsFiles {
  /** PEM files. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Milliseconds between two checks of the files. */
  readonly checkMs?: number;
}

/** PEM texts. */
export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

/** A certificate that no file holds. */
export interface TlsSource {
  /** For the log. */
  readonly name: string;
  /** The current one. */
  readonly pair: () => TlsPair;
  readonly checkMs?: number;
}

/** Throws when a file cannot be read. */
export const readCertificate = (tls: TlsFiles | TlsSource): TlsPair =>
  'pair' in tls ? tls.pair() : { cert: readFileSync(tls.certFile, 'utf8'), key: readFileSync(tls.keyFile, 'utf8') };

/** A certificate that does not match its key, as in the middle of a replacement, is ignored: the old pair stays in use. */
export const reloadCertificate = (
  server: Server,
  tls: TlsFiles | TlsSource,
  log: Logger,
  clientCa?: string,
): (() => void) => {
  const file = 'pair' in tls ? tls.name : tls.certFile;
  let current = JSON.stringify(readCertificate(tls));
  const timer = setInterval(() => {
    try {
      const pair = readCertificate(tls);
      const next = JSON.stringify(pair);
      if (next === current) return;
      server.setSecureContext({ ...pair, ...(clientCa === undefined ? {} : { ca: clientCa }) });
      current = next;
      log.info('certificate replaced', { file });
    } catch (error) {
      log.error('certificate not replaced', { file, error });
    }
  }, tls.checkMs ?? certificateCheckMs);
  timer.unref();
  return () => clearInterval(timer);
};

/** Whether a text has a certificate in PEM form. */
export const isCertificate = (pem: string): boolean => {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
};
