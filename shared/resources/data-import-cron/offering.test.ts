// The data source of a cron, and others who lay claim to it.
import { describe, expect, it } from 'vitest';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { nameOf, namespace, useCronWorld } from '#test/support/cron-world.ts';

const world = useCronWorld();
const { aCron, all, conditionsOf, cronNow, reconcileCron, eventsNow, finishImport, importVersion, poll, sourceNow } =
  world;

describe('the data source of a cron', () => {
  it('corrects its data source, and creates a new one', async () => {
    aCron();
    await importVersion('a');
    await world.kube.mergePatch(
      dataSourceKind.type,
      { namespace, name: 'fedora' },
      { spec: { source: { pvc: { name: 'dummy' } } } },
    );
    await reconcileCron();
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
    await world.kube.delete(dataSourceKind.type, { namespace, name: 'fedora' });
    await reconcileCron();
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
  });

  it.each([{ pvc: { name: 'older' } }, { snapshot: { name: 'older' } }, { dataSource: { name: 'older' } }])(
    'keeps what an adopted data source refers to until there is a version: %j',
    async (source) => {
      const labels = { [cdiLabels.cron]: 'cron' };
      world.kube.seed(dataSourceKind.type, {
        apiVersion: 'cdi.kubevirt.io/v1beta1',
        kind: 'DataSource',
        metadata: { namespace, name: 'fedora', labels },
        spec: { source },
      });
      aCron();
      await reconcileCron();
      expect(sourceNow().spec.source).toEqual(source);
      await poll('a');
      expect(sourceNow().spec.source).toEqual(source);
      await finishImport(nameOf('a'));
      expect(sourceNow().spec.source).toEqual({ pvc: { namespace, name: nameOf('a') } });
    },
  );

  it('does not change the data source of another cron until that one is deleted', async () => {
    aCron({}, { name: 'first' });
    await reconcileCron('first');
    aCron();
    await reconcileCron();
    expect(conditionsOf()).toMatchObject({ Degraded: 'True/DataSourceAlreadyManaged' });
    expect(eventsNow()).toContain('ErrDataSourceAlreadyManaged');
    world.kube.edit(dataImportCronKind.type, { namespace, name: 'first' }, ({ metadata }) => {
      metadata.finalizers = [];
    });
    await world.kube.delete(dataImportCronKind.type, { namespace, name: 'first' });
    await importVersion('a');
    expect(sourceNow()).toMatchObject({
      metadata: { labels: { [cdiLabels.cron]: 'cron' } },
      spec: { source: { pvc: { name: nameOf('a') } } },
    });
  });

  it('takes over no working data source, and reports how to hand it over', async () => {
    const seeded = world.kube.seed(dataSourceKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: { namespace, name: 'fedora' },
      spec: { source: { pvc: { name: 'mine' } } },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    aCron();
    await importVersion('a');
    expect(sourceNow().spec).toEqual(seeded.spec);
    expect(conditionsOf()).toMatchObject({ Degraded: 'True/DataSourceUnmanaged' });
    await world.kube.mergePatch(
      dataSourceKind.type,
      { namespace, name: 'fedora' },
      { metadata: { labels: { [cdiLabels.cron]: 'cron' } } },
    );
    await reconcileCron();
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('a'));
  });

  it('uses a labelled volume of the right name, and changes no other', async () => {
    const volume = (labels: Record<string, string>) =>
      world.kube.seed(persistentVolumeClaims, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { namespace, name: nameOf('a'), labels },
        spec: { storageClassName: 'local' },
        status: { phase: 'Bound' },
      });
    volume({});
    aCron();
    await poll('a');
    expect(conditionsOf()).toMatchObject({ Degraded: 'True/NameTaken' });
    await world.kube.delete(persistentVolumeClaims, { namespace, name: nameOf('a') });
    volume({ [cdiLabels.cron]: 'cron' });
    await reconcileCron();
    expect(all().imports).toEqual([]);
    expect(conditionsOf()).toMatchObject({ UpToDate: 'True/UpToDate' });
  });

  it('continues with what its data source refers to, when a pass was killed before it wrote the status', async () => {
    aCron();
    await importVersion('a');
    await poll('b');
    const before = cronNow().status!;
    await finishImport(nameOf('b'));
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('b'));
    world.kube.edit(dataImportCronKind.type, { namespace, name: 'cron' }, (cron) => {
      cron.status = structuredClone(before) as never;
    });
    await poll('c');
    expect(sourceNow().spec.source.pvc?.name).toBe(nameOf('b'));
    expect(cronNow().status?.lastImportedPVC?.name).toBe(nameOf('b'));
  });
});
