// Bundles between two real registries: what arrives is what was saved, with its signatures, and nothing else arrives.
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exitCodes } from '#cli/command.ts';
import { runBullion } from '#test/support/bullion.ts';
import { ecKey, payloadOf, pemOf, pushSignatures, signBytes } from '#test/support/cosign.ts';
import { noise } from '#test/support/disk.ts';
import { pushDisk, pushIndex } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';

describe.skipIf(!hasRegistry())('a bundle of images of a registry', { timeout: 120_000 }, () => {
  let dir: string;
  let source: TestRegistry;
  let target: TestRegistry;
  const keys = ecKey();
  const disk = noise('bundled', 3 * 1024 * 1024);
  const bullion = (...args: readonly string[]) => runBullion(['bundle', ...args, '--plain-http']);
  const at = (name: string): string => join(dir, name);
  const from = (tag: string): string => `docker://${source.direct}/disks/fedora:${tag}`;
  let digest: string;
  let layer: string;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-bundle-'));
    [source, target] = await Promise.all([startRegistry(), startRegistry()]);
    const place = { host: source.direct, repository: 'disks/fedora' };
    const pushed = await pushDisk(place, disk, '40', 'zstd');
    digest = pushed.digest;
    layer = pushed.layers[0]?.digest ?? '';
    await pushDisk(place, noise('other', 64 * 1024), '41', 'gzip');
    const payload = payloadOf(digest);
    await pushSignatures(place, digest, [{ payload, signature: signBytes(keys, payload) }]);
    await writeFile(at('key.pem'), pemOf(keys));
    await writeFile(at('other.pem'), pemOf(ecKey()));
    await bullion('save', at('bundle.tar'), from('40'), '--arch', 'amd64');
  });
  afterAll(async () => {
    await source?.close();
    await target?.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('is the same file each time, whatever an interrupted save has left', async () => {
    const first = await readFile(at('bundle.tar'));
    await writeFile(at('again.tar.partial'), first.subarray(0, 2 * 1024 * 1024));
    source.requests.length = 0;
    expect((await bullion('save', at('again.tar'), from('40'), '--arch', 'amd64')).code).toBe(exitCodes.done);
    expect(first.equals(await readFile(at('again.tar')))).toBe(true);
  });

  it('shows what it holds', async () => {
    const { out } = await bullion('inspect', at('bundle.tar'), '--check');
    expect(out).toMatch(/^fedora +40 +disk\/disk\.img +3\.0 MiB +signature +sha256:/m);
  });

  it('arrives in another registry with its signature, and again without a byte', async () => {
    const load = ['load', at('bundle.tar'), '--to', `oci://${target.host}/golden`, '--key', at('key.pem')] as const;
    expect(await bullion(...load)).toMatchObject({ code: exitCodes.done });
    const headers = { accept: 'application/vnd.oci.image.manifest.v1+json' };
    const find = async (tag: string) =>
      (await fetch(`http://${target.direct}/v2/golden/fedora/manifests/${tag}`, { headers })).headers;
    expect((await find('40')).get('docker-content-digest')).toBe(digest);
    expect((await find(`${digest.replace(':', '-')}.sig`)).get('docker-content-digest')).toMatch(/^sha256:/);
    target.requests.length = 0;
    expect((await bullion(...load)).code).toBe(exitCodes.done);
    expect(target.requests.filter(({ method }) => method === 'PATCH')).toEqual([]);
  });

  it('is not loaded with another key, nor without a signature', async () => {
    target.requests.length = 0;
    const { code, err } = await bullion(
      'load',
      at('bundle.tar'),
      '--to',
      `oci://${target.host}/x`,
      '--key',
      at('other.pem'),
    );
    expect([code, err]).toEqual([exitCodes.failed, expect.stringContaining('is not signed as --key asks: WrongKey')]);
    await bullion('save', at('unsigned.tar'), from('41'), '--arch', 'amd64');
    const unsigned = await bullion(
      'load',
      at('unsigned.tar'),
      '--to',
      `oci://${target.host}/x`,
      '--key',
      at('key.pem'),
    );
    expect(unsigned.code).toBe(exitCodes.failed);
    expect(unsigned.err).toMatch(
      /fedora \(sha256:\S+\) is not signed, and --key asks for a signature: save the bundle with --sign-with/,
    );
    expect(target.requests).toEqual([]);
  });

  it('resumes within a blob that was interrupted', async () => {
    const controller = new AbortController();
    target.intercept = ({ method, path }, response) => {
      if (method !== 'PUT' || !path.includes(encodeURIComponent(layer))) return false;
      controller.abort(new Error('cut'));
      response.destroy();
      return true;
    };
    const args = ['bundle', 'load', at('bundle.tar'), '--to', `oci://${target.host}/cut`, '--plain-http'];
    expect((await runBullion(args, controller.signal)).code).toBe(exitCodes.interrupted);
    target.intercept = undefined;
    target.requests.length = 0;
    expect((await runBullion(args)).code).toBe(exitCodes.done);
    const large = target.requests.filter(({ headers }) => Number(headers['content-length'] ?? 0) > 1024 * 1024);
    expect(large).toEqual([]);
  });

  it('leaves out what the other side has, and is refused where that is not so', async () => {
    const { out } = await bullion('have', `oci://${target.direct}/golden/fedora`);
    await writeFile(at('have.json'), out);
    const saved = await bullion(
      'save',
      at('delta.tar'),
      from('40'),
      from('41'),
      '--have',
      at('have.json'),
      '--arch',
      'amd64',
    );
    expect(saved.code).toBe(exitCodes.done);
    expect((await stat(at('delta.tar'))).size).toBeLessThan(128 * 1024);
    const load = ['load', at('delta.tar'), '--to'] as const;
    expect((await bullion(...load, `oci://${target.host}/golden`)).code).toBe(exitCodes.done);
    target.requests.length = 0;
    const refused = await bullion(...load, `oci://${target.host}/elsewhere`);
    expect([refused.code, refused.err]).toEqual([exitCodes.failed, expect.stringMatching(/lacks sha256:.*leaves out/)]);
    expect(target.requests.filter(({ method }) => method !== 'HEAD' && method !== 'GET')).toEqual([]);
  });

  it('accepts a signature of the index that names its image', async () => {
    const place = { host: source.direct, repository: 'disks/multi' };
    const image = await pushDisk(place, noise('multi', 64 * 1024), 'amd64');
    const index = await pushIndex(place, [{ architecture: 'amd64', image }], 'multi');
    const payload = payloadOf(index.digest);
    await pushSignatures(place, index.digest, [{ payload, signature: signBytes(keys, payload) }]);
    const saved = await bullion(
      'save',
      at('multi.tar'),
      `docker://${source.direct}/disks/multi:multi`,
      '--arch',
      'amd64',
    );
    expect(saved.out).toBe(`multi:multi@${image.digest}\n`);
    const { code, err } = await bullion(
      'load',
      at('multi.tar'),
      '--to',
      `oci://${target.host}/x`,
      '--key',
      at('key.pem'),
    );
    expect([code, err]).toEqual([exitCodes.done, expect.stringContaining('an index that lists sha256:')]);
  });
});
