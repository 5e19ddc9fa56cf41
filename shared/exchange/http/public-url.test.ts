import { describe, expect, it } from 'vitest';
import { prefixOf, publicUrlOf } from '#shared/exchange/http/public-url.ts';

const asked = (headers: Record<string, string>) => new Request('http://10.0.0.7:8080/files/x', { headers });

describe('the public URL of the transfer function', () => {
  it.each<[headers: Record<string, string>, publicUrl: string | undefined, found: string]>([
    [{}, undefined, 'http://10.0.0.7:8080'],
    [{ 'x-forwarded-proto': 'https' }, undefined, 'https://10.0.0.7:8080'],
    [{ 'x-forwarded-proto': 'https', 'x-forwarded-host': 'images.example' }, undefined, 'https://images.example'],
    [{ 'x-forwarded-host': 'a.example:8443, b.example' }, undefined, 'http://a.example:8443'],
    [
      { 'x-forwarded-host': '[2001:db8::1]:80', 'x-forwarded-prefix': '/up/v1' },
      undefined,
      'http://[2001:db8::1]:80/up/v1',
    ],
    [{ 'x-forwarded-host': 'a.example/evil', 'x-forwarded-proto': 'javascript' }, undefined, 'http://10.0.0.7:8080'],
    [{ 'x-forwarded-prefix': '//evil.example' }, undefined, 'http://10.0.0.7:8080'],
    [{ 'x-forwarded-prefix': '/a/../b' }, undefined, 'http://10.0.0.7:8080'],
    [{ 'x-forwarded-host': 'a.example' }, 'https://images.example/bullion/', 'https://images.example/bullion'],
  ])('with the headers %j, configured as %s', (headers, publicUrl, found) => {
    expect(publicUrlOf(asked(headers), publicUrl)).toBe(found);
  });

  it.each([
    [undefined, ''],
    ['https://images.example', ''],
    ['https://images.example/bullion/', '/bullion'],
  ])('with the URL %s has the path prefix "%s"', (publicUrl, prefix) => expect(prefixOf(publicUrl)).toBe(prefix));
});
