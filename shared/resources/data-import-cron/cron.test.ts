// A cron from its first poll to versions that follow each other.
import { describe, expect, it } from 'vitest';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import { refOf } from '#shared/api/object.ts';
import { pollIfDue } from '#shared/resources/data-import-cron/poll.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { tick } from '#shared/resources/sweep.ts';
import { digestOf, nameOf, namespace, useCronWorld } from '#test/support/cron-world.ts';

const world = useCronWorld();
const {
  aCron,
  all,
  conditionsOf,
  cronNow,
  reconcileCron,
  eventsNow,
  finishImport,
  importNow,
  importVersion,
  poll,
  sourceNow,
} = world;

describe('a DataImportCron', () => {
  it('polls as soon as it is observed, imports what it finds, and points its data source to it', async () => {
    const cron = aCron({}, { labels: { 'instancetype.kubevirt.io/default-preference': 'fedora', invalid: 'x' } });
    await reconcile(world.deps, refOf(cron));
    expect(conditionsOf()).toMatchObject({ UpToDate: 'False/NoDigest', Progressing: 'False/NoImport' });
    expect(sourceNow().spec.source).toEqual({});
    await pollIfDue(world.deps, cronNow());
    expect(importNow()).toMatchObject({
      metadata: {
        name: nameOf('a'),
        labels: { [cdiLabels.cron]: 'cron', 'instancetype.kubevirt.io/default-preference': 'fedora' },
        annotations: { [cdiAnnotations.immediateBinding]: 'true' },
      },
      spec: {
        source: { registry: { url: `docker://quay.io/containerdisks/fedora@${digestOf('a')}`, secretRef: 'login' } },
        storage: { resources: { requests: { storage: '5Gi' } } },
      },
    });
    expect(importNow().metadata.ownerReferences).toBe(undefined);
    await finishImport(nameOf('a'), 'ImportInProgress');
    expect(conditionsOf()).toMatchObject({
      Progressing: 'True/ImportProgressing',
      UpToDate: 'False/ImportProgressing',
    });
    await finishImport(nameOf('a'));
    expect(conditionsOf()).toEqual({
      Progressing: 'False/NoImport',
      UpToDate: 'True/UpToDate',
      Ready: 'True/Ready',
      Degraded: 'False/AsExpected',
    });
    expect(cronNow().status).toMatchObject({
      currentImports: [{ DataVolumeName: nameOf('a'), Digest: digestOf('a') }],
      lastImportedPVC: { namespace, name: nameOf('a') },
      sourceFormat: 'pvc',
      importsToKeep: 1,
      lastPoll: { outcome: 'Changed', message: 'it is a' },
      nextExecutionTimestamp: expect.stringMatching(/^2026-03-01T12:0/),
    });
    expect(sourceNow().spec.source).toEqual({ pvc: { namespace, name: nameOf('a') } });
    expect(sourceNow().metadata.labels).toMatchObject({ [cdiLabels.cron]: 'cron' });
    expect(sourceNow().metadata.labels).not.toHaveProperty('invalid');
    expect(eventsNow()).toEqual(['SourcePolled', 'SourceChanged', 'ImportStarted', 'VersionImported']);
  });

  it('is settled then: a tick costs one page per kind and writes nothing', async () => {
    aCron();
    await importVersion('a');
    world.kube.edit(dataSourceKind.type, { namespace, name: 'fedora' }, (source) => {
      source.status = { conditions: [{ type: 'Ready', status: 'True' }] };
    });
    // Classes are described once.
    await tick(world.deps);
    await tick(world.deps);
    world.kube.calls.length = 0;
    await tick(world.deps);
    expect(new Set(world.kube.calls.map(({ verb }) => verb))).toEqual(new Set(['list']));
  });

  it('keeps the old version in use until the new one is ready, then removes it', async () => {
    aCron();
    await importVersion('a');
    await poll('b');
    expect(sourceNow().spec.source).toEqual({ pvc: { namespace, name: nameOf('a') } });
    expect(conditionsOf()).toMatchObject({ UpToDate: 'False/Outdated', Ready: 'True/Ready' });
    await finishImport(nameOf('b'));
    expect(sourceNow().spec.source).toEqual({ pvc: { namespace, name: nameOf('b') } });
    expect(all()).toEqual({ imports: [nameOf('b')], volumes: [nameOf('b')] });
    expect(eventsNow()).toContain('VersionCollected');
  });

  it('replaces a running or failed import at once', async () => {
    aCron();
    await poll('a');
    await poll('b');
    expect(all().imports).toEqual([nameOf('b')]);
    await finishImport(nameOf('b'), 'Failed');
    expect(conditionsOf()).toMatchObject({ Degraded: 'True/ImportFailed', Progressing: 'False/Failed' });
    expect(cronNow().status?.conditions?.at(-1)?.message).toContain('the registry said no');
    await importVersion('c');
    expect(all().imports).toEqual([nameOf('c')]);
    expect(conditionsOf()).toMatchObject({ UpToDate: 'True/UpToDate', Degraded: 'False/AsExpected' });
  });

  it('fails an import finally, keeps the old version, and retries on request', async () => {
    aCron();
    await importVersion('a');
    await poll('b');
    await finishImport(nameOf('b'), 'Failed');
    const failed = importNow().metadata.uid;
    await tick(world.deps);
    await reconcileCron();
    expect(importNow().metadata.uid).toBe(failed);
    expect(sourceNow().spec.source).toEqual({ pvc: { namespace, name: nameOf('a') } });
    await world.kube.mergePatch(
      dataImportCronKind.type,
      { namespace, name: 'cron' },
      { metadata: { annotations: { [annotations.retry]: '1' } } },
    );
    await reconcileCron();
    await reconcileCron();
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
    world.kube.collectGarbage();
    await reconcileCron();
    expect(importNow().metadata.uid).not.toBe(failed);
    await finishImport(nameOf('b'));
    expect(conditionsOf()).toMatchObject({ UpToDate: 'True/UpToDate' });
  });

  it('imports a version that was deleted manually again, under the same name', async () => {
    aCron();
    await importVersion('a');
    const { uid } = importNow().metadata;
    await world.kube.delete(dataVolumes, { namespace, name: nameOf('a') });
    world.kube.collectGarbage();
    await reconcileCron();
    expect(importNow().metadata.uid).not.toBe(uid);
    await finishImport(nameOf('a'));
    const second = importNow().metadata.uid;
    await world.kube.delete(persistentVolumeClaims, { namespace, name: nameOf('a') });
    await reconcileCron();
    await reconcileCron();
    expect(importNow().metadata.uid).not.toBe(second);
  });

  it('accepts a digest from any user, also without a schedule', async () => {
    const cron = aCron({ schedule: '' }, { annotations: { [cdiAnnotations.desiredDigest]: digestOf('d') } });
    await reconcile(world.deps, refOf(cron));
    await tick(world.deps);
    expect(world.asked).toEqual([]);
    await finishImport(nameOf('d'));
    expect(conditionsOf()).toMatchObject({ UpToDate: 'True/UpToDate' });
  });

  it.each([
    ['sha234:abababababab', 'Digest has no supported prefix'],
    ['sha256:01234567890', 'Digest is too short'],
  ])('reports the error in the digest %s', async (digest, problem) => {
    aCron({}, { annotations: { [cdiAnnotations.desiredDigest]: digest } });
    await reconcileCron();
    expect(cronNow().status?.conditions?.at(-1)).toMatchObject({
      reason: 'InvalidDigest',
      message: expect.stringContaining(problem),
    });
  });

  it('reports the error in its spec', async () => {
    aCron({ schedule: 'daily', template: { spec: { source: { registry: { url: 'fedora' } } } } });
    await reconcileCron();
    const message = cronNow().status?.conditions?.at(-1)?.message;
    expect(message).toContain('spec.template.spec.source.registry.url must name a registry');
    expect(message).toContain('spec.schedule must have five fields');
    await pollIfDue(world.deps, cronNow());
    expect(world.asked).toEqual([]);
  });
});
