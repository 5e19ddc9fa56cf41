// A policy that asks for signatures: which versions channels take, what status says of the others, and when a check is repeated.
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type CheckStatus,
  type GoldenImagePolicy,
  goldenImagePolicyKind,
  type GoldenImagePolicySpec,
} from '#shared/api/bullion/golden-image-policy.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { refOf, type ResourceType } from '#shared/api/object.ts';
import type { SignatureOutcome } from '#shared/golden/signature/outcome.ts';
import { populatedMark } from '#shared/populate/population.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { minute, nameOf, namespace, useCronWorld } from '#test/support/cron-world.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';

const world = useCronWorld();
const { type } = goldenImagePolicyKind;
const key = { namespace, name: 'fedora' };
const ruleOf = (pem: string): GoldenImagePolicySpec['verify'] => ({
  signature: { cosign: { keys: { inline: [pem] } } },
});

const signed: SignatureOutcome = { is: 'verified', digest: '', kind: 'cosign', by: 'k', message: 'signed by k' };
const unsigned: SignatureOutcome = { is: 'refused', reason: 'Unsigned', message: 'there is no signature: sign it' };
const down: SignatureOutcome = { is: 'unreachable', reason: 'Unavailable', message: 'the registry does not answer' };

/** What is found, by the key that is asked for; changed by tests. */
let answers: Record<string, SignatureOutcome>;

const verify: ReconcileDeps['verify'] = async ({ rule, digest }) => {
  const found = answers[rule.cosign?.keys?.inline?.[0] ?? ''] ?? unsigned;
  return found.is === 'verified' ? { ...found, digest } : found;
};

const policyNow = (): GoldenImagePolicy => world.kube.all(type)[0]!;
const settle = async (deps: Partial<ReconcileDeps> = { verify }): Promise<void> => {
  for (let pass = 0; pass < 4; pass += 1)
    await reconcile({ ...world.deps, ...deps }, refOf(policyNow()), { which: 'all' });
};
const stable = (): string | undefined =>
  world.kube.all(dataSourceKind.type).find(({ metadata }) => metadata.name === 'fedora')?.spec.source.pvc?.name;
const checkOf = (char: string): CheckStatus | undefined =>
  policyNow().status?.versions?.find(({ name }) => name === nameOf(char))?.checks?.[0];

describe('a policy that asks for a signature', () => {
  beforeEach(() => {
    answers = { one: signed };
    world.aCron({});
    world.kube.seed(type, {
      apiVersion: 'bullion.dev/v1alpha1',
      kind: 'GoldenImagePolicy',
      metadata: { ...key, generation: 1 },
      spec: {
        dataImportCrons: { names: ['cron'] },
        channels: [{ name: 'stable', dataSource: 'fedora' }],
        verify: ruleOf('one'),
      },
    });
  });

  it('takes a version that is signed, and records by whom, for which digest', async () => {
    await world.importVersion('a');
    await settle();
    expect(stable()).toBe(nameOf('a'));
    expect(checkOf('a')).toMatchObject({
      state: 'Passed',
      message: 'signed by k',
      digest: expect.stringMatching(/^sha256:a/),
    });
  });

  it('says of the version in use that it did not pass', async () => {
    world.kube.edit(type, key, ({ spec }) => void delete spec.verify);
    await world.importVersion('a');
    await settle();
    expect(policyNow().status).toMatchObject({ phase: 'Ready', channels: [{ reason: 'UpToDate' }] });
    world.kube.edit(type, key, ({ spec, metadata }) => {
      Object.assign(spec, { verify: ruleOf('other') });
      metadata.generation = 2;
    });
    await settle();
    expect(stable()).toBe(nameOf('a'));
    expect(policyNow().status).toMatchObject({
      phase: 'Attention',
      channels: [
        {
          reason: 'VerificationFailed',
          version: nameOf('a'),
          message: expect.stringMatching(/stays in use, .*there is no signature: sign it/),
        },
      ],
      conditions: [{ type: 'Ready', status: 'True', reason: 'VerificationFailed' }],
    });
    await settle({ verify: async () => down });
    answers = { other: signed };
    world.kube.edit(type, key, ({ spec, metadata }) => {
      Object.assign(spec, { verify: ruleOf('third') });
      metadata.generation = 3;
    });
    await settle({ verify: async () => down });
    expect(policyNow().status?.channels?.[0]).toMatchObject({
      reason: 'Verifying',
      message: expect.stringContaining('stays in use while it is verified'),
    });
  });

  it('keeps the version it has when the next one is not signed, and says what is wrong', async () => {
    await world.importVersion('a');
    await settle();
    answers = { one: unsigned };
    await world.importVersion('b');
    await settle();
    expect(stable()).toBe(nameOf('a'));
    expect(policyNow().status).toMatchObject({
      phase: 'Attention',
      channels: [{ name: 'stable', version: nameOf('a'), reason: 'VerificationFailed' }],
    });
    expect(policyNow().status?.versions?.at(-1)).toMatchObject({
      name: nameOf('b'),
      state: 'Failed',
      message: 'signature: Unsigned: there is no signature: sign it',
    });
  });

  it('checks again after ten minutes, as signatures may come after their image', async () => {
    answers = { one: unsigned };
    await world.importVersion('a');
    await settle();
    answers = { one: signed };
    await settle();
    expect(stable()).toBe(undefined);
    world.time += 10 * minute;
    await settle();
    expect(stable()).toBe(nameOf('a'));
  });

  it('waits while nobody can say, and takes the version with the next look', async () => {
    answers = { one: down };
    await world.importVersion('a');
    await settle();
    expect(stable()).toBe(undefined);
    expect(policyNow().status?.channels).toMatchObject([{ reason: 'Verifying' }]);
    expect(checkOf('a')).toMatchObject({ state: 'Pending', message: expect.stringContaining('retrying every minute') });
    answers = { one: signed };
    await settle();
    expect(stable()).toBe(nameOf('a'));
  });

  it('waits for a function that can reach the source', async () => {
    await world.importVersion('a');
    await settle({});
    expect(stable()).toBe(undefined);
    expect(checkOf('a')).toMatchObject({ state: 'Pending', reason: 'NotChecked' });
  });

  const labels = { [cdiLabels.cron]: 'cron' };
  const volumeOf = (metadata: object = {}) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace, name: nameOf('a'), labels, ...metadata },
    spec: { storageClassName: 'local' },
    status: { phase: 'Bound' },
  });
  const filled = populatedMark({ inspection: { format: 'raw', compression: 'none' }, digests: {} });
  const remove = async (...types: readonly ResourceType[]): Promise<void> => {
    for (const one of types) await world.kube.delete(one, { namespace, name: nameOf('a') });
  };
  const theirImport = {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { namespace, name: nameOf('a'), labels },
    spec: { source: { http: { url: 'https://evil.example/disk' } }, storage: {} },
    status: { phase: 'Succeeded' },
  };
  const [volumes, imports] = [persistentVolumeClaims, dataVolumes] as unknown as readonly [ResourceType, ResourceType];

  it.each<[what: string, gone: readonly ResourceType[], put: (kube: MemoryKube) => void]>([
    ['volume', [volumes], (kube) => void kube.seed(volumes, volumeOf())],
    ['volume, without its import', [imports, volumes], (kube) => void kube.seed(volumes, volumeOf())],
    [
      'volume that Bullion filled, without its import',
      [imports, volumes],
      (kube) => void kube.seed(volumes, volumeOf({ annotations: filled })),
    ],
    [
      'import of something else',
      [imports, volumes],
      (kube) => {
        kube.seed(imports, theirImport);
        kube.seed(volumes, volumeOf({ annotations: filled }));
      },
    ],
    [
      'snapshot',
      [imports, volumes],
      (kube) =>
        void kube.seed(volumeSnapshots, {
          apiVersion: 'snapshot.storage.k8s.io/v1',
          kind: 'VolumeSnapshot',
          metadata: { namespace, name: nameOf('a'), labels },
          spec: { source: {} },
          status: { readyToUse: true },
        } as never),
    ],
  ])('offers no %s that somebody puts in the place of a version', async (_what, gone, put) => {
    await world.importVersion('a');
    await settle();
    expect(stable()).toBe(nameOf('a'));
    await remove(...gone);
    put(world.kube);
    await world.reconcileCron();
    await settle();
    const source = world.kube.all(dataSourceKind.type).find(({ metadata }) => metadata.name === 'fedora');
    expect(source?.spec.source).toEqual({});
    expect(checkOf('a')).toMatchObject({
      state: 'Failed',
      reason: 'NotImported',
      message: expect.stringMatching(/delete it/),
    });
    // Once that is gone, the cron imports the version again, and the channel has it.
    await remove(volumes, imports, volumeSnapshots as unknown as ResourceType);
    await world.reconcileCron();
    await world.finishImport(nameOf('a'));
    await settle();
    expect([stable(), checkOf('a')?.state]).toEqual([nameOf('a'), 'Passed']);
  });

  it('takes no volume that somebody put there before the cron imported the version', async () => {
    await settle();
    world.kube.seed(volumes, volumeOf());
    await world.poll('a');
    await world.reconcileCron();
    await settle();
    expect([stable(), world.all().imports]).toEqual([undefined, []]);
    expect(world.conditionsOf()).toMatchObject({ Ready: 'False/NameTaken' });
  });

  it('checks once, and again when the rule changes: what a channel has stays there', async () => {
    await world.importVersion('a');
    await settle();
    const { time, rule } = checkOf('a')!;
    world.time += 60 * minute;
    await settle();
    expect(checkOf('a')).toMatchObject({ time, rule });
    world.kube.edit(type, key, (policy) => {
      policy.spec.verify = ruleOf('two');
      policy.metadata.generation = 2;
    });
    await settle();
    expect(checkOf('a')).toMatchObject({ state: 'Failed', reason: 'Unsigned' });
    expect(checkOf('a')?.rule).not.toBe(rule);
    expect(stable()).toBe(nameOf('a'));
  });
});
