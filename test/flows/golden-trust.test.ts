// A golden image that people trust, from a registry (cosign) and from a file over HTTP (the real gpg): signed versions that start go through channels,
// one that does not start stays out, one is taken back, and old ones go.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import type { CronSourceSpec } from '#shared/api/cdi/data-import-cron.ts';
import { configMaps, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { runBullion } from '#test/support/bullion.ts';
import {
  ecKey,
  envelopeOf,
  payloadOf,
  pemOf,
  pushAttestations,
  pushSignatures,
  signBytes,
  statementOf,
} from '#test/support/cosign.ts';
import { hasCosign, startCosign } from '#test/support/cosign-program.ts';
import { noise } from '#test/support/disk.ts';
import { type GoldenRegistry, startGoldenRegistry } from '#test/support/golden-registry.ts';
import { untilOffered, versionOf } from '#test/support/golden.ts';
import { type Gpg, startGpg } from '#test/support/gpg.ts';
import { type Machines, startMachines } from '#test/support/machines.ts';
import { type Origin, fileAnswer, startOrigin } from '#test/support/origin.ts';
import { hasRegistry } from '#test/support/registry/server.ts';

const namespace = 'golden-images';
const { type } = goldenImagePolicyKind;
const provenance = 'https://slsa.dev/provenance/v1';
const kinds = ['registry', 'file'] as const;

describe.skipIf(!hasRegistry())('a golden image that people trust', { timeout: 240_000 }, () => {
  let golden: GoldenRegistry;
  let machines: Machines;
  let origin: Origin;
  let gpg: Gpg;
  let signer: string;
  let file: Buffer = Buffer.alloc(0);
  let sums: Buffer = file;
  const vendor = ecKey();
  /** In place of signatures of the same form. */
  const cosign = hasCosign() ? startCosign() : undefined;
  beforeAll(async () => {
    gpg = startGpg();
    signer = gpg.key('vendor');
    origin = await startOrigin((request) =>
      request.path === '/SHA256SUMS' ? { body: sums } : fileAnswer(request, file, {}),
    );
    golden = await startGoldenRegistry(namespace);
    machines = await startMachines(golden.cluster.kube);
    const data = { registry: cosign?.publicKey ?? pemOf(vendor), file: gpg.exported(signer).toString() };
    for (const kind of kinds)
      await golden.cluster.kube.create(configMaps, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { namespace, name: `keys-${kind}` },
        data: { key: data[kind] },
      });
  }, 120_000);
  afterAll(async () => {
    await machines?.stop();
    await golden?.close();
    await origin?.close();
    gpg?.close();
    cosign?.close();
  });

  /** Published and signed by its vendor; the digest of the version. */
  const publishers = {
    registry: async (seed: string): Promise<string> => {
      const { digest } = await golden.push('registry', seed);
      if (cosign !== undefined) {
        const image = `${golden.registry.direct}/${golden.target.repository}@${digest}`;
        cosign.sign(image);
        cosign.attest(image, 'slsaprovenance1');
        return digest;
      }
      const payload = payloadOf(digest);
      await pushSignatures(golden.target, digest, [{ payload, signature: signBytes(vendor, payload) }]);
      await pushAttestations(golden.target, digest, [envelopeOf(vendor, statementOf(digest, provenance))]);
      return digest;
    },
    file: async (seed: string): Promise<string> => {
      file = noise(seed, 64 * 1024);
      const hex = createHash('sha256').update(file).digest('hex');
      sums = gpg.clear(`${hex} *disk.img\n`, signer);
      return `sha256:${hex}`;
    },
  };
  const sourceOf = (kind: (typeof kinds)[number]): CronSourceSpec =>
    kind === 'registry'
      ? { registry: { url: golden.urlOf('registry') } }
      : { http: { url: `${origin.url}/disk.img`, checksumURL: `${origin.url}/SHA256SUMS` } };
  const signatures = {
    registry: { cosign: { keys: { configMap: 'keys-registry' }, attestations: [provenance] } },
    file: { gpg: { keys: { configMap: 'keys-file' } } },
  };
  const bullion = async (...args: readonly string[]) => {
    const to = ['--kubeconfig', golden.cluster.kubeconfigPath, '-n', namespace];
    const { code, out, err } = await runBullion([...args, ...to]);
    return { code, text: out + err };
  };

  it.each(kinds)('goes its whole way: %s', async (kind) => {
    machines.fail(undefined);
    const { kube } = golden.cluster;
    const until = (isSo: (policy: GoldenImagePolicy) => boolean) =>
      golden.flow.until(type, kind, (policy) => policy !== undefined && isSo(policy));
    const versionIn = ({ status }: GoldenImagePolicy, name: string) =>
      status?.versions?.find((one) => one.name === name);
    const checkOf = (policy: GoldenImagePolicy, name: string, check: string) =>
      versionIn(policy, name)?.checks?.find((one) => one.name === check);
    const offered = (channel: string, version: string) => untilOffered(golden.flow, channel, version);
    const publish = async (seed: string): Promise<string> => {
      const digest = await publishers[kind](`${kind}-${seed}`);
      if ((await golden.flow.get(type, kind)) !== undefined) await golden.flow.pollNow(kind);
      return versionOf(kind, digest);
    };

    const one = await publish('v1');
    await golden.aCron(kind, { importsToKeep: 9, ...golden.fed(sourceOf(kind)) });
    await kube.create(type, {
      apiVersion: 'bullion.dev/v1alpha1',
      kind: 'GoldenImagePolicy',
      metadata: { namespace, name: kind },
      spec: {
        dataImportCrons: { names: [kind] },
        channels: [
          { name: 'candidate', dataSource: `${kind}-candidate` },
          { name: 'stable', dataSource: kind, after: { channel: 'candidate', soak: '2s', approval: 'manual' } },
        ],
        verify: { signature: signatures[kind], boot: { timeout: '5m' } },
      },
    });
    await offered(`${kind}-candidate`, one);
    expect((await bullion('promote', kind, one)).code).toBe(0);
    await offered(kind, one);
    const good = await until(({ status }) => status?.phase === 'Ready');
    expect(checkOf(good, one, 'signature')).toMatchObject({ state: 'Passed', reason: 'Verified' });
    expect(checkOf(good, one, 'boot')).toMatchObject({ state: 'Passed' });
    const attested = checkOf(good, one, 'signature')?.attestations?.map(({ predicateType }) => predicateType);
    expect(attested).toEqual(kind === 'registry' ? [provenance] : undefined);
    await kube.create(dataVolumes, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { namespace, name: `${kind}-root` },
      spec: {
        sourceRef: { kind: 'DataSource', name: kind },
        storage: { storageClassName: 'local', resources: { requests: { storage: '16Mi' } } },
      },
    });
    await golden.flow.until(dataVolumes, `${kind}-root`, (disk) => disk?.status?.phase === 'Succeeded');

    machines.fail('Kernel panic - not syncing: VFS');
    const two = await publish('v2');
    const stuck = await until((policy) => versionIn(policy, two)?.state === 'Failed');
    expect(checkOf(stuck, two, 'boot')).toMatchObject({
      message: expect.stringContaining('Kernel panic - not syncing'),
    });
    expect(stuck.status?.channels?.map(({ version }) => version)).toEqual([one, one]);
    expect((await bullion('why', `gip/${kind}`)).text).toMatch(/Kernel panic/);

    machines.fail(undefined);
    const three = await publish('v3');
    await offered(`${kind}-candidate`, three);
    await until(({ status }) => status?.channels?.[1]?.reason === 'WaitingForApproval');
    expect((await golden.flow.get(dataSourceKind.type, kind))?.spec.source.pvc?.name).toBe(one);
    expect((await bullion('promote', kind, three)).code).toBe(0);
    await offered(kind, three);
    expect((await bullion('outdated')).text).toMatch(new RegExp(`${kind}-root`));

    const before = Date.now();
    expect((await bullion('mark-bad', three, '--reason', 'panics on AMD')).code).toBe(0);
    await Promise.all([offered(kind, one), offered(`${kind}-candidate`, one)]);
    expect(Date.now() - before).toBeLessThan(30_000);

    const four = await publish('v4');
    await offered(`${kind}-candidate`, four);
    const retention = { keep: 1, undeleteFor: '1h' };
    await kube.mergePatch(type, { namespace, name: kind }, { spec: { retention } });
    const preview = (await bullion('prune', kind, '--dry-run')).text;
    expect(preview).toMatch(new RegExp(`${two}.*(would be|is) removed`));
    expect(preview).toMatch(new RegExp(`${one}.*stays: channel stable has it`));
    expect((await bullion('prune', kind, '--yes')).code).toBe(0);
    await golden.flow.until(persistentVolumeClaims, two, (claim) => claim === undefined);
    expect(await golden.flow.get(persistentVolumeClaims, one)).toBeDefined();
    expect((await bullion('events', kind, '-o', 'json')).text).toMatch(/dev\.bullion\.version\.markedbad/);
  });
});
