import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeObject, nameOfKey } from '#shared/object-import/description.ts';
import { ImportRule, matchRule } from '#shared/object-import/rules.ts';

const rule = ImportRule.parse({ bucket: 'golden', prefix: 'images/', namespace: 'default' });
const facts = { etag: '"1"', versionId: undefined, size: 5, metadata: {} };
const hex = 'ab'.repeat(32);

describe('the name of an image created from an object', () => {
  it.each([
    ['images/ubuntu.qcow2', 'ubuntu'],
    ['images/Ubuntu 24.04.qcow2', 'ubuntu-24-04'],
    ['images/team a/debian-12.raw.zst', 'team-a-debian-12'],
    ['images/café.img', 'cafe'],
    ['images/日本語.img', expect.stringMatching(/^image-[0-9a-f]{8}$/)],
    [`images/${'x'.repeat(80)}.iso`, expect.stringMatching(/^x{40}-[0-9a-f]{8}$/)],
  ])('%s', (key, name) => expect(nameOfKey(rule, key)).toEqual(name));

  it('is a valid name of objects, whatever the key', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (text) => {
        const name = nameOfKey(rule, `images/${text}.img`);
        expect(name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);
        expect(name.length).toBeLessThanOrEqual(50);
      }),
    );
  });

  it('is taken from the key, then metadata, then the sidecars', () => {
    const metadata = {
      'bullion-name': 'jammy',
      'bullion-labels': 'os=ubuntu, tier=gold',
      'bullion-checksum': `sha256:${'0'.repeat(64)}`,
    };
    const plain = describeObject(rule, 'images/a b.img', facts, {});
    expect(plain).toMatchObject({ name: 'a-b', displayName: 'a b.img', checksum: undefined, labels: {} });
    const said = describeObject(rule, 'images/a b.img', { ...facts, metadata }, { '.sha256': `${hex}  a b.img\n` });
    expect(said).toMatchObject({ name: 'jammy', checksum: `sha256:${hex}`, labels: { os: 'ubuntu', tier: 'gold' } });
    const json = JSON.stringify({ displayName: 'Ubuntu 22.04 LTS', checksum: `md5:${'1'.repeat(32)}` });
    const last = describeObject(rule, 'images/a b.img', { ...facts, metadata }, { '.sha256': hex, '.json': json });
    expect(last).toMatchObject({ name: 'jammy', displayName: 'Ubuntu 22.04 LTS', checksum: `md5:${'1'.repeat(32)}` });
  });

  it('is a different version when bytes or checksum differ, and otherwise the same', () => {
    const versionOf = (...args: [object, object?]) =>
      describeObject(rule, 'images/a.img', { ...facts, ...args[0] }, args[1] ?? {}).version;
    const first = versionOf({});
    expect(versionOf({ metadata: { 'bullion-labels': 'a=b' } })).toBe(first);
    const others = [versionOf({ etag: '"2"' }), versionOf({ versionId: 'v2' }), versionOf({}, { '.sha256': hex })];
    expect(new Set([first, ...others]).size).toBe(4);
  });

  it.each([
    [{}, { '.sha256': 'soon' }, 'the .sha256 beside the object contains no SHA-256'],
    [{}, { '.json': '{' }, 'the .json beside the object is not valid JSON'],
    [{}, { '.json': '{"nam":"x"}' }, 'the .json beside the object: '],
    [{}, { '.json': '{"checksum":"sha256:1"}' }, 'checksum: not <algorithm>:<hex>'],
    [{ 'bullion-name': 'A_B' }, {}, 'metadata of the object: name: lower-case letters, digits and -'],
    [{ 'bullion-labels': 'cdi.kubevirt.io/dataImportCron=x' }, {}, 'reserved for controllers'],
    [{}, { '.json': '{"labels":{"bullion.dev/owner-uid":"x"}}' }, 'reserved for controllers'],
    [{ 'bullion-labels': 'a b=c' }, {}, 'labels: one of the names is not a valid label name'],
  ])('rejects metadata %j and sidecars %j: %s', (metadata, sidecars, message) => {
    expect(() => describeObject(rule, 'images/a.img', { ...facts, metadata }, sidecars)).toThrow(message);
  });
});

describe('rules', () => {
  const narrow = ImportRule.parse({ bucket: 'golden', prefix: 'images/team/', namespace: 'team' });
  it.each([
    ['golden', 'images/a.qcow2', 'images/a.qcow2', 'default'],
    ['golden', 'images/a.QCOW2', 'images/a.QCOW2', 'default'],
    ['golden', 'images/a.raw.xz', 'images/a.raw.xz', 'default'],
    ['golden', 'images/a.qcow2.sha256', 'images/a.qcow2', 'default'],
    ['golden', 'images/team/a.iso.json', 'images/team/a.iso', 'team'],
  ])('%s/%s maps to %s in namespace %s', (bucket, changed, key, namespace) => {
    expect(matchRule([rule, narrow], bucket, changed)).toEqual({ key, rule: namespace === 'team' ? narrow : rule });
  });

  it.each([
    ['other', 'images/a.qcow2'],
    ['golden', 'a.qcow2'],
    ['golden', 'images/a.txt'],
    ['golden', 'images/.sha256'],
    ['golden', 'images/'],
  ])('%s/%s maps to nothing', (bucket, key) => expect(matchRule([rule], bucket, key)).toBeUndefined());
});
