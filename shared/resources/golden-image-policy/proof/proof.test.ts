// Checks and boots of versions: which versions channels take, what status says, what is tried again, and that nothing is left behind.
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type CheckStatus,
  type GoldenImagePolicy,
  type GoldenImagePolicySpec,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { type Pod, jobs, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { type VirtualMachineInstance, virtualMachineInstances } from '#shared/api/foreign/kubevirt.ts';
import { refOf } from '#shared/api/object.ts';
import type { BootReport } from '#shared/boot/report.ts';
import { isoTime } from '#shared/populate/state.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { InvalidInput, NotFound } from '#shared/runtime/errors.ts';
import { minute, nameOf, namespace, useCronWorld } from '#test/support/cron-world.ts';

const world = useCronWorld();
const { type } = goldenImagePolicyKind;
const key = { namespace, name: 'fedora' };
const scan = { name: 'scan', image: 'registry.example/scan:1', command: ['scan'] };

const policyNow = (): GoldenImagePolicy => world.kube.all(type)[0]!;
const settle = async (deps: Partial<ReconcileDeps> = {}): Promise<void> => {
  for (let pass = 0; pass < 3; pass += 1)
    await reconcile({ ...world.deps, ...deps }, refOf(policyNow()), { which: 'all' });
  world.kube.collectGarbage();
};
const stable = (): string | undefined =>
  world.kube.all(dataSourceKind.type).find(({ metadata }) => metadata.name === 'fedora')?.spec.source.pvc?.name;
const checksOf = (char: string): readonly CheckStatus[] =>
  policyNow().status?.versions?.find(({ name }) => name === nameOf(char))?.checks ?? [];
const clones = () => world.kube.all(dataVolumes).filter(({ metadata }) => metadata.name.startsWith('check-'));
const left = () => [...clones(), ...world.kube.all(jobs), ...world.kube.all(virtualMachineInstances)];

const ask = (verify: GoldenImagePolicySpec['verify']): void => {
  world.aCron({});
  world.kube.seed(type, {
    apiVersion: 'bullion.dev/v1alpha1',
    kind: 'GoldenImagePolicy',
    metadata: { ...key, generation: 1 },
    spec: {
      dataImportCrons: { names: ['cron'] },
      channels: [{ name: 'stable', dataSource: 'fedora' }],
      ...(verify === undefined ? {} : { verify }),
    },
  });
};

/** What the engine does with the clones. */
const fillClones = async (
  volumeMode: 'Block' | 'Filesystem' = 'Filesystem',
  phase = 'Succeeded',
  deps: Partial<ReconcileDeps> = {},
): Promise<void> => {
  for (const { metadata } of clones()) {
    const { name, uid = '' } = metadata;
    world.kube.edit(dataVolumes, metadata, (clone) => void (clone.status = { phase }));
    if (world.kube.all(persistentVolumeClaims).some((claim) => claim.metadata.name === name)) continue;
    const ownerReferences = [{ apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', name, uid }];
    world.kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace, name, ownerReferences },
      spec: { volumeMode },
    });
  }
  await settle(deps);
};

/** What the kubelet says of the pod of the only Job. */
const endPod = async (status: NonNullable<Pod['status']>, deps: Partial<ReconcileDeps> = {}): Promise<void> => {
  const [job] = world.kube.all(jobs);
  const { labels = {}, uid = '', name } = job!.metadata;
  const ownerReferences = [{ apiVersion: 'batch/v1', kind: 'Job', name, uid }];
  const metadata = { namespace, name: `${name}-x`, labels, ownerReferences };
  world.kube.seed(pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec: job!.spec.template.spec, status });
  await settle(deps);
};
const ended = (exitCode: number, message = '', reason?: string): NonNullable<Pod['status']> => ({
  phase: exitCode === 0 ? 'Succeeded' : 'Failed',
  containerStatuses: [
    {
      name: 'check',
      state: {
        terminated: {
          exitCode,
          message,
          startedAt: '2026-03-01T00:00:00Z',
          ...(reason === undefined ? {} : { reason }),
        },
      },
    },
  ],
});

describe('a check of the policy', () => {
  beforeEach(async () => {
    ask({ checks: [scan] });
    await world.importVersion('a');
    await settle();
  });

  it('runs on a clone, with no rights of its own, and lets the version in when it passes', async () => {
    expect(clones()).toMatchObject([
      { spec: { source: { pvc: { namespace, name: nameOf('a') } }, storage: { storageClassName: 'local' } } },
    ]);
    expect(world.kube.all(jobs)).toEqual([]);
    await fillClones();
    const [clone] = clones();
    expect(world.kube.all(jobs)[0]?.metadata.ownerReferences).toMatchObject([{ uid: clone!.metadata.uid }]);
    const { spec } = world.kube.all(jobs)[0]!.spec.template;
    expect(spec).toMatchObject({
      serviceAccountName: 'default',
      automountServiceAccountToken: false,
      activeDeadlineSeconds: 600,
      securityContext: { runAsNonRoot: true },
      volumes: [{ persistentVolumeClaim: { claimName: clone!.metadata.name } }],
    });
    expect(spec.containers).toMatchObject([
      { image: scan.image, command: ['scan'], volumeMounts: [{ mountPath: '/disk', readOnly: true }] },
    ]);
    expect(stable()).toBe(undefined);
    await endPod(ended(0, 'nothing found'));
    expect(stable()).toBe(nameOf('a'));
    expect(checksOf('a')).toMatchObject([{ name: 'scan', state: 'Passed', output: 'nothing found' }]);
    expect(left()).toEqual([]);
    expect(policyNow().status).toMatchObject({ phase: 'Ready' });
  });

  it('gets a device where the clone is one', async () => {
    await fillClones('Block');
    const [container] = world.kube.all(jobs)[0]!.spec.template.spec.containers;
    expect(container).toMatchObject({ volumeDevices: [{ devicePath: '/dev/bullion-disk' }] });
    expect(container?.env).toContainEqual({ name: 'BULLION_DISK', value: '/dev/bullion-disk' });
  });

  it('keeps a version out for good when it fails, with the end of its log', async () => {
    await fillClones();
    await endPod(ended(3, 'looking\nCVE-2026-1: openssl\n'));
    expect(stable()).toBe(undefined);
    expect(checksOf('a')).toMatchObject([
      {
        state: 'Failed',
        reason: 'CheckFailed',
        message: 'exit code 3: CVE-2026-1: openssl',
        output: 'looking\nCVE-2026-1: openssl',
      },
    ]);
    expect(policyNow().status?.channels).toMatchObject([{ reason: 'VerificationFailed' }]);
    expect(left()).toEqual([]);
    world.time += 600 * minute;
    await settle();
    expect(left()).toEqual([]);
  });

  it('fails a version whose check does not end in time', async () => {
    await fillClones();
    await endPod({ ...ended(137), reason: 'DeadlineExceeded' });
    expect(checksOf('a')).toMatchObject([
      { state: 'Failed', reason: 'TimedOut', message: expect.stringContaining('10m') },
    ]);
  });

  it.each([
    {
      what: 'evicted',
      status: { phase: 'Failed', reason: 'Evicted', message: 'node was low on memory' },
      reason: 'Evicted',
    },
    {
      what: 'drained away',
      status: { ...ended(143), conditions: [{ type: 'DisruptionTarget', status: 'True' }] },
      reason: 'Disrupted',
    },
    { what: 'out of memory', status: ended(137, '', 'OOMKilled'), reason: 'OOMKilled' },
    { what: 'not runnable', status: ended(128, 'exec: "scan": not found', 'StartError'), reason: 'StartError' },
    { what: 'never started', status: { phase: 'Failed', reason: 'DeadlineExceeded' }, reason: 'NotStarted' },
  ] as const)('tries again, ever more rarely, what could not run: $what', async ({ status, reason }) => {
    await fillClones();
    await endPod(status);
    expect(checksOf('a')).toMatchObject([
      { state: 'Pending', reason, attempts: 1, nextTry: isoTime(world.time + minute) },
    ]);
    expect(left()).toEqual([]);
    await settle();
    expect(left()).toEqual([]);
    world.time += minute;
    await settle();
    expect(clones()).toHaveLength(1);
    await fillClones();
    await endPod(status);
    expect(checksOf('a')).toMatchObject([{ attempts: 2, nextTry: isoTime(world.time + 2 * minute) }]);
    world.time += 2 * minute;
    await settle();
    await fillClones();
    await endPod(ended(0));
    expect(stable()).toBe(nameOf('a'));
  });

  it('says why it does not start', async () => {
    await fillClones();
    const waiting = { reason: 'ErrImagePull', message: 'no such image' };
    await endPod({ phase: 'Pending', containerStatuses: [{ name: 'check', state: { waiting } }] });
    expect(checksOf('a')).toMatchObject([
      { state: 'Pending', reason: 'ErrImagePull', message: expect.stringContaining('no such image') },
    ]);
  });

  it('tries again with another clone when the version could not be cloned', async () => {
    const before = clones()[0]!.metadata.name;
    await fillClones('Filesystem', 'Failed');
    expect(checksOf('a')).toMatchObject([{ reason: 'CloneFailed', attempts: 1 }]);
    world.time += minute;
    await settle();
    expect(clones().map(({ metadata }) => metadata.name)).not.toContain(before);
    expect(clones()).toHaveLength(1);
  });

  it('does not hold up channels where the cluster refuses its objects', async () => {
    world.kube.edit(type, key, (policy) => {
      policy.spec.bad = [{ version: 'fedora-x', reason: 'so' }];
      policy.metadata.generation = 2;
    });
    await fillClones();
    const [job] = world.kube.all(jobs);
    await world.kube.delete(jobs, job!.metadata);
    world.kube.failNext(
      { verb: 'create', resource: 'jobs' },
      { error: new InvalidInput('too much memory'), when: 'before' },
    );
    await reconcile(world.deps, refOf(policyNow()), { which: 'all' });
    expect(checksOf('a')).toMatchObject([
      { state: 'Pending', reason: 'Refused', message: expect.stringContaining('too much memory'), attempts: 1 },
    ]);
    await settle();
    expect(left()).toEqual([]);
  });

  it('is broken off when its version is marked as bad, and when nobody asks for it any more', async () => {
    await fillClones();
    expect(left()).toHaveLength(2);
    world.kube.edit(type, key, (policy) => {
      policy.spec.bad = [{ version: nameOf('a'), reason: 'so' }];
      policy.metadata.generation = 2;
    });
    await settle();
    expect(left()).toEqual([]);
    world.kube.edit(type, key, (policy) => {
      delete policy.spec.bad;
      policy.metadata.generation = 3;
    });
    await settle();
    expect(clones()).toHaveLength(1);
    world.kube.edit(type, key, (policy) => {
      delete policy.spec.verify;
      policy.metadata.generation = 4;
    });
    await settle();
    expect(left()).toEqual([]);
    expect(stable()).toBe(nameOf('a'));
  });

  it('runs for two at a time, the newest version first, and breaks none off for another', async () => {
    await fillClones();
    await endPod(ended(0));
    for (const char of ['b', 'c', 'd']) await world.importVersion(char);
    await settle();
    await settle();
    expect(clones().length).toBeLessThanOrEqual(2);
    expect(clones().map(({ spec }) => spec.source?.pvc?.name)).toContain(nameOf('d'));
  });
});

describe('a version that must be signed', () => {
  it('is neither started nor shown to anybody before', async () => {
    ask({ signature: { cosign: { keys: { inline: ['key'] } } }, checks: [scan], boot: {} });
    await world.importVersion('a');
    await settle({ verify: async () => ({ is: 'refused', reason: 'Unsigned', message: 'not signed' }) });
    expect(left()).toEqual([]);
    expect(checksOf('a')).toMatchObject([
      { name: 'signature', state: 'Failed', nextTry: isoTime(world.time + 10 * minute) },
      { name: 'boot', state: 'Pending', message: 'waiting for its signature to be verified' },
      { name: 'scan', state: 'Pending' },
    ]);
  });
});

const setMachine = async (status: NonNullable<VirtualMachineInstance['status']>): Promise<void> => {
  const { metadata } = world.kube.all(virtualMachineInstances)[0]!;
  world.kube.edit(virtualMachineInstances, metadata, (machine) => void (machine.status = status as never));
  await settle();
};
const runningAt = (time: number): NonNullable<VirtualMachineInstance['status']> => ({
  phase: 'Running',
  phaseTransitionTimestamps: [{ phase: 'Running', phaseTransitionTimestamp: isoTime(time) }],
});

describe('a boot', () => {
  const begin = async (boot: NonNullable<NonNullable<GoldenImagePolicySpec['verify']>['boot']>): Promise<void> => {
    ask({ boot });
    await world.importVersion('a');
    await settle();
    await fillClones();
  };

  it('starts a machine without a network on a clone, and passes when its agent answers', async () => {
    await begin({ memory: '2Gi', firmware: 'efi' });
    const [machine] = world.kube.all(virtualMachineInstances);
    expect(machine?.spec).toMatchObject({
      domain: {
        memory: { guest: '2Gi' },
        firmware: { bootloader: { efi: {} } },
        devices: { autoattachPodInterface: false },
      },
      volumes: [{ persistentVolumeClaim: { claimName: clones()[0]!.metadata.name } }],
    });
    await setMachine(runningAt(world.time));
    expect(stable()).toBe(undefined);
    const agent = {
      type: 'AgentConnected',
      status: 'True',
      lastTransitionTime: isoTime(world.time + 34_000),
    } as const;
    await setMachine({ ...runningAt(world.time), conditions: [agent], guestOSInfo: { prettyName: 'Fedora 42' } });
    expect(checksOf('a')).toMatchObject([
      { name: 'boot', state: 'Passed', message: 'its guest agent answered after 34s (Fedora 42)' },
    ]);
    expect(stable()).toBe(nameOf('a'));
    expect(left()).toEqual([]);
  });

  it('fails when the guest does not come up in three attempts', async () => {
    await begin({ timeout: '3m' });
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      expect(world.kube.all(virtualMachineInstances)).toHaveLength(1);
      await setMachine(runningAt(world.time));
      world.time += 3 * minute;
      await settle();
      if (attempt === 3) break;
      expect(checksOf('a')).toMatchObject([{ state: 'Pending', reason: 'BootTimedOut', attempts: attempt }]);
      world.time += attempt * minute;
      await settle();
      await fillClones();
    }
    expect(checksOf('a')).toMatchObject([
      { state: 'Failed', reason: 'BootTimedOut', message: 'its guest agent did not answer within 3m' },
    ]);
    expect(stable()).toBe(undefined);
    expect(left()).toEqual([]);
  });

  it('fails when the machine fails while it runs, with the words of KubeVirt', async () => {
    await begin({});
    const conditions = [{ type: 'Ready', status: 'False', message: 'guest panicked' }] as const;
    await setMachine({ ...runningAt(world.time), phase: 'Failed', conditions });
    expect(checksOf('a')).toMatchObject([
      { state: 'Failed', reason: 'BootFailed', message: expect.stringMatching(/guest panicked/) },
    ]);
  });

  it('tries again where the machine never ran', async () => {
    await begin({});
    const conditions = [{ type: 'PodScheduled', status: 'False', message: '0/3 nodes have KVM' }] as const;
    await setMachine({ phase: 'Scheduling', conditions });
    expect(checksOf('a')).toMatchObject([{ state: 'Pending', message: expect.stringMatching(/0\/3 nodes have KVM/) }]);
    world.time += 11 * minute;
    await settle();
    expect(checksOf('a')).toMatchObject([{ state: 'Pending', reason: 'NotStarted', attempts: 1 }]);
  });

  it('is satisfied with a machine that runs on, where that is asked for', async () => {
    await begin({ until: 'Running', runningFor: '2m' });
    await setMachine(runningAt(world.time));
    expect(checksOf('a')).toMatchObject([{ state: 'Pending', reason: 'Booting' }]);
    world.time += 2 * minute;
    await settle();
    expect(checksOf('a')).toMatchObject([{ state: 'Passed', message: 'it has run for 2m' }]);
    expect(stable()).toBe(nameOf('a'));
  });
});

describe('a boot by QEMU', () => {
  /** A cluster without the kind. */
  const withoutKubeVirt = (): Partial<ReconcileDeps> => ({
    kube: {
      ...world.kube,
      list: async (of, options) => {
        if (of.plural === 'virtualmachineinstances') throw new NotFound('no such kind');
        return world.kube.list(of, options);
      },
    },
  });
  const begin = async (
    boot: NonNullable<NonNullable<GoldenImagePolicySpec['verify']>['boot']>,
    deps: Partial<ReconcileDeps> = withoutKubeVirt(),
  ): Promise<void> => {
    ask({ boot });
    await world.importVersion('a');
    await settle(deps);
    await fillClones('Filesystem', 'Succeeded', deps);
  };
  const endBoot = (report: BootReport, exitCode: number) =>
    endPod(ended(exitCode, JSON.stringify(report)), withoutKubeVirt());

  it('is a Job on a clone where there is no KubeVirt, and passes with the words of the console', async () => {
    await begin({ memory: '2Gi', firmware: 'efi', timeout: '4m' });
    expect(world.kube.all(virtualMachineInstances)).toEqual([]);
    const [job] = world.kube.all(jobs);
    const [container] = job!.spec.template.spec.containers;
    expect(container).toMatchObject({
      image: world.deps.settings.bootImage,
      resources: { limits: { memory: '2816Mi' } },
      volumeMounts: [{ mountPath: '/disk' }, { mountPath: '/scratch' }],
    });
    expect(container!.volumeMounts![0]).not.toHaveProperty('readOnly');
    expect(container!.env).toContainEqual({ name: 'BULLION_DISK', value: '/disk/disk.img' });
    expect(JSON.parse(container!.env!.find(({ name }) => name === 'BULLION_BOOT')!.value!)).toEqual({
      until: 'AgentConnected',
      timeoutMs: 4 * minute,
      memoryMib: 2048,
      firmware: 'efi',
    });
    expect(job!.spec.template.spec).toMatchObject({
      activeDeadlineSeconds: 300,
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true },
    });
    await endBoot({ outcome: 'passed', message: 'its guest agent answered after 34s (KVM)', console: 'login:' }, 0);
    expect(checksOf('a')).toMatchObject([
      { state: 'Passed', reason: 'Booted', message: 'its guest agent answered after 34s (KVM)', output: 'login:' },
    ]);
    expect(stable()).toBe(nameOf('a'));
    expect(left()).toEqual([]);
  });

  it.each([
    [{ until: 'ConsoleText', text: 'login:' }],
    [{ until: 'PortAnswers', port: 22 }],
    [{ until: 'CloudInitFinished' }],
  ] as const)('is a Job where KubeVirt does not report the sign: %j', async (boot) => {
    await begin(boot, {});
    expect(world.kube.all(virtualMachineInstances)).toEqual([]);
    const [container] = world.kube.all(jobs)[0]!.spec.template.spec.containers;
    expect(container!.env!.find(({ name }) => name === 'BULLION_BOOT')!.value).toContain(boot.until);
  });

  it('asks for the device of KVM where the operator names its resource', async () => {
    const settings = { ...world.deps.settings, kvmResource: 'devices.kubevirt.io/kvm' };
    await begin({}, { ...withoutKubeVirt(), settings });
    const [container] = world.kube.all(jobs)[0]!.spec.template.spec.containers;
    expect(container!.resources).toMatchObject({ limits: { 'devices.kubevirt.io/kvm': '1' } });
  });

  it('keeps a version out that panics, with its words', async () => {
    await begin({});
    const message = 'the guest panicked: Kernel panic - not syncing: VFS';
    await endBoot({ outcome: 'failed', message, console: 'Run /init\nKernel panic - not syncing: VFS' }, 1);
    expect(checksOf('a')).toMatchObject([
      { state: 'Failed', reason: 'BootFailed', message, output: expect.stringContaining('Run /init') },
    ]);
    expect(stable()).toBe(undefined);
  });

  it('fails when its sign does not come in three attempts', async () => {
    await begin({});
    const report: BootReport = { outcome: 'timed out', message: 'its guest agent did not answer', console: 'grub>' };
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await endBoot(report, 1);
      if (attempt === 3) break;
      expect(checksOf('a')).toMatchObject([
        { state: 'Pending', reason: 'BootTimedOut', attempts: attempt, output: 'grub>' },
      ]);
      world.time += attempt * minute;
      await settle(withoutKubeVirt());
      await fillClones('Filesystem', 'Succeeded', withoutKubeVirt());
    }
    expect(checksOf('a')).toMatchObject([{ state: 'Failed', reason: 'BootTimedOut', output: 'grub>' }]);
  });

  it.each([
    ['QEMU could not run', { outcome: 'not run', message: 'QEMU ended with exit code 1: no room', console: '' }],
    ['its pod left no report', undefined],
  ] as const)('says nothing of the version when %s', async (_, report) => {
    await begin({});
    const words = report === undefined ? 'Segmentation fault' : JSON.stringify(report);
    await endPod(ended(1, words), withoutKubeVirt());
    expect(checksOf('a')).toMatchObject([{ state: 'Pending', attempts: 1 }]);
    expect(left()).toEqual([]);
  });
});
