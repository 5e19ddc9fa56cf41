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

  it('has one name in each class', () => {
    expect(contentName('x', 'fast')).not.toBe(contentName('x', 'slow'));
    expect(contentName('x', 'fast')).toMatch(/^content-[0-9a-f]{40}$/);
  });
});
