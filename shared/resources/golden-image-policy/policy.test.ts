// A policy over crons, DataSources and versions, from the first version to one that is taken back.
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type GoldenImagePolicy,
  type GoldenImagePolicySpec,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { kubeEvents, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { refOf } from '#shared/api/object.ts';
import { handleObjectEvent } from '#shared/resources/handle.ts';
import { eventsOf } from '#shared/resources/golden-image-policy/history.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { tick } from '#shared/resources/sweep.ts';
import { eventTypes } from '#events/catalogue.ts';
import { minute, nameOf, namespace, useCronWorld } from '#test/support/cron-world.ts';

const world = useCronWorld();
const { type } = goldenImagePolicyKind;

const channels: GoldenImagePolicySpec['channels'] = [
  { name: 'candidate', dataSource: 'fedora-candidate' },
  { name: 'stable', dataSource: 'fedora', after: { channel: 'candidate', approval: 'manual' } },
];

const aPolicy = (over: Partial<GoldenImagePolicySpec> = {}, name = 'fedora'): GoldenImagePolicy =>
  world.kube.seed(type, {
    apiVersion: 'bullion.dev/v1alpha1',
    kind: 'GoldenImagePolicy',
    metadata: { namespace, name, generation: 1 },
    spec: { dataImportCrons: { names: ['cron'] }, channels, ...over },
  });

const policyNow = (name = 'fedora'): GoldenImagePolicy =>
  world.kube.all(type).find(({ metadata }) => metadata.name === name)!;

/** As often as it says that it is not done, as events bring it back. */
const settle = async (name = 'fedora'): Promise<void> => {
  for (let pass = 0; pass < 6; pass += 1) await reconcile(world.deps, refOf(policyNow(name)), { which: 'all' });
};

const change = async (over: Partial<GoldenImagePolicySpec>, name = 'fedora'): Promise<void> => {
  world.kube.edit(type, { namespace, name }, (policy) => {
    Object.assign(policy.spec, over);
    policy.metadata.generation = (policy.metadata.generation ?? 1) + 1;
  });
  await settle(name);
};

const sourceOf = (name: string): DataSource | undefined =>
  world.kube.all(dataSourceKind.type).find(({ metadata }) => metadata.name === name);
const versionsNow = () => ({
  candidate: sourceOf('fedora-candidate')?.spec.source.pvc?.name,
  stable: sourceOf('fedora')?.spec.source.pvc?.name,
});
const arrive = async (char: string): Promise<void> => {
  await world.importVersion(char);
  await settle();
};
const reasonsNow = () => Object.fromEntries((policyNow().status?.channels ?? []).map((one) => [one.name, one.reason]));
const approve = (char: string) => change({ approvals: [{ channel: 'stable', version: nameOf(char), by: 'jane' }] });
const markBad = (char: string) => change({ bad: [{ version: nameOf(char), reason: 'kernel panic', by: 'jane' }] });

const keep = { importsToKeep: 1 };

describe('a GoldenImagePolicy', () => {
  beforeEach(() => {
    world.aCron(keep);
    aPolicy();
  });

  it('says what it waits for while there is no version', async () => {
    await settle();
    expect(policyNow().status).toMatchObject({ phase: 'Waiting', conditions: [{ type: 'Ready', status: 'False' }] });
    expect(versionsNow()).toEqual({ candidate: undefined, stable: undefined });
  });

  it('gives the first channel each version at once, and the next one what was approved', async () => {
    await arrive('a');
    expect(versionsNow()).toEqual({ candidate: nameOf('a'), stable: undefined });
    expect(reasonsNow()).toEqual({ candidate: 'UpToDate', stable: 'WaitingForApproval' });
    await approve('a');
    expect(versionsNow()).toEqual({ candidate: nameOf('a'), stable: nameOf('a') });
    expect(policyNow().status).toMatchObject({ phase: 'Ready', channel: 'stable', version: nameOf('a') });
    expect(policyNow().status?.history?.at(-1)).toMatchObject({ channel: 'stable', reason: 'Promoted', by: 'jane' });
    await arrive('b');
    expect(versionsNow()).toEqual({ candidate: nameOf('b'), stable: nameOf('a') });
  });

  it('marks its DataSources, which no cron writes any more', async () => {
    await arrive('a');
    expect(sourceOf('fedora-candidate')?.metadata.labels).toMatchObject({
      [labels.policy]: 'fedora',
      [cdiLabels.cron]: 'cron',
    });
    expect(sourceOf('fedora')).toBe(undefined);
    await world.reconcileCron();
    expect(sourceOf('fedora')).toBe(undefined);
    expect(world.conditionsOf()).toMatchObject({ UpToDate: 'True/UpToDate', Degraded: 'False/AsExpected' });
  });

  it('takes a bad version from every channel at once, and never takes it again', async () => {
    await arrive('a');
    await approve('a');
    await arrive('b');
    await approve('b');
    expect(versionsNow()).toEqual({ candidate: nameOf('b'), stable: nameOf('b') });
    await markBad('b');
    expect(versionsNow()).toEqual({ candidate: nameOf('a'), stable: nameOf('a') });
    await world.poll('b');
    await world.reconcileCron();
    await settle();
    expect(versionsNow()).toEqual({ candidate: nameOf('a'), stable: nameOf('a') });
    await arrive('c');
    expect(versionsNow()).toEqual({ candidate: nameOf('c'), stable: nameOf('a') });
    expect(world.eventsNow().filter((reason) => reason?.startsWith('Version'))).toEqual(
      expect.arrayContaining(['VersionPromoted', 'VersionMarkedBad', 'VersionRolledBack']),
    );
  });

  it('says where to look while no version has come', async () => {
    await settle();
    expect(policyNow().status?.channels?.[0]).toMatchObject({
      reason: 'NoVersion',
      message: `no version has been imported and verified yet: bullion why dataimportcron/cron -n ${namespace} says why`,
    });
  });

  it('sends what its history gives again, with the same ids', async () => {
    const sent: string[] = [];
    world.deps = {
      ...world.deps,
      send: async ({ id }) => {
        sent.push(id);
        return { isDelivered: true } as never;
      },
    };
    await arrive('a');
    await approve('a');
    await markBad('a');
    expect(new Set(sent)).toEqual(new Set(eventsOf(policyNow()).map(({ id }) => id)));
    expect(sent.length).toBeGreaterThan(2);
  });

  it('keeps a bad version where there is no other, and says so', async () => {
    await arrive('a');
    await markBad('a');
    expect(versionsNow().candidate).toBe(nameOf('a'));
    expect(policyNow().status).toMatchObject({ phase: 'Attention', conditions: [{ reason: 'NoGoodVersion' }] });
    expect(world.kube.all(kubeEvents).filter(({ reason }) => reason === 'NoGoodVersion')).toHaveLength(1);
  });

  it('stays where it is pinned, whatever comes, and goes on without the pin', async () => {
    await arrive('a');
    await approve('a');
    await change({ pins: { candidate: { version: nameOf('a'), reason: 'a holiday' } } });
    await arrive('b');
    expect(versionsNow().candidate).toBe(nameOf('a'));
    expect(reasonsNow()).toMatchObject({ candidate: 'Pinned' });
    await change({ pins: {} });
    expect(versionsNow().candidate).toBe(nameOf('b'));
  });

  it('keeps what it needs from being collected: what channels have, wait for, and would go back to', async () => {
    for (const char of ['a', 'b', 'c', 'd']) {
      await arrive(char);
      if (char !== 'd') await approve(char);
    }
    // Stable has c and would go back to b; the candidate has d, and would go back to c.
    expect(world.all().volumes).toEqual([nameOf('b'), nameOf('c'), nameOf('d')]);
  });

  it('puts a DataSource right, and makes it anew', async () => {
    await arrive('a');
    world.kube.edit(dataSourceKind.type, { namespace, name: 'fedora-candidate' }, ({ spec }) => {
      spec.source = { pvc: { name: 'other' } };
    });
    await settle();
    expect(versionsNow().candidate).toBe(nameOf('a'));
    await world.kube.delete(dataSourceKind.type, { namespace, name: 'fedora-candidate' });
    await settle();
    expect(versionsNow().candidate).toBe(nameOf('a'));
  });

  it('leaves its DataSources where they are when it goes, until somebody hands them over', async () => {
    await arrive('a');
    await approve('a');
    await arrive('b');
    await world.kube.delete(type, { namespace, name: 'fedora' });
    await world.importVersion('c');
    expect(versionsNow()).toEqual({ candidate: nameOf('b'), stable: nameOf('a') });
    expect(world.conditionsOf()).toMatchObject({ Degraded: 'True/DataSourceLeft' });
    expect(world.all().volumes).toEqual(expect.arrayContaining([nameOf('b'), nameOf('c')]));
    world.kube.edit(dataSourceKind.type, { namespace, name: 'fedora' }, ({ metadata }) => {
      metadata.labels = { [cdiLabels.cron]: 'cron' };
    });
    await world.reconcileCron();
    expect(versionsNow().stable).toBe(nameOf('c'));
  });

  it('leaves the cron to the policy that was there first, and says so', async () => {
    await arrive('a');
    world.time += minute;
    aPolicy({ channels: [{ name: 'edge', dataSource: 'edge' }] }, 'zweite');
    world.kube.edit(type, { namespace, name: 'zweite' }, ({ metadata }) => {
      metadata.creationTimestamp = '2027-01-01T00:00:00Z';
    });
    await settle('zweite');
    expect(policyNow('zweite').status).toMatchObject({
      phase: 'Attention',
      conditions: [{ reason: 'CronOfOtherPolicy' }],
    });
    expect(sourceOf('edge')).toBe(undefined);
    await world.kube.delete(type, { namespace, name: 'fedora' });
    await settle('zweite');
    expect(sourceOf('edge')?.spec.source.pvc?.name).toBe(nameOf('a'));
  });

  it('takes no working DataSource from anybody, and says how to hand it over', async () => {
    world.kube.seed(dataSourceKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: { namespace, name: 'fedora-candidate' },
      spec: { source: { pvc: { name: 'theirs' } } },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    await arrive('a');
    expect(versionsNow().candidate).toBe('theirs');
    expect(reasonsNow()).toEqual({ candidate: 'DataSourceUnmanaged', stable: 'WaitingForChannel' });
    expect(policyNow().status?.channels?.[0]?.message).toContain(`${labels.policy}=fedora`);
    world.kube.edit(dataSourceKind.type, { namespace, name: 'fedora-candidate' }, ({ metadata }) => {
      metadata.labels = { [labels.policy]: 'fedora' };
    });
    await settle();
    expect(versionsNow().candidate).toBe(nameOf('a'));
  });

  it('is looked at when a version is there, by the event of its cron, and by the tick where that is lost', async () => {
    await world.importVersion('a');
    const event = { id: '1', source: 's', specversion: '1.0', extensions: {} } as const;
    const send = (data: object) =>
      handleObjectEvent(world.deps, { ...event, type: eventTypes.objectUpdated, data } as never);
    await send(world.cronNow());
    await send(policyNow());
    expect(versionsNow().candidate).toBe(nameOf('a'));
    await settle();
    await world.importVersion('b');
    await tick(world.deps);
    await tick(world.deps);
    expect(versionsNow().candidate).toBe(nameOf('b'));
  });

  it('is settled then: a tick writes nothing', async () => {
    await arrive('a');
    world.kube.edit(dataSourceKind.type, { namespace, name: 'fedora-candidate' }, (source) => {
      source.status = { conditions: [{ type: 'Ready', status: 'True' }] };
    });
    for (let count = 0; count < 3; count += 1) await tick(world.deps);
    world.kube.calls.length = 0;
    await tick(world.deps);
    expect(new Set(world.kube.calls.map(({ verb }) => verb))).toEqual(new Set(['list']));
  });

  it('takes over what its DataSources have, and moves on from there', async () => {
    await world.kube.delete(type, { namespace, name: 'fedora' });
    await world.importVersion('a');
    expect(versionsNow().stable).toBe(nameOf('a'));
    aPolicy();
    await settle();
    expect(policyNow().status?.history?.[0]).toMatchObject({ channel: 'stable', reason: 'Adopted', to: nameOf('a') });
    await arrive('b');
    expect(versionsNow()).toEqual({ candidate: nameOf('b'), stable: nameOf('a') });
    expect(sourceOf('fedora')?.metadata.ownerReferences ?? []).toEqual([]);
    await world.kube.delete(dataImportCronKind.type, { namespace, name: 'cron' });
    await world.reconcileCron();
    await settle();
    expect(versionsNow()).toEqual({ candidate: nameOf('b'), stable: nameOf('a') });
    expect(policyNow().status?.conditions?.[0]).toMatchObject({
      status: 'False',
      reason: 'CronDeleted',
      message: expect.stringMatching(/DataImportCron cron is gone.*DataSources stay where they are/),
    });
  });

  it('says that a version is lost, and goes on once it is there again', async () => {
    await arrive('a');
    await world.kube.delete(persistentVolumeClaims, { namespace, name: nameOf('a') });
    await settle();
    expect(reasonsNow()).toMatchObject({ candidate: 'VersionLost' });
    expect(versionsNow().candidate).toBe(nameOf('a'));
  });
});
