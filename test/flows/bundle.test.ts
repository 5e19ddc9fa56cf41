// Images over an air gap: saved from one side, a namespace here, and loaded on the other one, bytes compared; signatures are those of the vendor.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand, GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exitCodes } from '#cli/command.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { imageTypes } from '#shared/catalogue/image.ts';
import { configMaps, namespaces, secrets } from '#shared/api/foreign/core.ts';
import { runBullion } from '#test/support/bullion.ts';
import { ecKey, payloadOf, pemOf, pushSignatures, signBytes } from '#test/support/cosign.ts';
import { noise } from '#test/support/disk.ts';
import { type GoldenRegistry, startGoldenRegistry } from '#test/support/golden-registry.ts';
import { createGoldenFlow, pointsTo, untilOffered, versionOf } from '#test/support/golden.ts';
import { hasRegistry } from '#test/support/registry/server.ts';

const here = 'golden-images';
const inside = 'inside';

describe.skipIf(!hasRegistry())('a bundle of a cluster', { timeout: 240_000 }, () => {
  let dir: string;
  let golden: GoldenRegistry;
  let version: string;
  const vendor = ecKey();
  const jammy = noise('jammy', 1024 * 1024);
  const at = (name: string): string => join(dir, name);
  const bullion = (namespace: string, ...args: readonly string[]) =>
    runBullion([...args, '--namespace', namespace, '--kubeconfig', golden.cluster.kubeconfigPath]);
  const bundle = (namespace: string, ...args: readonly string[]) =>
    bullion(namespace, 'bundle', ...args, '--plain-http', '--storage-class', 'local');
  const putKeys = (namespace: string) =>
    golden.cluster.kube.create(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace, name: 'vendor' },
      data: { 'cosign.pub': pemOf(vendor) },
    });

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-bundles-'));
    golden = await startGoldenRegistry(here);
    await golden.cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: inside } });
    const { digest } = await golden.push('fedora', 'first');
    version = versionOf('fedora', digest);
    const payload = payloadOf(digest);
    await pushSignatures(golden.target, digest, [{ payload, signature: signBytes(vendor, payload) }]);
    await putKeys(here);
    await golden.cluster.kube.create(goldenImagePolicyKind.type, {
      apiVersion: 'bullion.dev/v1alpha1',
      kind: 'GoldenImagePolicy',
      metadata: { namespace: here, name: 'fedora' },
      spec: {
        dataImportCrons: { names: ['fedora'] },
        channels: [{ name: 'stable', dataSource: 'fedora' }],
        verify: { signature: { cosign: { keys: { configMap: 'vendor' } } } },
      },
    });
    await golden.aCron('fedora');
    await writeFile(at('jammy.img'), jammy);
    await bullion(here, 'upload', 'jammy-22.04', at('jammy.img'), '--storage-class', 'local');
    await untilOffered(golden.flow, 'fedora', version);
    await bundle(here, 'save', at('bundle.tar'), 'jammy-22.04', 'fedora@stable');
  }, 240_000);
  afterAll(async () => {
    await golden?.close();
    await rm(dir, { recursive: true, force: true });
  });

  const contentOf = async (namespace: string, name: string, length: number): Promise<Buffer> =>
    (await readFile(await diskOf(golden.cluster, { namespace, name }))).subarray(0, length);

  it('is the same file when it is saved again', async () => {
    expect((await bundle(here, 'save', at('again.tar'), 'fedora@stable', 'jammy-22.04')).code).toBe(exitCodes.done);
    expect((await readFile(at('again.tar'))).equals(await readFile(at('bundle.tar')))).toBe(true);
  });

  it('is loaded by uploads once its signatures are found to be good, and a second time does nothing', async () => {
    const refused = await bundle('elsewhere', 'load', at('bundle.tar'));
    expect([refused.code, refused.err]).toEqual([
      exitCodes.failed,
      expect.stringContaining('ConfigMap vendor does not exist'),
    ]);
    expect((await bullion('elsewhere', 'get', 'dv', '-o', 'name')).out).toBe('');
    await putKeys('elsewhere');
    const made = `datavolume/${version}\ndatasource/fedora\nvirtualmachineimage/jammy-22.04\n`;
    expect(await bundle('elsewhere', 'load', at('bundle.tar'))).toMatchObject({ code: exitCodes.done, out: made });
    const flow = createGoldenFlow(golden.cluster.kube, 'elsewhere');
    await flow.until(dataSourceKind.type, 'fedora', pointsTo(version));
    const first = await golden.contentOf(version);
    expect((await contentOf('elsewhere', version, first.length)).equals(first)).toBe(true);
    const image = await golden.cluster.kube.get(imageTypes.harvester, { namespace: 'elsewhere', name: 'jammy-22.04' });
    const claim = image?.status?.children?.volume ?? '';
    expect((await contentOf('elsewhere', claim, jammy.length)).equals(jammy)).toBe(true);
    expect(await bundle('elsewhere', 'load', at('bundle.tar'))).toMatchObject({ code: exitCodes.done, out: made });
    expect((await bundle('elsewhere', 'have')).out).toMatch(/"sha256:[0-9a-f]{64}"/);
  });

  it('is loaded into a registry that crons and policies of the other side follow', async () => {
    await putKeys(inside);
    const { code, out } = await bundle(
      inside,
      'load',
      at('bundle.tar'),
      '--to',
      `oci://${golden.registry.host}/mirror`,
      '--apply',
    );
    expect([code, out]).toEqual([exitCodes.done, 'dataimportcron/fedora created\ngoldenimagepolicy/fedora created\n']);
    await createGoldenFlow(golden.cluster.kube, inside).until(dataSourceKind.type, 'fedora', pointsTo(version));
    const first = await golden.contentOf(version);
    expect((await contentOf(inside, version, first.length)).equals(first)).toBe(true);
    const refused = await bundle(inside, 'load', at('bundle.tar'));
    expect([refused.code, refused.err]).toEqual([
      exitCodes.failed,
      expect.stringContaining('is moved by a cron or a policy'),
    ]);
  });

  it('is loaded into a bucket, as disks with their checksums', async () => {
    const { kube, objectStore } = golden.cluster;
    const { data = {} } = (await kube.get(secrets, { namespace: 'default', name: 'object-store' })) ?? {};
    const [id, key] = [atob(data['accessKeyId'] ?? ''), atob(data['secretKey'] ?? '')];
    await writeFile(at('credentials'), `[default]\naws_access_key_id = ${id}\naws_secret_access_key = ${key}\n`);
    const credentials = { accessKeyId: id, secretAccessKey: key };
    const s3 = new S3Client({
      endpoint: objectStore.url,
      region: objectStore.region,
      forcePathStyle: true,
      credentials,
    });
    await s3.send(new CreateBucketCommand({ Bucket: 'vmimage' }));
    const to = ['--to', 's3://vmimage/golden', '--endpoint', objectStore.url, '--credentials', at('credentials')];
    await writeFile(at('vendor.pem'), pemOf(vendor));
    const out = `s3://vmimage/golden/${version}.img\ns3://vmimage/golden/jammy-22.04.qcow2\n`;
    const load = () => bundle(here, 'load', at('bundle.tar'), ...to, '--skip-signatures');
    expect(await load()).toMatchObject({ code: exitCodes.done, out });
    const sums = await s3.send(new GetObjectCommand({ Bucket: 'vmimage', Key: 'golden/SHA256SUMS' }));
    expect(await sums.Body?.transformToString()).toMatch(
      /^[0-9a-f]{64} {2}fedora-[0-9a-f]{12}\.img\n[0-9a-f]{64} {2}jammy-22\.04\.qcow2\n$/,
    );
    const disk = await s3.send(new GetObjectCommand({ Bucket: 'vmimage', Key: `golden/${version}.img` }));
    expect(Buffer.from((await disk.Body?.transformToByteArray()) ?? []).equals(noise('first', 64 * 1024))).toBe(true);
    expect(await load()).toMatchObject({ code: exitCodes.done, out });
    s3.destroy();
    const unsigned = await bundle(here, 'load', at('bundle.tar'), ...to, '--key', at('vendor.pem'));
    expect([unsigned.code, unsigned.err]).toEqual([exitCodes.failed, expect.stringContaining('jammy-22.04 (sha256:')]);
  });
});
