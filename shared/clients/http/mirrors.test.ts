import { describe, expect, it } from 'vitest';
import { mirrorsOf, objectUrl, readMirrors } from '#shared/clients/http/mirrors.ts';

const mirrors = readMirrors({
  source: [
    { prefix: 'https://images.example/', mirror: [{ location: 'https://near.example/copies/' }] },
    {
      prefix: 'https://images.example/debian',
      mirror: [{ location: 'http://10.0.0.1:8080' }, { location: 'https://near.example/debian' }],
    },
    { prefix: 'https://store.example/golden/', mirror: [{ location: 'https://near.example/store' }] },
  ],
});
const at = (url: string): readonly string[] => mirrorsOf(new URL(url), { mirrors });

describe('the mirrors of a URL', () => {
  it.each<[string, string, readonly string[]]>([
    ['below a prefix', 'https://images.example/fedora/disk.qcow2', ['https://near.example/copies/fedora/disk.qcow2']],
    [
      'below two: those of the longer one, in order',
      'https://images.example/debian/disk.qcow2',
      ['http://10.0.0.1:8080/disk.qcow2', 'https://near.example/debian/disk.qcow2'],
    ],
    ['whose path only starts alike', 'https://images.example/debian-12', ['https://near.example/copies/debian-12']],
    ['of another host', 'https://images.example.net/debian/x', []],
    ['of another port', 'https://images.example:8443/debian/x', []],
    ['of another scheme', 'http://images.example/debian/x', []],
    ['with a query, which may be a signature', 'https://images.example/debian/x?sig=secret', []],
    [
      'with credentials, which stay behind',
      'https://user:secret@images.example/fedora/x',
      ['https://near.example/copies/fedora/x'],
    ],
    ['that leaves the prefix by dots', 'https://images.example/debian/../x', ['https://near.example/copies/x']],
    [
      'of an object',
      objectUrl({ endpoint: 'https://store.example/', bucket: 'golden', key: 'a b/c.img' }).href,
      ['https://near.example/store/a%20b/c.img'],
    ],
  ])('%s', (_, url, expected) => expect(at(url)).toEqual(expected));

  it('cannot be told while the list cannot be read', () => {
    expect(() => mirrorsOf(new URL('https://x.example/y'), { mirrorFault: 'mirrors.toml is not valid' })).toThrow(
      'mirrors.toml is not valid',
    );
  });
});

describe('a list of mirrors', () => {
  const mirror = [{ location: 'https://m.example' }];
  it.each<[string, object, string]>([
    ['with a prefix that is no URL', { source: [{ prefix: 'images.example', mirror }] }, 'source.0.prefix: must be an'],
    [
      'with credentials',
      { source: [{ prefix: 'https://x.example', mirror: [{ location: 'https://me:pw@m.example' }] }] },
      'source.0.mirror.0.location: must be an http or https URL without credentials',
    ],
    ['with a query', { source: [{ prefix: 'https://x.example/?a', mirror }] }, 'source.0.prefix'],
    ['with an unknown key', { source: [{ prefix: 'https://x.example', mirrors: mirror }] }, 'source.0'],
    ['of another format', { registry: [] }, 'registry'],
    ['with no mirror', { source: [{ prefix: 'https://x.example', mirror: [] }] }, 'source.0.mirror'],
  ])('%s is refused, and says where', (_, tables, message) => expect(() => readMirrors(tables)).toThrow(message));

  it('may be empty', () => expect(readMirrors({})).toEqual([]));
});
