import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { redact, redactData, redactUrl, redacted } from '#shared/runtime/redact.ts';

describe('redactUrl', () => {
  it.each([
    ['https://user:pw@host/a/b.img?X-Amz-Signature=abc#frag', 'https://host/a/b.img'],
    ['http://host:8080/a b', 'http://host:8080/a b'],
    ['docker://registry/x@sha256:abc', 'docker://registry/x@sha256:abc'],
    ['https://user:p/w@host/x', 'https://host/x'],
    ['https://user:p?w@host/x', 'https://host/x'],
    ['s3://key@bucket/object', 's3://bucket/object'],
    ['not a url', 'not a url'],
    ['', ''],
  ])('shows %s as %s', (url, shown) => {
    expect(redactUrl(url)).toBe(shown);
  });

  it('never shows user info or query of any valid URL', () => {
    fc.assert(
      fc.property(fc.webUrl({ withQueryParameters: true, withFragments: true }), fc.uuid(), (url, secret) => {
        const withSecret = new URL(url);
        withSecret.username = 'u';
        withSecret.password = secret;
        withSecret.searchParams.set('t', secret);
        expect(redactUrl(withSecret.href)).not.toContain(secret);
        expect(redact(`GET ${withSecret.href} failed`)).not.toContain(secret);
      }),
    );
  });
});

describe('redact', () => {
  it.each([
    ['GET https://u:p@h/x?y=z failed', 'GET https://h/x failed'],
    ['authorization: Bearer eyJhbGciOi.abc', `authorization: Bearer ${redacted}`],
    ['invalid: eyJhbGciOiJS.eyJpc3MiOiJh.c2ln (assertion)', `invalid: ${redacted} (assertion)`],
    ['password=hunter2 and more', `password=${redacted} and more`],
    ['{"secretKey": "s", "client_secret":"abcdef"}', `{"secretKey": "s", "client_secret":"${redacted}"}`],
    ['-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----', redacted],
    ['image default/vmi-1 is ready', 'image default/vmi-1 is ready'],
  ])('redacts %j to %j', (text, shown) => {
    expect(redact(text)).toBe(shown);
  });

  it('takes time linear in the length of the text', () => {
    const started = performance.now();
    redact('a'.repeat(200_000));
    redact('a.'.repeat(100_000));
    redact('-----BEGIN PRIVATE KEY-----'.repeat(5_000));
    redact('password '.repeat(20_000));
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});

describe('redactData', () => {
  it('redacts values by key, Secret objects by kind and texts by content', () => {
    const shown = redactData({
      token: 'abc',
      secretRef: 'creds',
      secretName: 'creds',
      accessKeyId: 'AKIA',
      headers: { Authorization: 'Bearer x', cookie: ['a'] },
      secret: { kind: 'Secret', data: { a: 'YQ==' }, stringData: { b: 'c' }, metadata: { name: 'creds' } },
      url: 'https://u:p@h/x?y',
      bytes: new Uint8Array(3),
    });
    expect(shown).toEqual({
      token: redacted,
      secretRef: 'creds',
      secretName: 'creds',
      accessKeyId: 'AKIA',
      headers: { Authorization: redacted, cookie: redacted },
      secret: { kind: 'Secret', data: redacted, stringData: redacted, metadata: { name: 'creds' } },
      url: 'https://h/x',
      bytes: '[3 bytes]',
    });
  });

  it('keeps the message, code and cause of an error and handles cycles', () => {
    const error = new Error('GET https://u:p@h/ failed', { cause: new Error('password=hunter2') });
    expect(redactData(error)).toEqual({
      name: 'Error',
      message: 'GET https://h/ failed',
      cause: { name: 'Error', message: `password=${redacted}` },
    });
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    expect(JSON.stringify(redactData(cycle))).toContain('[deep]');
  });
});
