import { describe, expect, it } from 'vitest';
import { contentName, contentOf, type Wanted } from './read.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const hex = 'b'.repeat(64);
const wanted = (from: object, over: object = {}) => ({ from, ...over }) as unknown as Wanted;
const checksum = { algorithm: 'sha256', hex };

describe('the content of a volume', () => {
  it.each<[string, Wanted, string | undefined]>([
    ['a pinned image', wanted({ type: 'registry', url: `docker://r.example/disk@${digest}` }), `registry ${digest} `],
    ['the same elsewhere', wanted({ type: 'registry', url: `docker://other/x:9@${digest}` }), `registry ${digest} `],
    [
      'for an architecture',
      wanted({ type: 'registry', url: `docker://r.example/disk@${digest}`, architecture: 'arm64' }),
      `registry ${digest} arm64`,
    ],
    ['a tag', wanted({ type: 'registry', url: 'docker://r.example/disk:1' }), undefined],
    ['a file', wanted({ type: 'http', url: 'https://x/y' }), undefined],
    ['a file with its checksum', wanted({ type: 'http', url: 'https://x/y' }, { checksum }), `file sha256:${hex}`],
    [
      'an object with its checksum',
      wanted({ type: 'object', bucket: 'b', key: 'k' }, { checksum }),
      `file sha256:${hex}`,
    ],
    [
      'a weak checksum',
      wanted({ type: 'http', url: 'https://x/y' }, { checksum: { algorithm: 'md5', hex } }),
      undefined,
    ],
    ['what people send, with its checksum', wanted({ type: 'upload' }, { checksum }), undefined],
    ['nothing', wanted({ type: 'blank' }), undefined],
    ['no source', { from: undefined }, undefined],
  ])('%s', (_what, volume, content) => {
    expect(contentOf(volume)).toBe(content);
  });

  const shown = (over: object, url = 'https://x/y') => contentOf(wanted({ type: 'http', url, ...over }, { checksum }));
  const identity = { cloud: 'azure', tenant: 't', client: 'c' };
  const credentials: readonly (readonly [string, string | undefined])[] = [
    ['a Secret', shown({ secretName: 'a' })],
    ['another Secret', shown({ secretName: 'b' })],
    ['an identity', shown({ identity })],
    ['that of another account', shown({ identity, account: 'builder' })],
    ['another identity', shown({ identity: { ...identity, client: 'd' } })],
    ['headers', shown({ headers: ['X-Token: a'] })],
    ['headers of a Secret', shown({ headerSecrets: ['a'] })],
    ['user information', shown({}, 'https://user:a@x/y')],
    ['a signature', shown({}, 'https://x/y?sv=1&sig=a')],
    ['another signature', shown({}, 'https://x/y?sv=1&sig=b')],
    [
      'the Secret of a registry',
      contentOf(wanted({ type: 'registry', url: `docker://r/d@${digest}`, secretName: 'a' })),
    ],
  ];

  it('is another one for each credential that was shown for it', () => {
    const contents = credentials.map(([, content]) => content);
    expect(contents.every((content) => / with [0-9a-f]{16}$/.test(content ?? ''))).toBe(true);
    expect(new Set(contents).size).toBe(credentials.length);
  });

  it.each([
    ['certificate authorities', shown({ bundleName: 'a' })],
    ['a query without a signature', shown({}, 'https://x/y?mirror')],
  ])('is the same with %s', (_, content) => {
    expect(content).toBe(`file sha256:${hex}`);
  });

  it('is the same for the same credentials, wherever the file is', () => {
    expect(shown({ secretName: 'a' }, 'https://mirror/z')).toBe(shown({ secretName: 'a' }));
  });

  it('has one name in each class', () => {
    expect(contentName('x', 'fast')).not.toBe(contentName('x', 'slow'));
    expect(contentName('x', 'fast')).toMatch(/^content-[0-9a-f]{40}$/);
  });
});
