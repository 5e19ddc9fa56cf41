// What a function contains and what it loads at its start.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type * as OpenPgp from 'openpgp';
import type * as SigstoreSpecs from '@sigstore/protobuf-specs';
import type * as SigstoreVerify from '@sigstore/verify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Bundle, listFunctions } from '#infra/bundle/build.ts';
import { jobFunctions } from '#infra/generate/wiring.ts';
import { ensureBundles } from '#test/support/bundles.ts';
import { kubeconfigFor } from '#test/support/kubeconfig.ts';
import { createSigstore } from '#test/support/sigstore.ts';

const dir = mkdtempSync(join(tmpdir(), 'bullion-bundles-'));
const children: ChildProcess[] = [];
let bundles: readonly Bundle[];
let functionsDir: string;
/** Not in vitest's directory: `beforeAll` has to be done first. */
const names = await listFunctions();
const servers = names.filter((name) => !jobFunctions.some((job) => job.name === name));

beforeAll(async () => {
  ({ bundles, dir: functionsDir } = await ensureBundles('functions'));
  writeFileSync(join(dir, 'kubeconfig'), kubeconfigFor());
  writeFileSync(join(dir, 'note.cjs'), noteLoaded);
}, 600_000);

afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

const inputsOf = (name: string): readonly string[] =>
  Object.entries(bundles.find((bundle) => bundle.name === name)?.inputs ?? {}).flatMap(([path, bytes]) =>
    bytes > 0 ? [path] : [],
  );

/** Required before a function: it prints which of Node's own modules the function has loaded. */
const noteLoaded = `const { write } = process.stdout;
process.stdout.write = function (...given) {
  process.stdout.write = write;
  require('node:fs').writeFileSync(process.env.LOADED, JSON.stringify(process.moduleLoadList));
  return write.apply(this, given);
};`;
/** Those that take as long as much of a start. */
const slow = ['crypto', 'tls', 'https', 'http2', 'fs/promises', 'dns/promises', 'internal/deps/undici/undici'];

/** Code, not schemas: after tree shaking a few hundred bytes of servers and headers are left of the generated client. */
const generatedClient = /client-node\/dist\/gen\/(models|apis|types)\//;
const devOnly = /node_modules\/(@marcbachmann\/cel-js|@peculiar|vitest|fast-check|esbuild)\//;

describe('the import graph', () => {
  it.each(names)('bundles %s into one file, without unused code', (name) => {
    const inputs = inputsOf(name);
    expect(inputs).toContain(`functions/${name}/index.ts`);
    const unwanted = [
      /node_modules\/(undici|socks|js-yaml)\//,
      /client-node\//,
      /node_modules\/@aws-sdk\//,
      /node_modules\/@smithy\//,
      /node_modules\/(openpgp|@sigstore)\//,
      /zod\/v4\/locales\/(?!en|index)/,
      devOnly,
    ];
    for (const pattern of unwanted) expect(inputs.filter((path) => pattern.test(path))).toEqual([]);
    expect(inputs.filter((path) => /^(infra|test)\//.test(path))).toEqual([]);
  });

  it('contains no Kubernetes client in a transfer, and no data plane with threads in a server', () => {
    for (const { name } of jobFunctions)
      expect(inputsOf(name).filter((path) => path.includes('client-node'))).toEqual([]);
    for (const name of servers) expect(inputsOf(name)).not.toContain('shared/transfer/decode/segment-work.ts');
  });

  it('contains no generated code in the client of clusters', () => {
    expect(inputsOf('kubernetes')).toContain('node_modules/@kubernetes/client-node/dist/config.js');
    expect(inputsOf('kubernetes').filter((path) => generatedClient.test(path))).toEqual([]);
  });

  it('keeps lazily loaded packages next to the functions', () => {
    expect(bundles.filter(({ role }) => role !== 'function').map(({ name }) => name)).toEqual(
      expect.arrayContaining(['worker-worker', 'worker-digest-worker', 'aws-sdk', 'kubernetes', 'openpgp', 'undici']),
    );
    const text = readFileSync(join(functionsDir, 'transfer-job.mjs'), 'utf8');
    for (const file of ['worker-worker.mjs', 'worker-digest-worker.mjs', 'aws-sdk.mjs']) expect(text).toContain(file);
  });

  it.each([
    ['aws-sdk', 'S3Client'],
    ['kubernetes', 'KubeConfig'],
    ['openpgp', 'readKeys'],
    ['sigstore-bundle', 'bundleFromJSON'],
    ['sigstore-verify', 'Verifier'],
    ['undici', 'request'],
  ])('includes the lazily loaded package %s completely', async (name, part) => {
    const late = (await import(join(functionsDir, `${name}.mjs`))) as Record<string, unknown>;
    expect(typeof late[part]).toBe('function');
  });
});

describe('the lazily loaded verification of signatures', () => {
  it('verifies an OpenPGP signature', async () => {
    const { generateKey, createCleartextMessage, sign } = await import('openpgp');
    const { privateKey, publicKey } = await generateKey({ userIDs: [{ name: 'x' }], format: 'object' });
    const message = await createCleartextMessage({ text: 'x' });
    const signed = await sign({ message, signingKeys: privateKey });
    const late = (await import(join(functionsDir, 'openpgp.mjs'))) as typeof OpenPgp;
    const key = await late.readKeys({ armoredKeys: publicKey.armor() });
    const read = await late.readCleartextMessage({ cleartextMessage: signed });
    const { signatures } = await late.verify({ message: read, verificationKeys: key });
    expect(await signatures[0]?.verified).toBe(true);
  });

  it('reads a sigstore trust root', async () => {
    const { TrustedRoot } = (await import(join(functionsDir, 'sigstore-specs.mjs'))) as typeof SigstoreSpecs;
    const late = (await import(join(functionsDir, 'sigstore-verify.mjs'))) as typeof SigstoreVerify;
    const { root } = await createSigstore();
    expect(late.toTrustMaterial(TrustedRoot.fromJSON(JSON.parse(root))).tlogs).toHaveLength(1);
  });
});

describe('a bundled function', () => {
  const start = (name: string) => {
    const child = spawn(process.execPath, ['--require', join(dir, 'note.cjs'), join(functionsDir, 'start.mjs'), name], {
      env: {
        PATH: process.env['PATH'],
        KUBECONFIG: join(dir, 'kubeconfig'),
        PORT: '0',
        LOADED: join(dir, `${name}.loaded`),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    return child;
  };

  it.each(servers)('%s listens, becomes ready, answers, and terminates on SIGTERM', async (name) => {
    const child = start(name);
    const lines = createInterface(child.stdout!)[Symbol.asyncIterator]();
    const line = JSON.parse((await lines.next()).value as string) as { message: string; url: string };
    expect(line.message).toBe('listening');
    const loaded = JSON.parse(readFileSync(join(dir, `${name}.loaded`), 'utf8')) as readonly string[];
    expect(loaded).toContain('NativeModule net');
    expect(slow.filter((one) => loaded.includes(`NativeModule ${one}`))).toEqual([]);
    expect((await fetch(`${line.url}/readyz`)).status).toBe(200);
    // Nothing there is a review or an event; 400 and 405 are the chassis' own words, 404 is that of a router.
    const answer = await fetch(line.url, { method: 'POST', body: '{}' });
    expect([400, 404]).toContain(answer.status);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });

  it.each([
    ['transfer-job', 'BULLION_TRANSFER'],
    ['boot-job', 'BULLION_BOOT'],
  ])('%s reports which environment variables are missing', (job, variable) => {
    const { status, stderr } = spawnSync(process.execPath, [join(functionsDir, 'start.mjs'), job], {
      env: {},
      encoding: 'utf8',
    });
    expect(status).toBe(1);
    expect(stderr).toContain(`${variable}: is required`);
  });

  it.each([[[]], [['../secrets']], [['nothing']]])(
    '%j names no function: the launcher lists those that exist',
    (args) => {
      const { status, stderr } = spawnSync(process.execPath, [join(functionsDir, 'start.mjs'), ...args], {
        encoding: 'utf8',
      });
      expect(status).toBe(64);
      expect(stderr).toContain('initialize');
    },
  );
});
