// A disk that is exported into a store of a cloud and imported from there again.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { createCloudStores } from '#test/support/cloud-stores.ts';
import { type Clouds, startClouds } from '#test/support/clouds.ts';

const root = mkdtempSync(join(tmpdir(), 'bullion-to-cloud-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const run = (spec: object, { endpoints }: Clouds) => {
  const { signal } = new AbortController();
  const whole = { scratchDir: join(root, 'scratch'), allowedAddresses: ['127.0.0.0/8'], clouds: endpoints, ...spec };
  const send = () => Promise.resolve();
  return runTransfer(TransferSpec.parse(whole), { run: 'run-1', signal, send, log: () => {} });
};

it.each<[cloud: 'googleStorage' | 'azureStorage', secret: (clouds: Clouds) => Record<string, string>]>([
  ['googleStorage', ({ google }) => ({ 'credentials.json': JSON.stringify(google.keyFile) })],
  ['azureStorage', ({ azure }) => ({ sasToken: azure.sas() })],
])('a disk goes into %s and comes back', async (cloud, secret) => {
  const { respond, objects } = createCloudStores();
  const clouds = await startClouds({ store: respond });
  const secretDir = mkdtempSync(join(root, 'secret-'));
  for (const [key, text] of Object.entries(secret(clouds))) writeFileSync(join(secretDir, key), text);
  const access = { region: 'us-east-1', pathStyle: true, secretDir, secretName: 'store' };
  const object = { endpoint: clouds.endpoints[cloud], bucket: 'images', key: 'disks/root.qcow2', ...access };
  const disk = Buffer.concat([randomBytes(6 * 2 ** 20), Buffer.alloc(2 ** 20), randomBytes(2 ** 20)]);
  const [path, target] = [join(secretDir, 'from.img'), join(secretDir, 'to.img')];
  writeFileSync(path, disk);
  const form = { format: 'qcow2', compression: 'none' };
  const source = { type: 'volume', path };
  try {
    const made = await run({ mode: 'export', source, export: { form, object } }, clouds);
    expect(made).toMatchObject({ outcome: 'succeeded', object: { isConfirmed: false } });
    expect([...objects.keys()]).toEqual(['disks/root.qcow2']);
    const into = { path: target, volumeMode: 'Filesystem', capacityBytes: 2 ** 24 };
    const back = await run({ mode: 'import', source: { type: 's3', ...object }, target: into }, clouds);
    expect(back).toMatchObject({ outcome: 'succeeded' });
    expect(readFileSync(target).equals(disk)).toBe(true);
    await run({ mode: 'discard', source: { type: 'blank' }, export: { form, object } }, clouds);
    expect(objects.size).toBe(0);
  } finally {
    await clouds.close();
  }
});
