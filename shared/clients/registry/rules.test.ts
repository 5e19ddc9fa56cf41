import fc from 'fast-check';
import semver from 'semver';
import { describe, expect, it } from 'vitest';
import { parseChallenge } from '#shared/clients/registry/session.ts';
import { findCredentials } from '#shared/clients/registry/credentials.ts';
import { readManifest } from '#shared/clients/registry/manifest.ts';
import { selectPlatform } from '#shared/clients/registry/manifest.ts';
import { formatReference, parseReference, pinReference, readReference } from '#shared/clients/registry/reference.ts';
import { chooseTag } from '#shared/clients/registry/tags.ts';

const digest = `sha256:${'ab'.repeat(32)}`;

describe('references', () => {
  it.each([
    ['docker://quay.io/containerdisks/fedora:40', { host: 'quay.io', repository: 'containerdisks/fedora', tag: '40' }],
    ['docker://localhost:5000/a', { host: 'localhost:5000', repository: 'a' }],
    ['docker://[::1]:5000/a/b:c', { host: '[::1]:5000', repository: 'a/b', tag: 'c' }],
    ['docker://docker.io/fedora', { host: 'docker.io', repository: 'library/fedora' }],
    [`docker://quay.io/a/b:1@${digest}`, { host: 'quay.io', repository: 'a/b', tag: '1', digest }],
  ])('parses %s', (text, expected) => {
    expect(parseReference(text)).toEqual({ tag: undefined, digest: undefined, ...expected });
  });

  it.each([
    'docker://fedora',
    'docker://quay.io/UPPER/case',
    'docker://quay.io/a/../b',
    'docker://quay.io/a:',
    `docker://quay.io/a@${digest}@${digest}`,
    'docker://quay.io/a@sha256:abc',
    'docker://user:pw@quay.io/a',
    'https://quay.io/a',
    'docker://quay.io/a?x=1',
  ])('rejects %s', (text) => {
    expect(readReference(text)).toHaveProperty('problem');
  });

  it('pins to one digest, whatever was pinned before', () => {
    const pinned = pinReference(parseReference(`docker://quay.io/a/b:1@${digest}`), digest);
    expect(pinned).toBe(`docker://quay.io/a/b@${digest}`);
    expect(formatReference(parseReference(pinned))).toBe(`quay.io/a/b@${digest}`);
  });

  it('throws only its own errors', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(Object.keys(readReference(text)).length).toBe(1);
      }),
    );
  });
});

describe('credentials', () => {
  const encode = (text: string) => Buffer.from(text).toString('base64');
  const config = (auths: object) => ({ '.dockerconfigjson': JSON.stringify({ auths }) });
  const image = parseReference('docker://registry.example:5000/team/disks/fedora');

  it.each([
    [
      'host and port',
      config({ 'registry.example:5000': { auth: encode('u:p:q') } }),
      { username: 'u', password: 'p:q' },
    ],
    [
      'a URL',
      config({ 'https://registry.example:5000/v2/': { username: 'u', password: 'p' } }),
      { username: 'u', password: 'p' },
    ],
    [
      'the longest path',
      config({
        'registry.example:5000': { auth: encode('a:a') },
        'registry.example:5000/team': { auth: encode('u:p') },
      }),
      { username: 'u', password: 'p' },
    ],
    ['a star', config({ '*.example:5000': { auth: encode('u:p') } }), { username: 'u', password: 'p' }],
    ['basic-auth', { username: 'u', password: 'p\n' }, { username: 'u', password: 'p' }],
    ['accessKeyId', { accessKeyId: 'u\n', secretKey: 'p\n' }, { username: 'u', password: 'p' }],
    ['another registry', config({ 'quay.io': { auth: encode('u:p') } }), undefined],
    ['another path', config({ 'registry.example:5000/tea': { auth: encode('u:p') } }), undefined],
    ['a star of two labels', config({ '*:5000': { auth: encode('u:p') } }), undefined],
  ])('parses %s', (_, secret, expected) => {
    expect(findCredentials(secret, image)).toEqual(expected);
  });

  it('accepts the old name of Docker Hub', () => {
    const hub = config({ 'https://index.docker.io/v1/': { auth: encode('u:p') } });
    expect(findCredentials(hub, parseReference('docker://docker.io/fedora'))).toBeDefined();
  });

  it('names what a Secret lacks without its data', () => {
    expect(() => findCredentials({ token: 'hidden' }, image)).toThrow(/needs .dockerconfigjson, or username/);
    expect(() => findCredentials({ '.dockerconfigjson': '{"hidden' }, image)).toThrow(/not a Docker configuration/);
    expect(() => findCredentials({ '.dockerconfigjson': '{"hidden' }, image)).not.toThrow(/hidden/);
  });
});

describe('challenges', () => {
  it.each([
    ['Basic realm="x"', { scheme: 'basic' }],
    [
      'Bearer realm="https://auth.example/token",service="a, b",scope="repository:x:pull"',
      { scheme: 'bearer', realm: new URL('https://auth.example/token'), service: 'a, b', scope: 'repository:x:pull' },
    ],
    ['Basic realm="x", Bearer realm="https://a.example/"', { scheme: 'bearer', realm: new URL('https://a.example/') }],
    ['Negotiate', undefined],
    ['Bearer realm="no url"', undefined],
    [undefined, undefined],
  ])('parses %s', (header, expected) => {
    expect(parseChallenge(header)).toEqual(expected);
  });
});

describe('platforms', () => {
  const entry = (platform?: object) => ({ mediaType: 'm', digest: `${digest}`, size: 1, platform }) as never;

  it('prefers the plain architecture, then the newest variant', () => {
    const variants = ['v6', 'v8', 'v7'].map((variant) => entry({ os: 'linux', architecture: 'arm', variant }));
    expect(selectPlatform(variants, 'arm', 'x').platform?.variant).toBe('v8');
    expect(
      selectPlatform([...variants, entry({ os: 'linux', architecture: 'arm' })], 'arm', 'x').platform?.variant,
    ).toBe(undefined);
  });

  const index = (...entries: readonly unknown[]) => {
    const manifests = entries.map((entry) =>
      typeof entry === 'object' && entry !== null ? { mediaType: 'm', digest, size: 1, ...entry } : entry,
    );
    const read = readManifest(Buffer.from(JSON.stringify({ schemaVersion: 2, manifests })), undefined, 'x');
    if (read.is !== 'index') throw new Error('it is no index');
    return read.entries;
  };
  const good = { platform: { os: 'linux', architecture: 'amd64' }, size: 7 };

  it.each([
    [{ platform: { architecture: 'amd64' } }],
    [{ platform: { os: '', architecture: '' } }],
    [{ platform: null }],
    [{ platform: 'linux' }],
    [{ platform: { os: 5, architecture: [] } }],
    [{ digest: 'sha256:short', platform: good.platform }],
    [{ size: -1 }],
    [null],
    ['x'],
    [[]],
  ])('selects the right image next to %j', (odd) => {
    for (const entries of [index(odd, good), index(good, odd)])
      expect(selectPlatform(entries, 'amd64', 'x').size).toBe(7);
    expect(() => selectPlatform(index(odd, good), 's390x', 'x')).toThrow(/; it has (\S+\/\S+|any)(, |$)/);
  });

  it('selects the only image when its platform is incomplete', () => {
    expect(selectPlatform(index({ platform: { architecture: 'amd64' } }), 'amd64', 'x')).toBeDefined();
    expect(selectPlatform(index({ platform: { os: '', architecture: '' } }), 'amd64', 'x')).toBeDefined();
    expect(() => selectPlatform(index({ platform: { architecture: 'arm64' } }), 'amd64', 'x')).toThrow('any/arm64');
  });

  it('selects the only image without a platform, and never another operating system', () => {
    expect(selectPlatform([entry()], 'amd64', 'x')).toBeDefined();
    expect(() => selectPlatform([entry(), entry()], 'amd64', 'x')).toThrow('it has any');
    expect(() => selectPlatform([entry({ os: 'windows', architecture: 'amd64' })], 'amd64', 'x')).toThrow(
      'windows/amd64',
    );
    expect(() => selectPlatform([], 'amd64', 'x')).toThrow('it has nothing');
  });
});

describe('ranges of tags', () => {
  it.each([
    [['38', '39', '40', 'latest'], '*', '40'],
    [['38', '39', '40'], '<40', '39'],
    [['1.2.0', '1.10.0', '1.9.9'], '^1.2', '1.10.0'],
    [['1.0.0', '2.0.0-rc.1'], '*', '1.0.0'],
    [['1.0.0', '2.0.0-rc.1'], '>=2.0.0-rc.0', '2.0.0-rc.1'],
    [['1.0.0', '3.0.0-rc.1'], '>=2.0.0-rc.0', undefined],
    [['40', '40.0.0', 'v40'], '*', '40.0.0'],
    [['latest', 'sha-abc', '1.2.3.4'], '*', undefined],
    [[], '*', undefined],
  ])('of %j in %s selects %s', (tags, range, expected) => {
    expect(chooseTag(tags, range)?.tag).toBe(expected);
  });

  const dates = ['2022.04.26', '2023-01-02', '20240101'];
  it.each([
    ['versions, which most tags follow', ['v9.10.0', 'v9.11.0', '2022.04.26'], '*', 'v9.11.0', /^2022\.04\.26 \(dates/],
    ['dates, which most tags follow', [...dates, 'v1.0.0'], '*', '20240101', /^v1\.0\.0 \(versions/],
    ['versions, where as many tags are dates', ['8.5', '2022.04.26'], '*', '8.5', /dates/],
    [
      'versions, which the range is written in',
      ['38', '39', ...dates],
      '>=38',
      '39',
      /20240101, 2023-01-02, 2022\.04\.26/,
    ],
    ['dates, which the range is written in', ['9.11.0', '9.12.0', ...dates.slice(1)], '>=2023', '20240101', /^$/],
    ['dates by their numbers, as the range is', ['20240101', '20250101'], '>=20240101 <20241231', '20240101', /^$/],
    ['versions, not numbers of builds', ['v1.2.3', 'v1.2.4', '8712'], '*', 'v1.2.4', /^8712 \(build numbers/],
    ['numbers, if there are no other tags', ['8712', '8713', 'latest'], '*', '8713', /^$/],
    ['the newest build of a day', ['20240101.2', '20240101.10', '2023.12.31'], '*', '20240101.10', /^$/],
    ['the newest rebuild of a version', ['9.4', '9.4-1214', '9.4-999.5', '9.3-2000'], '*', '9.4-1214', /^$/],
    ['a year as a version of its kind', ['2019', '2022'], '*', '2022', /^$/],
    ['a release, not what comes before the next', ['1.9.0', '2.0.0-rc.1', '2.0.0-amd64'], '*', '1.9.0', /pre-releases/],
    [
      'three by name, the others counted',
      ['1.0', '1.1', '1.2', '1.3', '1.4', ...dates, '20240102'],
      '*',
      '1.4',
      /and 1 more/,
    ],
  ])('selects %s', (_what, tags, range, ...[tag, passedOver]) => {
    for (const order of [tags, [...tags].reverse()]) {
      const chosen = chooseTag(order, range);
      expect(chosen?.tag).toBe(tag);
      expect(chosen?.passedOver).toMatch(passedOver);
    }
  });

  it('never prefers a date to versions while there are more versions', () => {
    const version = fc.tuple(fc.nat(99), fc.nat(99), fc.nat(99)).map((parts) => `v${parts.join('.')}`);
    const date = fc.date({ min: new Date('1990-01-01'), max: new Date('2090-01-01'), noInvalidDate: true });
    const asTag = fc
      .tuple(date, fc.constantFrom('', '.', '-'))
      .map(([day, by]) => day.toISOString().slice(0, 10).replaceAll('-', by));
    fc.assert(
      fc.property(fc.uniqueArray(version, { minLength: 4 }), fc.array(asTag, { maxLength: 3 }), (versions, days) => {
        const expected = semver.rsort(versions.map((tag) => tag.slice(1)))[0];
        expect(chooseTag([...days, ...versions], '*')?.tag).toBe(`v${expected}`);
      }),
    );
  });

  it('rejects an invalid range', () => {
    expect(() => chooseTag(['1'], 'newest')).toThrow('is not a valid range of versions');
  });

  it('selects the greatest release whatever the order of the tags', () => {
    const version = fc.tuple(fc.nat(50), fc.nat(50), fc.nat(50)).map((parts) => parts.join('.'));
    fc.assert(
      fc.property(fc.array(version, { minLength: 1 }), (tags) => {
        expect(chooseTag(tags, '*')?.tag).toBe(semver.rsort([...tags])[0]);
      }),
    );
  });
});
