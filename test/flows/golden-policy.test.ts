// A golden image that is rolled out by channels and taken back, from a real registry, by people who may and by one who may not.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { configMaps, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { applyObjects } from '#local-cluster/install.ts';
import { runBullion } from '#test/support/bullion.ts';
import { ecKey, payloadOf, pemOf, pushSignatures, signBytes } from '#test/support/cosign.ts';
import { type GoldenRegistry, startGoldenRegistry } from '#test/support/golden-registry.ts';
import { isUpToDate, untilOffered, versionOf } from '#test/support/golden.ts';
import { hasRegistry } from '#test/support/registry/server.ts';

const namespace = 'golden-images';
const { type } = goldenImagePolicyKind;

/** Both may write policies; one may decide about versions. */
const usersOf = (): readonly object[] => {
  const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' };
  const role = (name: string, verbs: readonly string[]) => ({
    ...rbac,
    kind: 'Role',
    metadata: { namespace, name },
    rules: [{ apiGroups: [type.group], resources: [type.plural], verbs }],
  });
  const bind = (user: string, name: string) => ({
    ...rbac,
    kind: 'RoleBinding',
    metadata: { namespace, name: `${user}-${name}` },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ kind: 'User', name: user, apiGroup: 'rbac.authorization.k8s.io' }],
  });
  return [
    role('editor', ['get', 'list', 'create', 'update', 'patch']),
    role('releaser', ['promote', 'pin', 'mark-bad']),
    bind('rita', 'editor'),
    bind('rita', 'releaser'),
    bind('eddie', 'editor'),
  ];
};

describe.skipIf(!hasRegistry())('a golden image with channels', { timeout: 600_000 }, () => {
  let golden: GoldenRegistry;
  beforeAll(async () => {
    golden = await startGoldenRegistry(namespace);
    await applyObjects(golden.cluster.kube, usersOf() as readonly KubeObject[]);
  }, 300_000);
  afterAll(() => golden?.close());

  /** What the command line says, as this user. */
  const bullion = async (user: string, ...args: readonly string[]) => {
    const to = ['--kubeconfig', golden.cluster.kubeconfigPath, '-n', namespace, '--as', user];
    const { code, out, err } = await runBullion([...args, ...to]);
    return { code, text: out + err };
  };
  const policyNow = () => golden.flow.get(type, 'fedora');
  const until = (isSo: (policy: GoldenImagePolicy) => boolean) =>
    golden.flow.until(type, 'fedora', (policy) => policy !== undefined && isSo(policy));
  const offered = (name: string, version: string) => untilOffered(golden.flow, name, version);
  const publish = async (seed: string): Promise<string> => {
    const { digest } = await golden.push('fedora', seed);
    await golden.flow.pollNow('fedora');
    const version = versionOf('fedora', digest);
    await golden.flow.until(
      dataImportCronKind.type,
      'fedora',
      (cron) => isUpToDate(cron) && cron?.status?.lastImportedPVC?.name === version,
    );
    return version;
  };
  const reasonOf = (policy: GoldenImagePolicy, channel: string) =>
    policy.status?.channels?.find(({ name }) => name === channel)?.reason;

  it('goes through channels by hand, is taken back at once, and does not return', async () => {
    await golden.push('fedora', 'v1');
    await golden.aCron('fedora');
    const policy = {
      apiVersion: 'bullion.dev/v1alpha1',
      kind: 'GoldenImagePolicy',
      metadata: { namespace, name: 'fedora' },
      spec: {
        dataImportCrons: { names: ['fedora'] },
        channels: [
          { name: 'candidate', dataSource: 'fedora-candidate' },
          {
            name: 'stable',
            dataSource: 'fedora',
            after: { channel: 'candidate', soak: '2s', approval: 'manual' as const },
          },
        ],
      },
    };
    await golden.cluster.kube.create(type, policy);
    const one = await publish('v1');
    await offered('fedora-candidate', one);
    expect(await bullion('rita', 'promote', 'stable', one, '--reason', 'the first')).toMatchObject({ code: 0 });
    await offered('fedora', one);

    const two = await publish('v2');
    await offered('fedora-candidate', two);
    await until((now) => reasonOf(now, 'stable') === 'WaitingForApproval');
    expect((await golden.flow.get(dataSourceKind.type, 'fedora'))?.spec.source.pvc?.name).toBe(one);
    const refused = await bullion('eddie', 'promote', 'stable', two);
    expect(refused.code).not.toBe(0);
    expect(refused.text).toMatch(/user eddie is not allowed to decide how versions go through channels/);
    expect((await bullion('rita', 'promote', 'fedora', two)).code).toBe(0);
    await offered('fedora', two);
    expect((await policyNow())?.status?.history?.at(-1)).toMatchObject({ channel: 'stable', to: two, by: 'rita' });

    const before = Date.now();
    expect((await bullion('eddie', 'mark-bad', two, '--reason', 'no')).text).toMatch(/not allowed to mark versions/);
    expect((await bullion('rita', 'mark-bad', two, '--reason', 'kernel panic on AMD')).code).toBe(0);
    await offered('fedora', one);
    await offered('fedora-candidate', one);
    expect(Date.now() - before).toBeLessThan(60_000);
    const marked = await until(({ status }) => status?.versions?.at(-1)?.state === 'Bad');
    expect(marked.spec.bad).toMatchObject([{ version: two, by: 'rita', digest: expect.stringContaining('sha256:') }]);

    await publish('v2');
    const three = await publish('v3');
    await offered('fedora-candidate', three);
    const { status } = (await policyNow())!;
    expect(status?.history?.filter(({ to, reason }) => to === two && reason !== 'MarkedBad')).toHaveLength(2);
    expect((await golden.flow.get(dataSourceKind.type, 'fedora'))?.spec.source.pvc?.name).toBe(one);

    expect((await bullion('rita', 'promote', 'stable', three)).code).toBe(0);
    await offered('fedora', three);
    expect((await bullion('rita', 'rollback', 'stable', '--reason', 'slow disks')).text).toContain(`stays at ${one}`);
    await offered('fedora', one);
    const four = await publish('v4');
    await offered('fedora-candidate', four);
    expect((await golden.flow.get(dataSourceKind.type, 'fedora'))?.spec.source.pvc?.name).toBe(one);
    expect((await bullion('rita', 'unpin', 'stable')).code).toBe(0);
    await offered('fedora', three);
    expect((await bullion('rita', 'why', 'gip/fedora')).text).toMatch(new RegExp(`Channel stable\\s+${three}`));
    // One is kept, and what channels have or would go back to.
    const volumes = await golden.cluster.kube.list(persistentVolumeClaims, { namespace, limit: 50 });
    expect(volumes.items.map(({ metadata }) => metadata.name)).toEqual(expect.arrayContaining([one, three, four]));
  });

  it('takes signed versions only', async () => {
    const keys = ecKey();
    const { kube } = golden.cluster;
    await kube.create(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace, name: 'vendor-keys' },
      data: { 'vendor.pem': pemOf(keys) },
    });
    const first = await golden.push('signed', 'signed-1');
    const payload = payloadOf(first.digest);
    await pushSignatures(golden.target, first.digest, [{ payload, signature: signBytes(keys, payload) }]);
    await kube.create(type, {
      apiVersion: 'bullion.dev/v1alpha1',
      kind: 'GoldenImagePolicy',
      metadata: { namespace, name: 'signed' },
      spec: {
        dataImportCrons: { names: ['signed'] },
        channels: [{ name: 'stable', dataSource: 'signed' }],
        verify: { signature: { cosign: { keys: { configMap: 'vendor-keys' } } } },
      },
    });
    await golden.aCron('signed');
    const one = versionOf('signed', first.digest);
    await offered('signed', one);

    const second = await golden.push('signed', 'signed-2');
    await golden.flow.pollNow('signed');
    const two = versionOf('signed', second.digest);
    const { status } = await golden.flow.until(
      type,
      'signed',
      (policy) => policy?.status?.versions?.some(({ name, state }) => name === two && state === 'Failed') === true,
    );
    expect(status).toMatchObject({
      channels: [{ version: one, reason: 'VerificationFailed' }],
      versions: [
        { name: one, checks: [{ state: 'Passed', digest: first.digest }] },
        { name: two, checks: [{ state: 'Failed', reason: 'Unsigned' }] },
      ],
    });
    expect((await golden.flow.get(dataSourceKind.type, 'signed'))?.spec.source.pvc?.name).toBe(one);
  });
});
