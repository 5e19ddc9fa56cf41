// Exports to Debian's docker-registry, whose images are imported again and compared with the disk.
import { mkdirSync, openSync, readFileSync, truncateSync, writeFileSync, writeSync, closeSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { layerAround } from '#shared/transfer/export/disk-layer.ts';
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise, writeDisk } from '#test/support/disk.ts';
import { pushDisk, pushIndex } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';
import { transferSpec } from '#test/support/registry/transfer.ts';
import { hasTools, runTool } from '#test/support/tools.ts';

const root = temporaryDirectory();
const mib = 1024 * 1024;
const volume = join(root, 'volume.raw');
const quiet = { run: 'test', signal: new AbortController().signal, send: () => Promise.resolve(), log: () => {} };

describe.skipIf(!hasRegistry() || !hasTools('qemu-img'))('an export to a registry', { timeout: 120_000 }, () => {
  let registry: TestRegistry;
  let closed: TestRegistry;
  beforeAll(async () => {
    [registry, closed] = await Promise.all([startRegistry(), startRegistry({ withLogin: true })]);
    writeDisk(volume, 64 * mib);
    const file = openSync(volume, 'r+');
    writeSync(file, noise('layer', 40 * mib), 0, 40 * mib, 8 * mib);
    closeSync(file);
  });
  afterEach(() => {
    registry.intercept = undefined;
    registry.requests.length = 0;
  });
  afterAll(() => Promise.all([registry, closed].map((one) => one.close())));

  const push = (tag: string, over: { readonly mode?: string; readonly owner?: string; readonly image?: object } = {}) =>
    runTransfer(
      TransferSpec.parse({
        mode: over.mode ?? 'export',
        source: { type: 'volume', path: volume },
        export: {
          form: { format: 'qcow2' },
          image: {
            type: 'registry',
            url: `docker://${registry.host}/disks/made:${tag}`,
            plainHttp: true,
            owner: over.owner ?? 'uid',
            ...over.image,
          },
        },
        scratchDir: join(root, 'scratch'),
        limits: { retries: 3, idleSeconds: 20 },
        allowedAddresses: ['127.0.0.0/8'],
      }),
      quiet,
    );
  const pulled = async (reference: string): Promise<Buffer> => {
    const path = join(root, `pulled-${Math.random()}.img`);
    const report = await runTransfer(transferSpec(reference, path, { capacityBytes: 128 * mib }), quiet);
    expect(report).toMatchObject({ outcome: 'succeeded' });
    return readFileSync(path);
  };
  const isDisk = async (reference: string): Promise<boolean> => (await pulled(reference)).equals(readFileSync(volume));
  const statusOf = async (tag: string): Promise<number> => {
    const headers = { accept: 'application/vnd.oci.image.manifest.v1+json' };
    return (await fetch(`http://${registry.direct}/v2/disks/made/manifests/${tag}`, { headers })).status;
  };
  const patches = () => registry.requests.filter(({ method }) => method === 'PATCH');

  it('is a containerDisk, with the same digest each time', async () => {
    const report = await push('one');
    const digest = report.outcome === 'succeeded' ? report.object?.digest : undefined;
    expect(report).toMatchObject({
      outcome: 'succeeded',
      inspection: { format: 'qcow2', virtualSize: 64 * mib },
      object: { digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/), isConfirmed: true },
    });
    expect(await isDisk(`docker://${registry.host}/disks/made:one`)).toBe(true);
    expect(await isDisk(`docker://${registry.host}/disks/made@${digest}`)).toBe(true);
    expect(await push('one')).toMatchObject({ outcome: 'succeeded', object: { digest } });
  });

  it('continues a chunk where the registry has it, and begins none anew', async () => {
    let cuts = 0;
    registry.intercept = ({ method }, response) => {
      if (method !== 'PATCH' || cuts >= 2) return false;
      cuts += 1;
      response.destroy();
      return true;
    };
    expect(await push('cut')).toMatchObject({ outcome: 'succeeded' });
    expect(registry.requests.filter(({ method }) => method === 'POST')).toHaveLength(2);
    expect(patches().length).toBeGreaterThan(4);
    expect(await isDisk(`docker://${registry.host}/disks/made:cut`)).toBe(true);
  });

  it('succeeds where only the answers to its requests are lost', async () => {
    const dropped = new Set<string>();
    registry.intercept = ({ method, path }, response) => {
      const what = `${method} ${path.includes('/manifests/') ? 'manifest' : 'blob'}`;
      const isOnce = (method === 'PATCH' || method === 'PUT') && !dropped.has(what);
      if (!isOnce) return false;
      dropped.add(what);
      // The registry gets the request; its answer ends nowhere.
      response.writeHead = () => response;
      response.write = () => true;
      response.end = () => response.destroy();
      return false;
    };
    expect(await push('lost')).toMatchObject({ outcome: 'succeeded' });
    expect([...dropped].toSorted()).toEqual(['PATCH blob', 'PUT blob', 'PUT manifest']);
    registry.intercept = undefined;
    expect(await isDisk(`docker://${registry.host}/disks/made:lost`)).toBe(true);
  });

  it('replaces no image of somebody else', async () => {
    await pushDisk({ host: registry.direct, repository: 'disks/made' }, noise('other', mib), 'taken');
    expect(await push('taken')).toMatchObject({
      outcome: 'failed',
      reason: 'TargetFailed',
      retryable: false,
      message: expect.stringMatching(/disks\/made:taken exists already, with digest sha256:.*: choose another tag/),
    });
    await pushIndex({ host: registry.direct, repository: 'disks/made' }, [], 'index');
    expect(await push('index')).toMatchObject({ outcome: 'failed', reason: 'TargetFailed' });
    await push('mine');
    expect(await push('mine', { owner: 'another' })).toMatchObject({ outcome: 'failed', reason: 'TargetFailed' });
  });

  it('replaces no image that came while it was sent', async () => {
    let isPushed = false;
    registry.intercept = ({ method }) => {
      if (method !== 'PATCH' || isPushed) return false;
      isPushed = true;
      void pushDisk({ host: registry.direct, repository: 'disks/made' }, noise('late', 4096), 'late');
      return false;
    };
    expect(await push('late')).toMatchObject({ outcome: 'failed', message: expect.stringContaining('exists already') });
  });

  it('is removed where the disk was written to meanwhile, but not what others pushed', async () => {
    await push('torn');
    expect(await push('torn', { mode: 'discard' })).toMatchObject({ outcome: 'succeeded' });
    expect(await statusOf('torn')).toBe(404);
    expect(await push('taken', { mode: 'discard' })).toMatchObject({ outcome: 'succeeded' });
    expect(await statusOf('taken')).toBe(200);
  });

  it('logs in, and says what to check where it may not', async () => {
    const secretDir = join(root, 'login');
    mkdirSync(secretDir);
    writeFileSync(join(secretDir, 'username'), 'tester');
    writeFileSync(join(secretDir, 'password'), 's3cret-pass');
    const url = `docker://${closed.host}/disks/made:one`;
    expect(await push('one', { image: { url } })).toMatchObject({
      outcome: 'failed',
      message: expect.stringMatching(/401.*secretRef/),
    });
    expect(await push('one', { image: { url, secretDir, secretName: 'login' } })).toMatchObject({
      outcome: 'succeeded',
    });
  });
});

describe('the layer of a disk', () => {
  it.each([5, 512, 2 ** 33 - 1, 2 ** 33, 5 * 2 ** 40])('is an archive that tar lists: %d bytes', async (size) => {
    const { head, tail } = layerAround('disk.qcow2', size);
    const path = join(root, `layer-${size}.tar`);
    writeFileSync(path, head);
    truncateSync(path, head.length + size + tail.length);
    const listed = runTool('tar', ['-tv', '--numeric-owner', '-f', path]);
    expect(listed.toString().trim().split('\n')).toEqual([
      expect.stringMatching(/^dr-xr-xr-x 107\/107 +0 1970-01-01 00:00 disk\/$/),
      expect.stringMatching(new RegExp(`^-r--r----- 107/107 +${size} 1970-01-01 00:00 disk/disk.qcow2$`)),
    ]);
  });
});
