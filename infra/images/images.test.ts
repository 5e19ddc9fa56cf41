// The images, built without a daemon, pushed to a registry, pulled and run. Needs Debian's tools, a registry, and root for chroot.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type BuiltImage,
  type ImageKind,
  buildImage,
  compileCode,
  imageKinds,
  startedBy,
} from '#infra/images/image.ts';
import { type BlobDescriptor, pushImage, writeLayer } from './layout.ts';
import { buildBootSector } from '#infra/local/demo/boot-disk.ts';
import { kustomizeOutputs } from '#infra/generate/kustomize.ts';
import { manifestOutputs } from '#infra/generate/outputs.ts';
import { buildFilePod } from '#shared/resources/volume-export/children.ts';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { imageRef, testSettings } from '#test/support/builders.ts';
import { ensureBundles } from '#test/support/bundles.ts';
import { noise } from '#test/support/disk.ts';
import { kubeconfigFor } from '#test/support/kubeconfig.ts';
import { fileAnswer, startOrigin } from '#test/support/origin.ts';
import { drawn } from '#test/support/random.ts';
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
let bundleDir: string;
const cacheDir = fileURLToPath(new URL('../../.cache/debian', import.meta.url));
const kindOf = (wanted: ImageKind['name']): ImageKind => imageKinds.find(({ name }) => name === wanted)!;
/** Not in `beforeAll`: tests are named by them. */
const functions = await startedBy(kindOf('functions'));
/** Packed fast: how small an image gets is gzip's. By default not at all, which depends on how the bytes arrive. */
const build = (name: ImageKind['name'], outDir: string, level = 0) =>
  buildImage(kindOf(name), { bundleDir, outDir: join(dir, outDir), cacheDir, level });

/** As set by the image; `chroot` itself is outside of it. */
const environmentOf = ({ Env }: Said, more: readonly string[]): Record<string, string> => {
  const env = Object.fromEntries(
    [...Env, ...more].map((text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]),
  );
  return { ...env, PATH: `${env['PATH']}:/usr/sbin:/sbin` };
};

interface Pulled {
  readonly config: BlobDescriptor;
  readonly layers: readonly BlobDescriptor[];
}
interface Said {
  readonly User: string;
  readonly Entrypoint: readonly string[];
  readonly Env: readonly string[];
}
let registry: TestRegistry;

/** A blob or a manifest of the image for transfers, as the registry has it. */
const pull = async (path: string): Promise<Buffer> => {
  const accept = 'application/vnd.oci.image.manifest.v1+json';
  const response = await fetch(`http://${registry.host}/v2/bullion/transfer-job/${path}`, { headers: { accept } });
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
};
/** The image for transfers through the registry, into a separate root file system. */
const pushAndPull = async (image: BuiltImage): Promise<{ readonly rootDir: string } & Pulled> => {
  const repository = 'bullion/transfer-job';
  await pushImage({ ...image, registry: `http://${registry.host}`, repository, tag: 'v1' });
  const rootDir = join(dir, 'root-transfer-job');
  mkdirSync(rootDir);
  const pulled = JSON.parse((await pull('manifests/v1')).toString()) as Pulled;
  for (const { digest } of pulled.layers) {
    const bytes = await pull(`blobs/${digest}`);
    expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).toBe(digest);
    writeFileSync(join(dir, 'layer.tar.gz'), bytes);
    runTool('tar', ['-C', rootDir, '-xzf', join(dir, 'layer.tar.gz')]);
  }
  return { rootDir, ...pulled };
};
/** What the configuration of an image asks for. */
const configOf = ({ layoutDir, manifest }: BuiltImage): Said => {
  const blob = (digest: string): unknown =>
    JSON.parse(readFileSync(join(layoutDir, 'blobs', 'sha256', digest.replace('sha256:', '')), 'utf8'));
  const { config } = blob(manifest.digest) as Pulled;
  return (blob(config.digest) as { readonly config: Said }).config;
};

beforeAll(async () => {
  if (!canBuild) return;
  ({ dir: bundleDir } = await ensureBundles('functions'));
  registry = await startRegistry();
}, 600_000);
afterAll(async () => {
  await registry?.close();
  rmSync(dir, { recursive: true, force: true });
});

it.each(imageKinds)('the Dockerfile of $name builds the same image', async (kind) => {
  const { name, entrypoint, user, packages } = kind;
  const text = readFileSync(join(import.meta.dirname, `${name}.Dockerfile`), 'utf8');
  expect(JSON.parse(/^ENTRYPOINT (.+)$/m.exec(text)?.[1] ?? '')).toEqual(entrypoint);
  expect(/^USER (.+)$/m.exec(text)?.[1]).toBe(user);
  const [node, program, ...told] = JSON.parse(/^RUN (\[.*code-cache.*\])$/m.exec(text)?.[1] ?? '[]') as string[];
  expect([node, program, ...told]).toEqual([
    'node',
    '/app/code-cache.mjs',
    user.split(':')[0],
    ...(await startedBy(kind)),
  ]);
  const installed = /apt-get install -y --no-install-recommends ([^\\]+)/.exec(text)?.[1]?.trim().split(' ') ?? [];
  const ofNode = kindOf('functions').packages;
  for (const wanted of packages.filter((one) => !ofNode.includes(one))) expect(installed).toContain(wanted);
});

interface Started {
  readonly where: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

/** Every container of the manifests, and those that functions create with the settings in them. */
const containers = ((): readonly Started[] => {
  const files = { ...manifestOutputs(), ...kustomizeOutputs(manifestOutputs()) };
  const pods = (value: unknown): readonly Omit<Started, 'where'>[] => {
    if (typeof value !== 'object' || value === null) return [];
    return Object.entries(value).flatMap(([key, one]: [string, unknown]) =>
      /^(init)?containers$/i.test(key) && Array.isArray(one) ? (one as Started[]) : pods(one),
    );
  };
  const installed = Object.entries(files).flatMap(([where, text]) =>
    parseAllDocuments(text).flatMap((document) => pods(document.toJS()).map((one) => ({ ...one, where }))),
  );
  const given = new Set(installed.flatMap(({ env = [] }) => env.filter(({ name }) => name === 'TRANSFER_COMMAND')));
  const commands = new Set([...given].map(({ value = '' }) => value));
  const made = [...commands].flatMap((command) => {
    const settings = { ...testSettings, transferCommand: command.split(' ') };
    const job = buildTransferJob({ mode: 'import', owner: imageRef, source: { type: 'blank' }, retries: 0 }, settings);
    const exporter = buildFilePod(
      { ref: imageRef } as never,
      { is: 'local', claimName: 'export', podName: 'export' },
      settings,
    );
    return [
      ...pods(job).map((one) => ({ ...one, where: `a Job of ${command}` })),
      ...pods(exporter).map((one) => ({ ...one, where: 'the pod of an export' })),
    ];
  });
  return [...installed.filter(({ image }) => image !== undefined), ...made];
})();

/** The program of a container, by default that of its image. */
const startOf = ({ image, command, args = [] }: Started) => {
  const kind = kindOf(/^bullion\/([a-z-]+):/.exec(image)?.[1] as ImageKind['name']);
  return { kind, argv: [...(command ?? kind.entrypoint), ...args] };
};

it.each(containers)('the program that $where starts with $args is in its image, $image', async (container) => {
  const { kind, argv } = startOf(container);
  const [program, file = '', name = ''] = argv;
  // Node is all that both images have for certain: no shell, and no coreutils.
  expect(program).toBe('node');
  expect(['-e', '/app/start.mjs']).toContain(file);
  const known = file === '-e' ? [name] : await startedBy(kind);
  expect(known).toContain(name);
});

it('every function and every Job is checked', () => {
  const names = containers.map((one) => startOf(one).argv.at(2));
  expect(names).toEqual(expect.arrayContaining([...functions, 'transfer-job']));
  expect(containers.map(({ where }) => where)).toContain('the pod of an export');
});

describe.skipIf(!canBuild)('the image for functions', () => {
  let rootDir: string;
  let said: Said;
  beforeAll(async () => {
    const image = await build('functions', 'image-functions');
    rootDir = image.rootDir;
    said = configOf(image);
    writeFileSync(join(rootDir, 'tmp', 'kubeconfig'), kubeconfigFor());
  }, 600_000);

  /** Runs until it is ready, then terminates it: the messages of Node about compiled code, and the exit code. */
  const runAs = async (user: string, name: string): Promise<{ readonly words: string; readonly code: unknown }> => {
    const [program = '', ...args] = said.Entrypoint;
    const child = spawn('chroot', [`--userspec=${user}`, rootDir, program, ...args, name], {
      env: environmentOf(said, [
        ...['', 'EVENTS_', 'IMPORT_', 'METRICS_', 'ADMISSION_'].map((which) => `${which}PORT=0`),
        'KUBECONFIG=/tmp/kubeconfig',
        'HOST=127.0.0.1',
        'NODE_DEBUG_NATIVE=COMPILE_CACHE',
      ]),
    });
    let words = '';
    child.stderr.on('data', (chunk: Buffer) => void (words += chunk.toString()));
    const ended = new Promise((resolve) => child.once('exit', resolve));
    try {
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
      const { message, url } = JSON.parse((await lines.next()).value as string) as { message: string; url: string };
      expect(message).toBe('listening');
      // The process with every function waits for the certificate of admission.
      expect((await fetch(`${url}/readyz`)).status).toBe(name === 'single' ? 503 : 200);
    } finally {
      child.kill('SIGTERM');
    }
    return { code: await ended, words };
  };
  const accepted = (name: string): RegExp => new RegExp(`/app/${name}\\.mjs was accepted`);

  // All are made in the same way; `infra/bundle` starts each of them.
  it.each(drawn(functions, 1 / 4))(
    'starts %s, whose code is already compiled, as its configured user',
    async (name) => {
      const { code, words } = await runAs(said.User, name);
      expect(code).toBe(0);
      for (const file of ['start', name]) expect(words).toMatch(accepted(file));
    },
  );

  it('starts as any other user, such as one that OpenShift assigns, without the compile cache', async () => {
    const { code, words } = await runAs('1000680000:0', 'initialize');
    expect(code).toBe(0);
    expect(words).not.toMatch(accepted('initialize'));
  });

  it('lists its functions when an unknown one is requested', () => {
    const [program = '', ...args] = said.Entrypoint;
    const { status, stderr } = spawnSync('chroot', [rootDir, program, ...args, 'other'], {
      encoding: 'utf8',
      env: environmentOf(said, []),
    });
    expect([status, stderr]).toEqual([64, expect.stringContaining('initialize')]);
  });
});

describe.skipIf(!canBuild)('the image for transfers', () => {
  const kind = kindOf('transfer-job');
  let image: BuiltImage;
  let rootDir: string;
  let layers: Pulled['layers'];

  const inside = (...argv: readonly string[]) =>
    spawnSync('chroot', [`--userspec=${kind.user}`, rootDir, ...argv], {
      encoding: 'utf8',
      env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin' },
    });

  beforeAll(async () => {
    image = await build('transfer-job', 'first', 1);
    ({ rootDir, layers } = await pushAndPull(image));
  }, 1_200_000);

  it('has the same layer when it is built again at another time and in another order', async () => {
    const app = join(dir, 'first', 'application');
    const copy = join(dir, 'copy');
    for (const name of readdirSync(join(app, 'app')).toReversed())
      cpSync(join(app, 'app', name), join(copy, 'app', name), { recursive: true });
    chmodSync(join(copy, 'app'), statSync(join(app, 'app')).mode);
    const { digest } = await writeLayer(join(dir, 'again'), copy, 1);
    expect(digest).toBe(layers.at(-1)?.digest);
  });

  it('contains the same compile cache when it is built again', async () => {
    const app = join(rootDir, 'app');
    const digests = () => {
      const files = readdirSync(join(app, 'code'), { recursive: true, withFileTypes: true }).filter((one) =>
        one.isFile(),
      );
      const entries = files.map((one) => {
        const hash = createHash('sha256').update(readFileSync(join(one.parentPath, one.name)));
        return [join(one.parentPath, one.name), hash.digest('hex')] as const;
      });
      return Object.fromEntries(entries);
    };
    const before = digests();
    expect(Object.keys(before).length).toBeGreaterThan(1);
    await compileCode(kind, rootDir);
    expect(digests()).toEqual(before);
  });

  it('starts the configured program', () => {
    const said = configOf(image);
    expect(said).toMatchObject({ User: '107:107', Entrypoint: ['node', '/app/start.mjs', 'transfer-job'] });
    const { status, stderr } = inside(...said.Entrypoint);
    expect(stderr).toContain('BULLION_TRANSFER: is required');
    expect(status).toBe(1);
  });

  it('contains every program that its containers start', () => {
    const own = containers.map(startOf).filter((one) => one.kind.name === kind.name);
    const programs = [...new Set(own.map(({ argv }) => argv[0] ?? ''))];
    expect(programs.filter((program) => inside(program, '--version').status !== 0)).toEqual([]);
  });

  it('contains every tool that a transfer starts', () => {
    const tools = ['qemu-img', 'fallocate', 'xz', 'zstd'];
    expect(tools.filter((tool) => inside(tool, '--version').status !== 0)).toEqual([]);
  });

  it('moves a disk from a server into a volume, and writes its report', async () => {
    const bytes = noise('image', 2 ** 20);
    writeFileSync(join(rootDir, 'tmp', 'disk.raw'), bytes);
    const made = inside('qemu-img', 'convert', '-f', 'raw', '-O', 'qcow2', '-c', '/tmp/disk.raw', '/tmp/disk.qcow2');
    expect(made.status).toBe(0);
    const qcow2 = readFileSync(join(rootDir, 'tmp', 'disk.qcow2'));
    const origin = await startOrigin((request) => fileAnswer(request, qcow2, { etag: '"1"' }));
    for (const folder of ['target', 'scratch']) {
      mkdirSync(join(rootDir, folder));
      chownSync(join(rootDir, folder), 107, 107);
    }
    const job = buildTransferJob(
      {
        mode: 'import',
        owner: imageRef,
        source: { type: 'http', url: `${origin.url}/disk.qcow2` },
        target: { claimName: 'golden', volumeMode: 'Filesystem', capacityBytes: 2 ** 26 },
        retries: 0,
      },
      { ...testSettings, allowedAddresses: ['127.0.0.0/8'] },
    );
    // What has no value here is of the pod, such as its name.
    const told = (job.spec.template.spec.containers[0]?.env ?? []).map(
      ({ name, value }) => `${name}=${value ?? 'one'}`,
    );
    const said = configOf(image);
    const child = spawn('chroot', [`--userspec=${said.User}`, rootDir, ...said.Entrypoint], {
      env: environmentOf(said, [...told, 'BULLION_TERMINATION_LOG=/scratch/report']),
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const code = await new Promise((resolve) => child.once('exit', resolve));
    await origin.close();
    expect(code).toBe(0);
    expect(JSON.parse(readFileSync(join(rootDir, 'scratch', 'report'), 'utf8'))).toMatchObject({
      outcome: 'succeeded',
    });
    expect(readFileSync(join(rootDir, 'target', 'disk.img')).equals(bytes)).toBe(true);
  });

  it('includes a list of its packages', () => {
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

describe.skipIf(!canBuild)('the image for boots', () => {
  it('boots a disk as its user, by BIOS and by UEFI', { timeout: 1_200_000 }, async () => {
    const kind = kindOf('boot-job');
    const { rootDir, sbomFile } = await build(kind.name, 'first');
    const inside = (env: Readonly<Record<string, string>>) =>
      spawnSync('chroot', [`--userspec=${kind.user}`, rootDir, ...kind.entrypoint], {
        encoding: 'utf8',
        env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', ...env },
      });
    mkdirSync(join(rootDir, 'scratch'));
    // Runtimes give it to every container.
    runTool('mknod', ['--mode=666', join(rootDir, 'dev', 'null'), 'c', '1', '3']);
    const disk = join(rootDir, 'scratch', 'disk.img');
    writeFileSync(disk, Buffer.concat([buildBootSector('\r\nhost login:', 1), Buffer.alloc(2 ** 20)]));
    for (const path of [join(rootDir, 'scratch'), disk]) chownSync(path, 107, 107);
    const rows = [
      ['bios', 'ConsoleText', { text: 'login:' }, /passed: its serial console shows "login:"/],
      // The boot sector is none of UEFI: its firmware says so.
      ['efi', 'ConsoleText', { text: 'BdsDxe' }, /passed: its serial console shows "BdsDxe"/],
    ] as const;
    for (const [firmware, until, more, said] of rows) {
      const boot = { until, ...more, timeoutMs: 120_000, memoryMib: 256, firmware };
      const { status, stdout, stderr } = inside({
        BULLION_BOOT: JSON.stringify(boot),
        BULLION_DISK: '/scratch/disk.img',
        BULLION_SCRATCH: '/scratch',
        BULLION_TERMINATION_LOG: '/scratch/report',
      });
      expect(stdout + stderr).toMatch(said);
      expect(status).toBe(0);
      expect(JSON.parse(readFileSync(join(rootDir, 'scratch', 'report'), 'utf8'))).toMatchObject({ outcome: 'passed' });
    }
    expect(readFileSync(sbomFile, 'utf8')).toContain('"qemu-system-x86"');
  });
});
