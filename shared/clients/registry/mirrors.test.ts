import { parse } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import { type RegistryAccess, placesOf, readRegistriesConf } from './mirrors.ts';
import { parseReference } from './reference.ts';

const rulesOf = (text: string): RegistryAccess => ({
  plainRegistries: ['plain.lan:5000'],
  registryRules: readRegistriesConf(parse(text)),
});

/** `http://` for places without TLS. */
const shown = (image: string, conf: string): readonly string[] =>
  placesOf(parseReference(`docker://${image}`), rulesOf(conf)).map(
    ({ host, repository, plainHttp }) => `${plainHttp ? 'http://' : ''}${host}/${repository}`,
  );

const quay = `
unqualified-search-registries = ["docker.io"]
short-name-mode = "enforcing"
[[registry]]
prefix = "quay.io/containerdisks"
location = "quay.io/containerdisks"
[[registry.mirror]]
location = "mirror.lan/quay"
[[registry.mirror]]
location = "second.lan:5000"
insecure = true
pull-from-mirror = "digest-only"
[[registry]]
location = "quay.io"
insecure = true
`;
const digest = `sha256:${'a'.repeat(64)}`;

describe('places of an image', () => {
  it.each<[string, string, string, readonly string[]]>([
    ['no rule', 'ghcr.io/team/a:1', quay, ['ghcr.io/team/a']],
    ['a registry without TLS', 'plain.lan:5000/a', quay, ['http://plain.lan:5000/a']],
    [
      'the longest prefix',
      'quay.io/containerdisks/fedora:42',
      quay,
      ['mirror.lan/quay/fedora', 'quay.io/containerdisks/fedora'],
    ],
    [
      'a mirror for digests alone',
      `quay.io/containerdisks/fedora@${digest}`,
      quay,
      ['mirror.lan/quay/fedora', 'http://second.lan:5000/fedora', 'quay.io/containerdisks/fedora'],
    ],
    ['a prefix ends with a name', 'quay.io/containerdisks2/fedora', quay, ['http://quay.io/containerdisks2/fedora']],
    ['a prefix ends with a host', 'quay.io.evil.example/a', quay, ['quay.io.evil.example/a']],
    ['the same registry at a port', 'quay.io:8443/a', quay, ['http://quay.io:8443/a']],
    [
      'another location',
      'example.com/old/a:1',
      '[[registry]]\nprefix = "example.com/old"\nlocation = "example.org/new"',
      ['example.org/new/a'],
    ],
    [
      'all hosts of a domain',
      'a.b.example.com/x/y',
      '[[registry]]\nprefix = "*.example.com"\n[[registry.mirror]]\nlocation = "mirror.lan"',
      ['mirror.lan/x/y', 'a.b.example.com/x/y'],
    ],
    [
      'not the domain itself',
      'example.com/x',
      '[[registry]]\nprefix = "*.example.com"\nblocked = true',
      ['example.com/x'],
    ],
    [
      'Docker Hub by any of its names',
      'index.docker.io/fedora',
      '[[registry]]\nprefix = "docker.io"\n[[registry.mirror]]\nlocation = "mirror.lan/hub"',
      ['mirror.lan/hub/library/fedora', 'index.docker.io/library/fedora'],
    ],
    [
      'mirrors for digests, by the older key',
      'quay.io/a:1',
      '[[registry]]\nlocation = "quay.io"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = "mirror.lan"',
      ['quay.io/a'],
    ],
    [
      'a mirror that the settings reach without TLS',
      'quay.io/a',
      '[[registry]]\nlocation = "quay.io"\n[[registry.mirror]]\nlocation = "plain.lan:5000/q"',
      ['http://plain.lan:5000/q/a', 'quay.io/a'],
    ],
  ])('%s', (_, image, conf, places) => {
    expect(shown(image, conf)).toEqual(places);
  });

  it('are none where a registry is blocked', () => {
    const conf = '[[registry]]\nprefix = "docker.io"\nblocked = true';
    expect(() => shown('docker.io/team/a', conf)).toThrow('docker.io/team/a is blocked by registries.conf (docker.io)');
    expect(shown('quay.io/team/a', conf)).toEqual(['quay.io/team/a']);
  });

  it('are none while the rules cannot be read: one of them may block the registry', () => {
    const access = { plainRegistries: [], registryFault: 'registries.conf is not valid: line 3' };
    expect(() => placesOf(parseReference('docker://quay.io/a'), access)).toThrow('line 3');
  });
});

describe('registries.conf', () => {
  it.each([
    ['[[registry]]\nblocked = true', 'registry.0: has neither prefix nor location'],
    ['[[registry]]\nlocation = "a"\nblocked = "yes"', 'registry.0.blocked: '],
    ['[[registry]]\nlocation = "a"\n[[registry.mirror]]\ninsecure = true', 'registry.0.mirror.0.location: '],
    ['[[registry]]\nlocation="a"\n[[registry.mirror]]\nlocation="b"\npull-from-mirror="never"', 'pull-from-mirror'],
    ['[registries.block]\nregistries = ["a"]', 'version 1'],
  ])('is refused: %j', (text, problem) => {
    expect(() => readRegistriesConf(parse(text))).toThrow(problem);
  });
});
