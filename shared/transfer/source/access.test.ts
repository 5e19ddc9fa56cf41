// The credentials for a source: the keys of Secrets that users have, and the errors when one is missing or invalid.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readBundle, readHeaders } from '#shared/transfer/source/access.ts';
import type { HttpSource } from '#shared/transfer/spec.ts';

const root = mkdtempSync(join(tmpdir(), 'bullion-access-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const mounted = (name: string, keys: Record<string, string>) => {
  const dir = mkdtempSync(join(root, `${name}-`));
  mkdirSync(join(dir, '..data'));
  for (const [key, value] of Object.entries(keys)) writeFileSync(join(dir, key), value);
  return { dir, name };
};
const secret = (keys: Record<string, string>) => {
  const { dir, name } = mounted('login', keys);
  return { secretDir: dir, secretName: name };
};
const http = (over: Partial<HttpSource>): HttpSource => ({ type: 'http', url: 'https://images.example/a', ...over });
const basic = (pair: string) => `Basic ${Buffer.from(pair).toString('base64')}`;

describe('headers of a web source', () => {
  it.each<[what: string, source: Partial<HttpSource>, headers: Record<string, string>]>([
    ['nothing', {}, {}],
    ['the keys of the original', secret({ accessKeyId: 'ann', secretKey: 'pw\n' }), { authorization: basic('ann:pw') }],
    ['basic-auth', secret({ username: 'ann', password: 'p:w' }), { authorization: basic('ann:p:w') }],
    ['headers written out', { secretHeaders: ['X-A: 1', 'x-b:  two words '] }, { 'x-a': '1', 'x-b': 'two words' }],
    [
      'headers in Secrets',
      { headerSecrets: [mounted('a', { one: 'X-A: 1\n', two: 'X-B: 2' })] },
      { 'x-a': '1', 'x-b': '2' },
    ],
    [
      'an Authorization of its own',
      { ...secret({ accessKeyId: 'ann', secretKey: 'pw' }), secretHeaders: ['Authorization: Bearer t'] },
      { authorization: 'Bearer t' },
    ],
  ])('are those of %s', async (_what, source, headers) => {
    expect(await readHeaders(http(source))).toEqual(headers);
  });

  it.each<[what: string, source: Partial<HttpSource>, fault: object, never?: string]>([
    [
      'a Secret that is missing',
      secret({}),
      {
        code: 'SourceForbidden',
        retryable: true,
        message: expect.stringMatching(/Secret login of the source is missing.*accessKeyId/),
      },
    ],
    [
      'a Secret of other keys',
      secret({ token: 's3cret' }),
      { code: 'InvalidSpec', retryable: false, message: expect.stringContaining('login needs') },
      's3cret',
    ],
    [
      'a header without a name',
      { secretHeaders: ['s3cret'] },
      { code: 'InvalidSpec', message: expect.stringContaining('extra header 1') },
      's3cret',
    ],
    [
      'two headers in one key',
      { headerSecrets: [mounted('b', { one: 'X-A: 1\nX-B: s3cret' })] },
      { code: 'InvalidSpec', message: expect.stringContaining('key one of the Secret b') },
      's3cret',
    ],
  ])('reject %s', async (_what, source, fault, never = 'no such word') => {
    const error: unknown = await readHeaders(http(source)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject(fault);
    expect(String(error)).not.toContain(never);
  });
});

describe('trusted certificates', () => {
  it('are the defaults when none are named', async () => {
    expect(await readBundle(undefined)).toBeUndefined();
  });

  it.each([
    [
      'is missing',
      {},
      { code: 'SourceForbidden', retryable: true, message: expect.stringContaining('corporate is missing') },
    ],
    [
      'holds none',
      { 'ca.crt': 'hello' },
      { code: 'InvalidSpec', message: expect.stringContaining('corporate contains no certificate') },
    ],
  ])('are rejected by name when the ConfigMap %s', async (_what, keys, fault) => {
    await expect(readBundle(mounted('corporate', keys))).rejects.toMatchObject(fault);
  });
});
