// Mirrors as transfers meet them: real registries, one of which is down, cuts connections, lies, or wants a login.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { runTransfer } from '#shared/transfer/run.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { pushDisk, sha256 } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';
import { transferSpec } from '#test/support/registry/transfer.ts';

const directory = temporaryDirectory();
const quiet = { run: 'test', signal: new AbortController().signal, send: () => Promise.resolve(), log: () => {} };
const disk = noise('mirrored', 6 * 1024 * 1024);
const repository = 'disks/fedora';
/** Nobody listens there. */
const gone = '127.0.0.1:9';

describe.skipIf(!hasRegistry())('an image with mirrors', () => {
  let own: TestRegistry;
  let mirror: TestRegistry;
  let closed: TestRegistry;
  let digest: string;
  beforeAll(async () => {
    [own, mirror, closed] = await Promise.all([startRegistry(), startRegistry(), startRegistry({ withLogin: true })]);
    for (const { direct: host } of [own, mirror]) ({ digest } = await pushDisk({ host, repository }, disk, 'one'));
  });
  afterEach(() => {
    for (const registry of [own, mirror]) {
      registry.intercept = undefined;
      registry.cutAfter = undefined;
      registry.requests.length = 0;
    }
  });
  afterAll(() => Promise.all([own, mirror, closed].map((registry) => registry.close())));

  /** Of `docker://<host>/disks/fedora<rest>`, from these hosts in order. */
  const take = async (host: string, rest: string, hosts: readonly string[], secretDir?: string) => {
    const path = join(directory, `out-${Math.random()}.img`);
    const places = hosts.map((at) => ({ host: at, repository, plainHttp: true }));
    const spec = transferSpec(`docker://${host}/${repository}${rest}`, path, {
      retries: 1,
      ...(secretDir === undefined ? {} : { secretDir }),
    });
    const source = { ...spec.source, places, ...(secretDir === undefined ? {} : { secretName: 'login' }) };
    const report = await runTransfer({ ...spec, source } as typeof spec, quiet);
    return report.outcome === 'succeeded' ? sha256(readFileSync(path)) : `${report.reason}: ${report.message}`;
  };
  /** What the report says of it. */
  const placeOf = async (hosts: readonly string[]) => {
    const path = join(directory, `out-${Math.random()}.img`);
    const spec = transferSpec(`docker://${own.host}/${repository}:one`, path, { retries: 1 });
    const places = hosts.map((host) => ({ host, repository, plainHttp: true }));
    const report = await runTransfer({ ...spec, source: { ...spec.source, places } } as typeof spec, quiet);
    return report.outcome === 'succeeded' ? report.servedFrom : report.message;
  };
  const blobsOf = ({ requests }: TestRegistry) => requests.filter(({ path }) => path.includes('/blobs/'));

  it('is fetched from the first place, and the registry itself is not asked', async () => {
    expect(await take(own.host, ':one', [mirror.host, own.host])).toBe(sha256(disk));
    expect(own.requests).toEqual([]);
  });

  it('is fetched from the registry where no mirror answers', async () => {
    expect(await take(own.host, ':one', [gone, mirror.host, own.host])).toBe(sha256(disk));
    mirror.intercept = (_, response) => {
      response.writeHead(404).end();
      return true;
    };
    expect(await take(own.host, ':one', [gone, mirror.host, own.host])).toBe(sha256(disk));
    expect(blobsOf(own)).not.toEqual([]);
  });

  it('is fetched from a mirror though the registry is gone', async () => {
    expect(await take(gone, `@${digest}`, [mirror.host, gone])).toBe(sha256(disk));
  });

  it('continues elsewhere from the byte that was reached', async () => {
    mirror.cutAfter = 2 * 1024 * 1024;
    expect(await take(own.host, ':one', [mirror.host, own.host])).toBe(sha256(disk));
    const [rest] = blobsOf(own);
    expect(Number(/bytes=(\d+)-/.exec(rest?.headers.range ?? '')?.[1])).toBeGreaterThanOrEqual(1024 * 1024);
  });

  it('is reported with the places that served it, and why not an earlier one', async () => {
    expect(await placeOf([mirror.host, own.host])).toBe(`${mirror.host}/${repository}`);
    expect(await placeOf([gone, own.host])).toMatch(
      new RegExp(`^${own.host}/${repository} \\(${gone}/${repository}: cannot connect to ${gone}: ECONNREFUSED`),
    );
    mirror.cutAfter = 2 * 1024 * 1024;
    expect(await placeOf([mirror.host, own.host])).toBe(`${mirror.host}/${repository}, then ${own.host}/${repository}`);
    expect(await placeOf([own.host])).toBeUndefined();
  });

  it('is not made of other bytes, whichever place gives them', async () => {
    mirror.intercept = ({ path }, response) => {
      if (!path.includes('/blobs/')) return false;
      response.writeHead(200).end(noise('other', disk.length));
      return true;
    };
    expect(await take(own.host, ':one', [mirror.host, own.host])).toBe(sha256(disk));
    mirror.intercept = ({ path }, response) => {
      if (!path.includes('/manifests/')) return false;
      response.writeHead(200, { 'content-type': 'application/vnd.oci.image.manifest.v1+json' }).end('{"layers":[]}');
      return true;
    };
    expect(await take(own.host, `@${digest}`, [mirror.host, own.host])).toBe(sha256(disk));
  });

  it('names every place where none has it', async () => {
    const problem = await take(gone, ':two', [mirror.host, gone]);
    expect(problem).toContain(`elsewhere: ${mirror.host}`);
    expect(problem).toMatch(/^Source/);
  });

  it('is asked for again where the registry hiccups, although the mirror does not have it', async () => {
    mirror.intercept = (_, response) => {
      response.writeHead(404).end();
      return true;
    };
    let asked = 0;
    own.intercept = (_, response) => {
      asked += 1;
      if (asked !== 2) return false;
      response.writeHead(502).end();
      return true;
    };
    expect(await take(own.host, ':one', [mirror.host, own.host])).toBe(sha256(disk));
  });

  it('gives a mirror no login that is for the registry', async () => {
    const secrets = { basic: { username: 'tester', password: 's3cret-pass' } };
    const dir = join(directory, 'basic');
    mkdirSync(dir);
    for (const [key, value] of Object.entries(secrets.basic)) writeFileSync(join(dir, key), value);
    const problem = await take(gone, ':one', [closed.host], dir);
    expect(problem).toContain('SourceForbidden');
    expect(closed.requests.filter(({ headers }) => headers.authorization !== undefined)).toEqual([]);
  });

  it('logs in at a mirror with its own entry of a Docker configuration', async () => {
    const auth = Buffer.from('tester:s3cret-pass').toString('base64');
    const dir = join(directory, 'docker');
    mkdirSync(dir);
    writeFileSync(join(dir, '.dockerconfigjson'), JSON.stringify({ auths: { [closed.host]: { auth } } }));
    const target = { host: closed.direct, repository, authorization: `Basic ${auth}` };
    await pushDisk(target, disk, 'one');
    expect(await take(gone, ':one', [closed.host, gone], dir)).toBe(sha256(disk));
  });
});
