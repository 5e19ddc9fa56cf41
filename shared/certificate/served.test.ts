// The certificate that is served, as the Secret appears and changes.
import { describe, expect, it, vi } from 'vitest';
import { secrets } from '#shared/api/foreign/core.ts';
import { admissionCertificate, systemNamespace } from '#shared/api/names.ts';
import { serveCertificate } from '#shared/certificate/served.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const key = { namespace: systemNamespace, name: admissionCertificate.serverSecret };
const inBase64 = (text: string): string => Buffer.from(text).toString('base64');
const aSecret = (cert: string) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: key,
  data: { 'tls.crt': inBase64(cert), 'tls.key': inBase64('key') },
});

describe('the certificate of admission', () => {
  it('is a placeholder until the Secret is there, and that of the Secret afterwards', async () => {
    vi.useFakeTimers();
    try {
      const kube = createMemoryKube();
      const served = serveCertificate(kube, silentLogger);
      await vi.advanceTimersByTimeAsync(3_000);
      expect(served.pair().cert).toContain('BEGIN CERTIFICATE');
      expect(served.isServed()).toBe(false);
      kube.seed(secrets, aSecret('first'));
      await vi.advanceTimersByTimeAsync(1_000);
      // Not before the server has taken it.
      expect(served.isServed()).toBe(false);
      expect([served.pair(), served.isServed()]).toEqual([{ cert: 'first', key: 'key' }, true]);
      kube.edit(secrets, key, (secret) => Object.assign(secret, { data: aSecret('second').data }));
      await vi.advanceTimersByTimeAsync(60_000);
      expect(served.pair().cert).toBe('second');
      served.stop();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('stays when the Secret is gone or cannot be read', async () => {
    vi.useFakeTimers();
    try {
      const kube = createMemoryKube();
      kube.seed(secrets, aSecret('first'));
      const answers = { fails: false };
      const get = ((...given: Parameters<typeof kube.get>) =>
        answers.fails ? Promise.reject(new Error('down')) : kube.get(...given)) as typeof kube.get;
      const served = serveCertificate({ get }, silentLogger);
      await vi.advanceTimersByTimeAsync(0);
      await kube.delete(secrets, key);
      await vi.advanceTimersByTimeAsync(60_000);
      answers.fails = true;
      await vi.advanceTimersByTimeAsync(120_000);
      expect(served.pair().cert).toBe('first');
      served.stop();
    } finally {
      vi.useRealTimers();
    }
  });
});
