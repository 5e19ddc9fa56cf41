// The images, built without a daemon, through a registry and run from what comes out of it. Needs Debian's tools, a registry, and root for chroot.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildBundles } from '#infra/bundle/build.ts';
import { type BuiltImage, buildImage, imageKinds } from '#infra/images/image.ts';
import type { Descriptor } from '#infra/images/layout.ts';
import { pushImage } from '#infra/images/push.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';
import { runTool } from '#test/support/tools.ts';

/** Package lists too: a machine without them can download nothing. */
const canBuild =
  ['apt-get', 'dpkg-deb', 'tar'].every((tool) => spawnSync(tool, ['--version']).status === 0) &&
  spawnSync('apt-cache', ['show', 'qemu-utils']).status === 0 &&
  spawnSync('apt-get', ['download', '--print-uris', 'libc6']).status === 0 &&
  process.getuid?.() === 0 &&
  hasRegistry();
if (!canBuild) console.warn('skipped: images are built as root on Debian after apt-get update');

const dir = mkdtempSync(join(tmpdir(), 'bullion-images-'));
const cacheDir = fileURLToPath(new URL('../../.cache/debian', import.meta.url));
const kind = imageKinds.find(({ name }) => name === 'transfer-job')!;

interface Pulled {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

describe.skipIf(!canBuild)('the image for transfers', () => {
  let registry: TestRegistry;
  let image: BuiltImage;
  let again: BuiltImage;
  const rootDir = join(dir, 'root');

  const pull = async (path: string): Promise<Buffer> => {
    const accept = 'application/vnd.oci.image.manifest.v1+json';
    const response = await fetch(`http://${registry.host}/v2/bullion/transfer-job/${path}`, { headers: { accept } });
    expect(response.status).toBe(200);
    return Buffer.from(await response.arrayBuffer());
  };
  const inside = (...argv: readonly string[]) =>
    spawnSync('chroot', [`--userspec=${kind.user}`, rootDir, ...argv], {
      encoding: 'utf8',
      env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin' },
    });

  beforeAll(async () => {
    const bundleDir = join(dir, 'functions');
    await buildBundles(bundleDir);
    const build = (name: string) => buildImage(kind, { bundleDir, outDir: join(dir, name), cacheDir });
    image = await build('first');
    again = await build('second');
    registry = await startRegistry();
    await pushImage({ ...image, registry: `http://${registry.host}`, repository: 'bullion/transfer-job', tag: 'v1' });
    mkdirSync(rootDir);
    const { layers } = JSON.parse((await pull('manifests/v1')).toString()) as Pulled;
    for (const { digest } of layers) {
      writeFileSync(join(dir, 'layer.tar.gz'), await pull(`blobs/${digest}`));
      runTool('tar', ['-C', rootDir, '-xzf', join(dir, 'layer.tar.gz')]);
    }
  }, 1_200_000);

  afterAll(async () => {
    await registry?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  it('is the same when it is built again', () => {
    expect(again.manifest).toEqual(image.manifest);
  });

  it('comes out of the registry as it went in', async () => {
    const { layers } = JSON.parse((await pull('manifests/v1')).toString()) as Pulled;
    for (const { digest } of layers) {
      const hash = createHash('sha256').update(await pull(`blobs/${digest}`));
      expect(`sha256:${hash.digest('hex')}`).toBe(digest);
    }
  });

  it('starts what its configuration says', async () => {
    const { config } = JSON.parse((await pull('manifests/v1')).toString()) as Pulled;
    const { config: said } = JSON.parse((await pull(`blobs/${config.digest}`)).toString()) as {
      config: { Entrypoint: string[]; User: string };
    };
    expect(said).toMatchObject({ User: '107:107', Entrypoint: ['node', '/app/start.mjs', 'transfer-job'] });
    const { status, stderr } = inside(...said.Entrypoint);
    expect(stderr).toContain('BULLION_TRANSFER: is required');
    expect(status).toBe(1);
  });

  it('has every tool a transfer starts', () => {
    const tools = ['qemu-img', 'fallocate', 'xz', 'zstd'];
    expect(tools.filter((tool) => inside(tool, '--version').status !== 0)).toEqual([]);
  });

  it('moves a disk into a file and says so', () => {
    const target = join(rootDir, 'tmp', 'target');
    mkdirSync(target, { mode: 0o777 });
    spawnSync('chmod', ['777', target]);
    const made = inside('qemu-img', 'create', '-f', 'qcow2', '/tmp/disk.qcow2', '16M');
    expect(made.status).toBe(0);
    const { status, stdout } = inside('qemu-img', 'convert', '-O', 'raw', '/tmp/disk.qcow2', '/tmp/target/disk.img');
    expect([status, stdout]).toEqual([0, '']);
    expect(readFileSync(join(target, 'disk.img')).length).toBe(16 * 2 ** 20);
  });

  it('comes with a list of what is in it', () => {
    const sbom = JSON.parse(readFileSync(image.sbomFile, 'utf8')) as {
      spdxVersion: string;
      packages: { name: string; versionInfo: string }[];
    };
    expect(sbom.spdxVersion).toBe('SPDX-2.3');
    const names = sbom.packages.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['qemu-utils', 'libc6', 'node', 'hono', '@aws-sdk/client-s3']));
    expect(names).not.toContain('vitest');
    for (const { versionInfo } of sbom.packages) expect(versionInfo).not.toBe('');
  });
});
