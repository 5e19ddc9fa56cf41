import { describe, expect, it } from 'vitest';
import type { CronSourceSpec, DataImportCronSpec } from '#shared/api/cdi/data-import-cron.ts';
import { findChecksum } from '#shared/golden/checksums.ts';
import { readCronSource, sourceName } from '#shared/golden/source.ts';

const released = (source: CronSourceSpec): DataImportCronSpec => ({
  schedule: '@daily',
  managedDataSource: 'd',
  template: { spec: { source } },
});
const short = (source: CronSourceSpec): DataImportCronSpec => ({ schedule: '@daily', managedDataSource: 'd', source });
const url = 'docker://quay.io/containerdisks/fedora';

describe('the source of a cron', () => {
  it('is read from both shapes', () => {
    expect(readCronSource(released({ registry: { url: `${url}:40`, secretRef: 's' } }))).toMatchObject({
      value: { type: 'registry', image: { tag: '40' }, secretName: 's', tags: undefined },
    });
    expect(
      readCronSource(short({ http: { url: 'https://a.example/d.img', checksumURL: 'https://a.example/SUMS' } })),
    ).toMatchObject({
      value: { type: 'http', url: 'https://a.example/d.img', checksumUrl: 'https://a.example/SUMS' },
    });
  });

  it('means the newest version in the short shape, and latest in the released one', () => {
    expect(readCronSource(short({ registry: { url } }))).toMatchObject({ value: { tags: '*' } });
    expect(readCronSource(released({ registry: { url } }))).toMatchObject({ value: { tags: undefined } });
    expect(readCronSource(short({ registry: { url: `${url}:40` } }))).toMatchObject({ value: { tags: undefined } });
  });

  it.each([
    [released({}), 'spec.template.spec.source', 'Missing source'],
    [released({ blank: {} }), 'spec.template.spec.source', 'Missing source'],
    [short({ registry: { url }, http: { url: 'https://a.example' } }), 'spec.source', 'has registry, http'],
    [short({ registry: { url: 'fedora' } }), 'spec.source.registry.url', 'must name a registry'],
    [short({ registry: { imageStream: 'x' } }), 'spec.source.registry.imageStream', 'OpenShift'],
    [short({ registry: { url, tags: 'newest' } }), 'spec.source.registry.tags', 'is not a valid range'],
    [short({ registry: { url: `${url}:1`, tags: '*' } }), 'spec.source.registry.tags', 'cannot stand beside'],
    [short({ http: { url: 'ftp://a.example' } }), 'spec.source.http.url', 'http or https'],
    [short({ http: { url: 'https://a.example', checksumURL: 'x' } }), 'spec.source.http.checksumURL', 'http or https'],
  ])('is refused with the field: %j', (spec, field, words) => {
    expect(readCronSource(spec)).toEqual({ faults: [{ field, message: expect.stringContaining(words) }] });
  });

  it('has one name for all who ask the same', () => {
    const [one, other] = [short({ registry: { url: `${url}:40` } }), released({ registry: { url: `${url}:40` } })].map(
      readCronSource,
    );
    expect(one).toEqual(other);
    if (one === undefined || !('value' in one)) throw new Error('a source was expected');
    expect(sourceName(one.value)).toBe('quay.io/containerdisks/fedora:40');
  });
});

describe('files of checksums', () => {
  const hex = 'ab'.repeat(32);
  const other = 'cd'.repeat(32);
  it.each([
    ['GNU', `${other}  b.img\n${hex}  a.img\n`, `sha256:${hex}`],
    ['GNU binary', `${hex} *a.img`, `sha256:${hex}`],
    ['GNU with a path', `${hex}  ./images/a.img`, `sha256:${hex}`],
    ['BSD', `SHA256 (b.img) = ${other}\nSHA256 (a.img) = ${hex}`, `sha256:${hex}`],
    ['BSD 512', `SHA512 (a.img) = ${'ef'.repeat(64)}`, `sha512:${'ef'.repeat(64)}`],
    ['a sidecar', `${hex.toUpperCase()}\n`, `sha256:${hex}`],
    [
      'signed text',
      `-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n# a.img: 5 bytes\nSHA256 (a.img) = ${hex}\n`,
      `sha256:${hex}`,
    ],
    ['both algorithms', `${'ef'.repeat(64)}  a.img\n${hex}  a.img`, `sha256:${hex}`],
    ['Windows lines', `${hex}  a.img\r\n`, `sha256:${hex}`],
  ])('in form of %s', (_, text, digest) => {
    expect(findChecksum(text, 'a.img')).toEqual({ digest });
  });

  it.each([
    [`${hex}  b.img`, 'has no line for a.img'],
    [`${hex}\n${other}`, 'has no line for a.img'],
    [`${hex}  a.img\n${other}  old/a.img`, 'has different digests for a.img'],
    ['<html>404</html>', 'holds no sha256'],
    [`${'ab'.repeat(16)}  a.img`, 'holds no sha256'],
  ])('%j', (text, problem) => {
    expect(findChecksum(text, 'a.img')).toEqual({ problem: expect.stringContaining(problem) });
  });
});
