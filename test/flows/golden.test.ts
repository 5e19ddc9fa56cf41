import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataImportCronSpec, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { namespaces, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { noise } from '#test/support/disk.ts';
import {
  type GoldenFlow,
  conditionOf,
  createGoldenFlow,
  isUpToDate,
  pointsTo,
  seldom,
  versionOf,
} from '#test/support/golden.ts';
import { type PushTarget, pushDisk, sha256 } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';

const namespace = 'golden-images';

/** Crons delegate the work to data volumes. */
const hasImports = servedKinds.some(({ type }) => type.plural === dataVolumes.plural);

describe.skipIf(!hasImports || !hasRegistry())(
  'golden images on a cluster, from a real registry',
  { timeout: 600_000 },
  () => {
    let registry: TestRegistry;
    let cluster: TestCluster;
    let target: PushTarget;
    let flow: GoldenFlow;
    beforeAll(async () => {
      registry = await startRegistry();
      target = { host: registry.host, repository: 'disks/fedora' };
      cluster = await startTestCluster({ ...seldom, functionEnvironment: { PLAIN_REGISTRIES: registry.host } });
      flow = createGoldenFlow(cluster.kube, namespace);
      await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    }, 300_000);
    afterAll(async () => {
      await cluster?.close();
      await registry?.close();
    });

    const aCron = (name: string, over: Partial<DataImportCronSpec> = {}, labels: Record<string, string> = {}) =>
      flow.aCron(
        name,
        {
          importsToKeep: 1,
          template: {
            spec: {
              source: { registry: { url: `docker://${registry.host}/disks/fedora:${name}` } },
              storage: { resources: { requests: { storage: '16Mi' } } },
            },
          },
          ...over,
        },
        { labels },
      );
    const get: GoldenFlow['get'] = (...request) => flow.get(...request);
    const until: GoldenFlow['until'] = (...request) => flow.until(...request);
    const pollNow = (name: string) => flow.pollNow(name);
    const push = (name: string, seed: string) => pushDisk(target, noise(seed, 64 * 1024), name);
    const ready = async (name: string, over: Partial<DataImportCronSpec> = {}, labels: Record<string, string> = {}) => {
      const { digest } = await push(name, `${name}-1`);
      await aCron(name, over, labels);
      const version = versionOf(name, digest);
      await until(dataImportCronKind.type, name, isUpToDate);
      await until(dataSourceKind.type, name, pointsTo(version));
      return version;
    };

    it('1: a new cron imports, and its data source is ready', async () => {
      const labels = { 'instancetype.kubevirt.io/default-preference': 'fedora', invalid: 'x' };
      const version = await ready('one', {}, labels);
      const cron = await get(dataImportCronKind.type, 'one');
      expect(cron?.status).toMatchObject({
        currentImports: [{ DataVolumeName: version }],
        lastImportedPVC: { namespace, name: version },
        sourceFormat: 'pvc',
        // A second poll may have been in progress: its result is the same.
        lastPoll: { outcome: expect.stringMatching(/^(Changed|Same)$/), failures: 0 },
      });
      expect(conditionOf(cron, 'Progressing')).toMatchObject({ status: 'False', reason: 'NoImport' });
      const source = await get(dataSourceKind.type, 'one');
      expect(source?.metadata.labels).toMatchObject({
        [cdiLabels.cron]: 'one',
        'instancetype.kubevirt.io/default-preference': 'fedora',
      });
      expect(source?.metadata.labels).not.toHaveProperty('invalid');
    });

    it('2: without digest and source, the next poll imports again under the same name', async () => {
      const version = await ready('two');
      const before = (await get(dataVolumes, version))?.metadata.uid;
      await cluster.kube.mergePatch(
        dataImportCronKind.type,
        { namespace, name: 'two' },
        { metadata: { annotations: { [cdiAnnotations.desiredDigest]: '' } } },
      );
      await cluster.kube.delete(dataVolumes, { namespace, name: version });
      await pollNow('two');
      await until(dataVolumes, version, (object) => object !== undefined && object.metadata.uid !== before);
      const cron = await until(dataImportCronKind.type, 'two', isUpToDate);
      expect(cron.status?.lastImportedPVC?.name).toBe(version);
    });

    it('3: the data source is corrected, and created again', async () => {
      const version = await ready('three');
      await cluster.kube.mergePatch(
        dataSourceKind.type,
        { namespace, name: 'three' },
        { spec: { source: { pvc: { name: 'dummy', namespace } } } },
      );
      const before = await until(dataSourceKind.type, 'three', pointsTo(version));
      await cluster.kube.delete(dataSourceKind.type, { namespace, name: 'three' });
      const after = await until(
        dataSourceKind.type,
        'three',
        (source) => source?.metadata.uid !== before.metadata.uid && pointsTo(version)(source),
      );
      expect(after.metadata.labels?.[cdiLabels.cron]).toBe('three');
    });

    it('4: a deleted import is created again', async () => {
      const version = await ready('four');
      const before = (await get(dataVolumes, version))?.metadata.uid;
      await cluster.kube.delete(dataVolumes, { namespace, name: version });
      await until(dataVolumes, version, (object) => object !== undefined && object.metadata.uid !== before);
      const source = await until(dataSourceKind.type, 'four', pointsTo(version));
      expect(source.status?.source?.pvc?.name).toBe(version);
    });

    it('5: a digest that does not exist fails, and a poll corrects it', async () => {
      const version = await ready('five');
      const missing = sha256(Buffer.from('missing'));
      await cluster.kube.mergePatch(
        dataImportCronKind.type,
        { namespace, name: 'five' },
        { metadata: { annotations: { [cdiAnnotations.desiredDigest]: missing } } },
      );
      const failed = versionOf('five', missing);
      const cron = await until(
        dataImportCronKind.type,
        'five',
        (object) => conditionOf(object, 'Degraded')?.reason === 'ImportFailed',
      );
      expect(cron.status?.currentImports).toEqual([{ DataVolumeName: failed, Digest: missing }]);
      expect(pointsTo(version)(await get(dataSourceKind.type, 'five'))).toBe(true);
      const { digest } = await push('five', 'five-2');
      await pollNow('five');
      await until(dataSourceKind.type, 'five', pointsTo(versionOf('five', digest)));
      await until(dataVolumes, failed, (object) => object === undefined);
      await until(persistentVolumeClaims, version, (object) => object === undefined);
    });

    it('6: the policy of a cron determines what is kept and what is deleted with it', async () => {
      const kept = await ready('stays');
      const gone = await ready('goes', { retentionPolicy: 'None' });
      for (const name of ['stays', 'goes']) {
        await cluster.kube.delete(dataImportCronKind.type, { namespace, name });
        await until(dataImportCronKind.type, name, (object) => object === undefined);
      }
      await until(persistentVolumeClaims, gone, (object) => object === undefined);
      await until(dataSourceKind.type, 'goes', (object) => object === undefined);
      await until(dataVolumes, gone, (object) => object === undefined);
      expect(pointsTo(kept)(await get(dataSourceKind.type, 'stays'))).toBe(true);
    });

    it('8: without a schedule, any user who writes the digest starts the import', async () => {
      const { digest } = await push('eight', 'eight');
      await aCron('eight', { schedule: '' });
      await until(dataImportCronKind.type, 'eight', (object) => conditionOf(object, 'UpToDate')?.reason === 'NoDigest');
      await cluster.kube.mergePatch(
        dataImportCronKind.type,
        { namespace, name: 'eight' },
        { metadata: { annotations: { [cdiAnnotations.desiredDigest]: digest } } },
      );
      const source = await until(dataSourceKind.type, 'eight', pointsTo(versionOf('eight', digest)));
      expect(source.spec.source.pvc?.name).toBe(versionOf('eight', digest));
    });

    it('17: the second of two crons for one data source reports the conflict, and takes over when the first is deleted', async () => {
      await push('first', 'first');
      await aCron('first', { managedDataSource: 'shared' });
      await until(dataImportCronKind.type, 'first', isUpToDate);
      const { digest } = await push('second', 'second');
      await aCron('second', { managedDataSource: 'shared' });
      await until(
        dataImportCronKind.type,
        'second',
        (object) => conditionOf(object, 'Degraded')?.reason === 'DataSourceAlreadyManaged',
      );
      await cluster.kube.delete(dataImportCronKind.type, { namespace, name: 'first' });
      const source = await until(dataSourceKind.type, 'shared', pointsTo(versionOf('shared', digest)));
      expect(source.metadata.labels?.[cdiLabels.cron]).toBe('second');
    });

    it('a newer digest replaces an import that hangs', async () => {
      const { digest, layers } = await push('hangs', 'hangs-1');
      // The request for its bytes is never answered.
      registry.intercept = ({ path }) => path.includes(layers[0]?.digest ?? 'none');
      await aCron('hangs');
      await until(dataVolumes, versionOf('hangs', digest), (object) => object?.status?.phase === 'ImportInProgress');
      const newer = await push('hangs', 'hangs-2');
      await pollNow('hangs');
      const source = await until(dataSourceKind.type, 'hangs', pointsTo(versionOf('hangs', newer.digest)));
      expect(source.spec.source.pvc?.name).toBe(versionOf('hangs', newer.digest));
      await until(dataVolumes, versionOf('hangs', digest), (object) => object === undefined);
      registry.intercept = undefined;
    });

    it('a missing source is reported as a condition, and is polled again as soon as it exists', async () => {
      await aCron('late');
      const cron = await until(
        dataImportCronKind.type,
        'late',
        (object) => conditionOf(object, 'Degraded')?.message?.includes('answered 404') === true,
      );
      expect(conditionOf(cron, 'Degraded')?.reason).toBe('PollFailed');
      const { digest } = await push('late', 'late');
      await pollNow('late');
      const source = await until(dataSourceKind.type, 'late', pointsTo(versionOf('late', digest)));
      expect(source.spec.source.pvc?.name).toBe(versionOf('late', digest));
    });
  },
);
