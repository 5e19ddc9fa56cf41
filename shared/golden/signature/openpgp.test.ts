// Signatures made by the real gpg.
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FetchFile, verifyFile } from '#shared/golden/signature/files.ts';
import { type Keyring, openPgp, readKeyring } from '#shared/golden/signature/openpgp.ts';
import { type Gpg, startGpg } from '#test/support/gpg.ts';
import { hasTools } from '#test/support/tools.ts';

const hex = (text: string, algorithm = 'sha256') => createHash(algorithm).update(text).digest('hex');
const image = 'https://mirror.example/40/fedora.qcow2';
const digest = `sha256:${hex('fedora')}`;
const bsd = `# fedora.qcow2: 6 bytes\nSHA256 (fedora.qcow2) = ${hex('fedora')}\nSHA256 (other.qcow2) = ${hex('other')}\n`;
const gnu = `${hex('fedora')} *fedora.qcow2\n${hex('other')}  other.qcow2\n`;

type Files = Readonly<Record<string, Buffer | string>>;

const serving =
  (files: Files): FetchFile =>
  ({ href }) => {
    const content = files[href.replace('https://mirror.example/40/', '')];
    return Promise.resolve(
      content === undefined ? { is: 'absent', status: 404 } : { is: 'file', bytes: Buffer.from(content) },
    );
  };

describe.skipIf(!hasTools('gpg'))('signatures by gpg', () => {
  let gpg: Gpg;
  let vendor: string;
  let stranger: string;
  beforeAll(() => {
    gpg = startGpg();
    vendor = gpg.key('vendor');
    stranger = gpg.key('stranger');
  });
  afterAll(() => gpg.close());

  const keyring = async (...keys: readonly string[]): Promise<Keyring> => {
    const read = await readKeyring([gpg.exported(...keys)], 'ConfigMap keys');
    if ('is' in read) throw new Error(read.message);
    return read;
  };
  const verify = async (
    files: Files,
    { keys = [vendor], now = Date.now(), places = {}, ...version }: Partial<Options> = {},
  ) =>
    verifyFile(
      serving(files),
      { url: image, checksumUrl: 'https://mirror.example/40/SUMS', digest, ...version },
      places,
      openPgp(await keyring(...keys), () => now),
    );
  interface Options {
    readonly keys: readonly string[];
    readonly now: number;
    readonly places: object;
    readonly digest: string;
    readonly url: string;
    readonly checksumUrl: string | undefined;
  }

  it('within the checksum file, as Fedora has them', async () => {
    expect(await verify({ SUMS: gpg.clear(bsd, vendor) })).toMatchObject({
      is: 'verified',
      digest,
      kind: 'openpgp',
      by: vendor,
      signedAt: expect.stringMatching(/^20\d\d-/),
    });
  });

  it.each(['.gpg', '.asc', '.sig', '.sign'])('beside it, with %s, as Debian and Ubuntu have them', async (suffix) => {
    for (const extra of [['--armor'], []]) {
      const files = { SUMS: gnu, [`SUMS${suffix}`]: gpg.detached(gnu, vendor, extra) };
      expect(await verify(files)).toMatchObject({ is: 'verified', digest, by: vendor });
    }
  });

  it.each([
    ['a URL', { checksums: 'https://mirror.example/40/a', signature: 'https://mirror.example/40/b' }],
    ['names beside the image', { checksums: 'a', signature: 'b' }],
  ])('at places that the policy names: %s', async (_, places) => {
    const files = { a: gnu, b: gpg.detached(gnu, vendor) };
    expect(await verify(files, { places, checksumUrl: undefined })).toMatchObject({ is: 'verified' });
  });

  it('at a place that is a suffix of the image', async () => {
    const files = { 'fedora.qcow2.sha256': gnu, 'fedora.qcow2.sha256.asc': gpg.detached(gnu, vendor) };
    const places = { checksums: '.sha256' };
    const url = `${image}?token=x#y`;
    expect(await verify(files, { places, url, checksumUrl: undefined })).toMatchObject({ is: 'verified' });
  });

  it('one by a trusted key among several is enough', async () => {
    const both = Buffer.concat([gpg.detached(gnu, stranger, []), gpg.detached(gnu, vendor, [])]);
    expect(await verify({ SUMS: gnu, 'SUMS.gpg': both })).toMatchObject({ is: 'verified', by: vendor });
  });

  it('of a digest by sha512', async () => {
    const sums = `${hex('fedora', 'sha512')}  fedora.qcow2\n`;
    const files = { SUMS: gpg.clear(sums, vendor) };
    const version = `sha512:${hex('fedora', 'sha512')}`;
    expect(await verify(files, { digest: version })).toMatchObject({ is: 'verified', digest: version });
    expect(await verify(files)).toMatchObject({
      reason: 'DigestNotSigned',
      message: expect.stringMatching(/only sha512:/),
    });
  });

  it('that are absent, or unreadable', async () => {
    expect(await verify({})).toMatchObject({ is: 'refused', reason: 'Unsigned' });
    expect(await verify({ SUMS: gnu })).toMatchObject({ is: 'refused', reason: 'Unsigned' });
    expect(await verify({ SUMS: gnu, 'SUMS.asc': 'hello' })).toMatchObject({ reason: 'BadSignature' });
    expect(await verify({ SUMS: gnu }, { places: { signature: '.asc' } })).toMatchObject({ reason: 'Unsigned' });
    expect(await verify({ SUMS: gnu }, { checksumUrl: undefined })).toMatchObject({ reason: 'InvalidPolicy' });
  });

  it('by a key that is not of the policy', async () => {
    for (const files of [{ SUMS: gpg.clear(bsd, stranger) }, { SUMS: gnu, 'SUMS.asc': gpg.detached(gnu, stranger) }])
      expect(await verify(files)).toMatchObject({ is: 'refused', reason: 'WrongKey' });
  });

  it('of a file that was changed after it was signed', async () => {
    const signed = gpg.clear(bsd, vendor).toString();
    const evil = bsd.replace(hex('fedora'), hex('evil'));
    const changed = signed.replace(hex('fedora'), hex('evil'));
    const version = { digest: `sha256:${hex('evil')}` };
    expect(await verify({ SUMS: changed }, version)).toMatchObject({ reason: 'BadSignature' });
    const files = { SUMS: evil, 'SUMS.asc': gpg.detached(bsd, vendor) };
    expect(await verify(files, version)).toMatchObject({ reason: 'BadSignature' });
  });

  it('of another digest than that of the version: exchanged between the check and the fetch', async () => {
    expect(await verify({ SUMS: gpg.clear(bsd, vendor) }, { digest: `sha256:${hex('evil')}` })).toMatchObject({
      is: 'refused',
      reason: 'DigestNotSigned',
    });
  });

  it('of another file alone', async () => {
    const sums = `${hex('fedora')}  other.qcow2\n`;
    expect(await verify({ SUMS: gpg.clear(sums, vendor) })).toMatchObject({ reason: 'DigestNotSigned' });
    // Without a name it may be about any file of the vendor's.
    expect(await verify({ SUMS: gpg.clear(`${hex('fedora')}\n`, vendor) })).toMatchObject({
      reason: 'DigestNotSigned',
    });
  });

  it('of a list with two digests for one name', async () => {
    const sums = `${gnu}${hex('evil')}  fedora.qcow2\n`;
    expect(await verify({ SUMS: gpg.clear(sums, vendor) })).toMatchObject({
      reason: 'DigestNotSigned',
      message: expect.stringMatching(/different digests/),
    });
  });

  it('do not cover what is written around the signed part', async () => {
    const line = `SHA256 (fedora.qcow2) = ${hex('evil')}\n`;
    const signed = gpg.clear(`SHA256 (other.qcow2) = ${hex('other')}\n`, vendor).toString();
    const hidden = signed.replace('Hash: SHA512\n', `Hash: SHA512\n${line}`);
    const version = { digest: `sha256:${hex('evil')}` };
    for (const text of [line + signed, signed + line, hidden, `${line}\n${signed}\n${line}`])
      expect(await verify({ SUMS: text }, version)).toMatchObject({ is: 'refused' });
    expect(await verify({ SUMS: line + gpg.clear(bsd, vendor).toString() })).toMatchObject({ is: 'verified', digest });
  });

  it('in a signed text beside the file, as gpg names its output, say what to do', async () => {
    expect(await verify({ SUMS: gnu, 'SUMS.asc': gpg.clear(gnu, vendor) })).toMatchObject({
      is: 'refused',
      reason: 'BadSignature',
      message: expect.stringMatching(/SUMS\.asc is a signed text in itself.*gpg --armor --detach-sign$/),
    });
  });

  it('by a key that has expired, now or when it signed', async () => {
    const old = gpg.key('old', { at: '2020-01-01T00:00:00', expires: '1y' });
    const SUMS = gpg.clear(bsd, old, '2020-06-01T00:00:00');
    const now = (text: string) => ({ keys: [old], now: Date.parse(text) });
    expect(await verify({ SUMS }, now('2020-07-01'))).toMatchObject({ is: 'verified', by: old });
    expect(await verify({ SUMS }, now('2021-07-01'))).toMatchObject({ is: 'refused', reason: 'KeyExpired' });
  });

  it('by a subkey that has expired', async () => {
    const main = gpg.key('main', { at: '2020-01-01T00:00:00' });
    const at = '2020-01-02T00:00:00';
    gpg.run(['--quick-add-key', main, 'ed25519', 'sign', '1y'], { at });
    const listed = gpg.run(['--with-colons', '--list-keys', main]).toString();
    const sub = /^sub:[\s\S]*?^fpr:+([0-9A-F]+):/m.exec(listed)?.[1] ?? '';
    const SUMS = gpg.run(['--local-user', `${sub}!`, '--clear-sign'], { input: bsd, at: '2020-06-01T00:00:00' });
    const now = (text: string) => ({ keys: [main], now: Date.parse(text) });
    expect(await verify({ SUMS }, now('2020-07-01'))).toMatchObject({ is: 'verified', by: main });
    expect(await verify({ SUMS }, now('2021-07-01'))).toMatchObject({ is: 'refused', reason: 'KeyExpired' });
    const SUMS2 = gpg.clear(bsd, `${main}!`, '2021-06-01T00:00:00');
    expect(await verify({ SUMS: SUMS2 }, now('2021-07-01'))).toMatchObject({ is: 'verified' });
  });

  it('by a key that was withdrawn, whenever it signed', async () => {
    const lost = gpg.key('lost');
    const SUMS = gpg.clear(bsd, lost);
    expect(await verify({ SUMS }, { keys: [lost] })).toMatchObject({ is: 'verified' });
    gpg.revoke(lost);
    expect(await verify({ SUMS }, { keys: [lost] })).toMatchObject({ is: 'refused', reason: 'KeyRevoked' });
  });

  it('that were made for a time only', async () => {
    const extra = ['--armor', '--default-sig-expire', '1d'];
    const files = { SUMS: gnu, 'SUMS.asc': gpg.detached(gnu, vendor, extra) };
    expect(await verify(files)).toMatchObject({ is: 'verified' });
    const later = Date.now() + 2 * 86_400_000;
    expect(await verify(files, { now: later })).toMatchObject({ is: 'refused', reason: 'SignatureExpired' });
  });

  it('of keys are not signatures of documents', async () => {
    const certificate = gpg.exported(vendor);
    expect(await verify({ SUMS: gnu, 'SUMS.asc': certificate })).toMatchObject({ is: 'refused' });
  });

  it('are read with each kind of key that vendors have', async () => {
    for (const algorithm of ['rsa3072', 'nistp256']) {
      const key = gpg.key(algorithm, { algorithm });
      expect(await verify({ SUMS: gpg.clear(bsd, key) }, { keys: [key] })).toMatchObject({ is: 'verified', by: key });
    }
  });

  it.each([
    ['nothing', () => []],
    ['no key', () => [Buffer.from('hello')]],
    ['a private key', () => [gpg.run(['--armor', '--export-secret-keys', vendor])]],
    ['a private key that is not armored', () => [gpg.run(['--export-secret-keys', vendor])]],
  ])('need keys: %s is refused', async (_, contents) => {
    expect(await readKeyring(contents(), 'ConfigMap keys')).toMatchObject({ is: 'refused', reason: 'InvalidPolicy' });
  });

  it('of several keys in one entry, or not armored, are known', async () => {
    const text = Buffer.concat([gpg.exported(vendor), gpg.exported(stranger)]);
    expect(await readKeyring([text], 'x')).toHaveLength(2);
    expect(await readKeyring([gpg.run(['--export', vendor, stranger])], 'x')).toHaveLength(2);
  });

  it('changed in any byte are never good for other text, and nothing is thrown', async () => {
    const keys = openPgp(await keyring(vendor), Date.now);
    const clear = gpg.clear(bsd, vendor);
    const detached = gpg.detached(gnu, vendor);
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.integer({ min: 1, max: 255 }), fc.boolean(), async (at, flip, cut) => {
        const change = (bytes: Buffer): Buffer => {
          const changed = Buffer.from(bytes);
          changed[at % changed.length]! ^= flip;
          return cut ? changed.subarray(0, at % changed.length) : changed;
        };
        const within = await keys.within(change(clear), 'x');
        expect(within.is === 'signed' ? within.text.trim() : bsd.trim()).toBe(bsd.trim());
        const beside = await keys.detached(change(Buffer.from(gnu)), detached, 'x');
        expect(beside.is).toBe('refused');
        expect(['signed', 'refused']).toContain((await keys.detached(Buffer.from(gnu), change(detached), 'x')).is);
      }),
      { numRuns: 60 },
    );
  });
});
