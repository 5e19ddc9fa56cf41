import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exitCodes } from '#cli/command.ts';
import { runBullion } from '#test/support/bullion.ts';
import { ecKey, payloadOf, pemOf, pushSignatures, signBytes } from '#test/support/cosign.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { type Gpg, startGpg } from '#test/support/gpg.ts';
import { type Origin, startOrigin } from '#test/support/origin.ts';
import { pushDisk, pushIndex } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';
import { createSigstore } from '#test/support/sigstore.ts';
import { hasTools } from '#test/support/tools.ts';

const dir = temporaryDirectory();
const fileOf = (name: string, content: string | Buffer): string => {
  writeFileSync(join(dir, name), content);
  return join(dir, name);
};
const keys = ecKey();
const good = fileOf('good.pub', pemOf(keys));
const other = fileOf('other.pub', pemOf(ecKey()));

describe.skipIf(!hasRegistry())('bullion verify, of an image in a registry', () => {
  let registry: TestRegistry;
  let digests: readonly string[];
  beforeAll(async () => {
    registry = await startRegistry();
    const target = { host: registry.host, repository: 'disks/fedora' };
    const images = [];
    for (const architecture of ['amd64', 'arm64']) {
      const image = await pushDisk(target, Buffer.alloc(512, architecture), architecture);
      images.push({ architecture, image });
    }
    const index = await pushIndex(target, images, '40');
    const payload = payloadOf(index.digest);
    await pushSignatures(target, index.digest, [{ payload, signature: signBytes(keys, payload) }]);
    digests = images.map(({ image }) => image.digest);
  });
  afterAll(() => registry.close());
  const verify = (key: string, ...more: readonly string[]) =>
    runBullion(['verify', `docker://${registry.host}/disks/fedora:40`, '--plain-http', '--key', key, ...more]);

  it.each(['amd64', 'arm64'])('says who signed the index that lists the image for %s', async (architecture) => {
    const { code, out } = await verify(good, '--arch', architecture);
    expect(out).toMatch(/^verified: .* is signed by SHA256:[0-9a-f]{64}/);
    expect(out).toContain(digests[architecture === 'amd64' ? 0 : 1]);
    expect(code).toBe(exitCodes.done);
  });

  it('says which identity signed it', async () => {
    const sigstore = await createSigstore();
    const target = { host: registry.host, repository: 'disks/fedora' };
    const { digest } = await pushDisk(target, Buffer.alloc(512, 'keyless'), 'keyless');
    const [issuer, subject] = ['https://token.example', 'https://git.example/release'];
    await pushSignatures(target, digest, [await sigstore.sign(digest, { issuer, subject })]);
    const root = fileOf('root.json', sigstore.root);
    const ask = (...more: readonly string[]) =>
      runBullion([
        'verify',
        `docker://${registry.host}/disks/fedora:keyless`,
        '--plain-http',
        '--trust-root',
        root,
        ...more,
      ]);
    const { code, out } = await ask('--issuer', issuer, '--subject', subject);
    expect(out).toMatch(/is signed by https:\/\/git\.example\/release of https:\/\/token\.example at /);
    expect(code).toBe(exitCodes.done);
    expect(await ask('--issuer', issuer, '--subject', 'x')).toMatchObject({
      out: expect.stringMatching(/WrongIdentity/),
    });
    expect(await ask()).toMatchObject({ code: exitCodes.usage });
  });

  it('says why not, with an exit code', async () => {
    expect(await verify(other)).toMatchObject({
      code: exitCodes.failed,
      out: expect.stringMatching(/^refused: WrongKey: /),
    });
    expect(await verify(join(dir, 'absent'))).toMatchObject({ code: exitCodes.usage });
    const digest = `sha256:${'0'.repeat(64)}`;
    expect(await verify(good, '--digest', digest)).toMatchObject({ out: expect.stringMatching(/^refused: Unsigned/) });
    const absent = ['verify', `docker://${registry.host}/disks/fedora:41`, '--plain-http', '--key', good];
    expect(await runBullion(absent)).toMatchObject({ code: exitCodes.notFound, out: '' });
    expect(await verify(good, '--digest', 'x')).toMatchObject({ code: exitCodes.usage });
  });
});

describe.skipIf(!hasTools('gpg'))('bullion verify, of a file', () => {
  let gpg: Gpg;
  let origin: Origin;
  let key: string;
  beforeAll(async () => {
    gpg = startGpg();
    const vendor = gpg.key('vendor');
    key = fileOf('vendor.asc', gpg.exported(vendor));
    const sums = `SHA256 (disk.qcow2) = ${createHash('sha256').update('disk').digest('hex')}\n`;
    const signed = gpg.clear(sums, vendor);
    origin = await startOrigin(({ path }) => (path === '/CHECKSUM' ? { body: signed } : { status: 404 }));
  });
  afterAll(async () => {
    gpg.close();
    await origin.close();
  });
  const verify = (...more: readonly string[]) => runBullion(['verify', `${origin.url}/disk.qcow2`, ...more]);

  it('says who signed its checksum file, or why not', async () => {
    const { code, out } = await verify('--checksums', 'CHECKSUM', '--key', key);
    expect(out).toMatch(/^verified: .*CHECKSUM says sha256:[0-9a-f]{64} for disk\.qcow2, signed by [0-9A-F]{40} at /);
    expect(code).toBe(exitCodes.done);
    const wrong = await verify('--checksums', 'CHECKSUM', '--key', good);
    expect(wrong).toMatchObject({ code: exitCodes.failed, out: expect.stringMatching(/InvalidPolicy: --key holds/) });
  });

  it('asks for what is missing', async () => {
    expect(await verify('--key', key)).toMatchObject({
      code: exitCodes.usage,
      err: expect.stringMatching(/--checksums/),
    });
    expect(await verify()).toMatchObject({ code: exitCodes.usage, err: expect.stringMatching(/--key is missing/) });
  });
});
