// Conformance scenarios of DataImportCrons about their versions, from a real registry: removed, adopted, rejected, cloned from other namespaces.
// The numbers are those of the table in shared/resources/data-import-cron/README.md.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { jobs, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { noise } from '#test/support/disk.ts';
import { conditionOf, isUpToDate, untilOffered, versionOf } from '#test/support/golden.ts';
import { type GoldenRegistry, startGoldenRegistry } from '#test/support/golden-registry.ts';
import { pushIndex } from '#test/support/registry/images.ts';
import { hasRegistry } from '#test/support/registry/server.ts';

const namespace = 'golden-images';
const crons = dataImportCronKind.type;
const bytes = 64 * 1024;

describe.skipIf(!hasRegistry())('versions of golden images', { timeout: 600_000 }, () => {
  let golden: GoldenRegistry;
  let registry: GoldenRegistry['registry'];
  let cluster: GoldenRegistry['cluster'];
  let flow: GoldenRegistry['flow'];
  let target: GoldenRegistry['target'];
  let push: GoldenRegistry['push'];
  let urlOf: GoldenRegistry['urlOf'];
  let fed: GoldenRegistry['fed'];
  let aCron: GoldenRegistry['aCron'];
  let contentOf: GoldenRegistry['contentOf'];
  beforeAll(async () => {
    golden = await startGoldenRegistry(namespace);
    ({ registry, cluster, flow, target, push, urlOf, fed, aCron, contentOf } = golden);
  }, 300_000);
  afterAll(() => golden?.close());

  const isGone = (object: unknown) => object === undefined;
  /** Like versions of earlier releases: populated, and with the label. */
  const aVolume = (name: string, cron: string, lastUse?: string) =>
    cluster.kube.create(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        namespace,
        name,
        labels: { [cdiLabels.cron]: cron },
        ...(lastUse === undefined ? {} : { annotations: { [cdiAnnotations.lastUseTime]: lastUse } }),
      },
      spec: { storageClassName: 'local', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '16Mi' } } },
    });

  it('7: a cron that hangs is deleted at once, with its import, Job and pod, also when its ConfigMap is missing', async () => {
    const { digest, layers } = await push('seven', 'seven');
    registry.intercept = ({ path }) => path.includes(layers[0]?.digest ?? 'none');
    await aCron('seven');
    const version = versionOf('seven', digest);
    await flow.until(dataVolumes, version, (object) => object?.status?.phase === 'ImportInProgress');
    await flow.aCron('no-ca', fed({ registry: { url: urlOf('seven'), certConfigMap: 'missing' } }));
    await flow.until(crons, 'no-ca', (cron) => conditionOf(cron, 'Degraded')?.reason === 'PollFailed');
    for (const name of ['seven', 'no-ca']) {
      await flow.remove(crons, name);
      await flow.until(crons, name, isGone);
    }
    await flow.until(dataVolumes, version, isGone);
    await flow.until(persistentVolumeClaims, version, isGone);
    registry.intercept = undefined;
    const workers: readonly ResourceType[] = [jobs, pods];
    for (const type of workers) {
      const left = async () => (await cluster.kube.list(type, { namespace })).items;
      await expect.poll(async () => (await left()).map(({ metadata }) => metadata.name)).toEqual([]);
    }
  });

  it('9: a requested poll finds what the schedule has not polled yet', async () => {
    const first = await push('nine', 'nine-1');
    await aCron('nine', { schedule: '0 0 1 1 *' });
    await untilOffered(flow, 'nine', versionOf('nine', first.digest));
    const second = await push('nine', 'nine-2');
    await flow.pollNow('nine');
    const cron = await flow.until(
      crons,
      'nine',
      (object) => object?.metadata.annotations?.[cdiAnnotations.desiredDigest] === second.digest,
    );
    expect(Date.parse(cron.metadata.annotations?.[cdiAnnotations.nextCronTime] ?? '')).toBeGreaterThan(Date.now());
    await untilOffered(flow, 'nine', versionOf('nine', second.digest));
  });

  it('10: an index resolves to the image of the requested architecture, and its digest names the version', async () => {
    const [amd64, arm64, newer] = [await push('amd', 'amd-1'), await push('arm', 'arm-1'), await push('amd', 'amd-2')];
    await pushIndex(
      target,
      [
        { architecture: 'amd64', image: amd64 },
        { architecture: 'arm64', image: arm64 },
      ],
      'ten',
    );
    const source = { registry: { url: urlOf('ten'), pullMethod: 'node', platform: { architecture: 'arm64' } } };
    await flow.aCron('ten', fed(source));
    const version = versionOf('ten', arm64.digest);
    await untilOffered(flow, 'ten', version);
    expect(await contentOf(version)).toEqual(noise('arm-1', bytes));
    // Other architectures are ignored.
    await pushIndex(
      target,
      [
        { architecture: 'amd64', image: newer },
        { architecture: 'arm64', image: arm64 },
      ],
      'ten',
    );
    const before = (await flow.get(crons, 'ten'))?.status?.lastPoll?.sourceDigest;
    await flow.pollNow('ten');
    const cron = await flow.until(
      crons,
      'ten',
      (object) => object?.status?.lastPoll?.sourceDigest !== before && isUpToDate(object),
    );
    expect(cron.status?.lastImportedPVC?.name).toBe(version);
  });

  it('11: keeps the newest N versions and the most recently used ones', async () => {
    for (const [index, day] of ['2020-01-01', '2020-01-03', '2020-01-02'].entries())
      await aVolume(`eleven-old-${index}`, 'eleven', `${day}T00:00:00.5Z`);
    const { digest } = await push('eleven', 'eleven');
    await aCron('eleven', { importsToKeep: 2 });
    const version = versionOf('eleven', digest);
    await untilOffered(flow, 'eleven', version);
    for (const name of ['eleven-old-0', 'eleven-old-2']) await flow.until(persistentVolumeClaims, name, isGone);
    const { items } = await cluster.kube.list(persistentVolumeClaims, {
      namespace,
      labelSelector: `${cdiLabels.cron}=eleven`,
    });
    expect(items.map(({ metadata }) => metadata.name).sort()).toEqual([version, 'eleven-old-1'].sort());
    const used = items.find(({ metadata }) => metadata.name === version)?.metadata.annotations?.[
      cdiAnnotations.lastUseTime
    ];
    expect(Date.parse(used ?? '')).toBeLessThanOrEqual(Date.now());
  });

  it('12: an existing version is used, and nothing is imported', async () => {
    const { digest } = await push('twelve', 'twelve');
    const version = versionOf('twelve', digest);
    await aVolume(version, 'twelve');
    await flow.until(persistentVolumeClaims, version, (claim) => claim?.status?.phase === 'Bound');
    await aCron('twelve');
    await untilOffered(flow, 'twelve', version);
    const cron = await flow.until(crons, 'twelve', isUpToDate);
    expect(cron.status).toMatchObject({
      currentImports: [{ DataVolumeName: version }],
      lastImportedPVC: { name: version },
    });
    expect(await flow.get(dataVolumes, version)).toBe(undefined);
  });

  it('18: invalid digests and sources are rejected with the messages of the original', async () => {
    await aCron('eighteen', { schedule: '' });
    const says = async (digest: string, words: string): Promise<void> => {
      await flow.annotate('eighteen', { [cdiAnnotations.desiredDigest]: digest });
      await flow.until(crons, 'eighteen', (cron) => conditionOf(cron, 'Degraded')?.message?.includes(words) === true);
    };
    await says(`sha234:${'a'.repeat(64)}`, 'Digest has no supported prefix');
    await says('sha256:01234567890', 'Digest is too short');
    const streams = aCron('streams', fed({ registry: { imageStream: 'fedora', pullMethod: 'node' } }));
    await expect(streams).rejects.toThrow('image streams exist on OpenShift alone');
  });

  it('19: a volume is followed; one of another namespace when the service account may clone it, and otherwise the cron reports it', async () => {
    const { digest } = await push('nineteen', 'nineteen');
    await cluster.kube.create(dataVolumeKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { namespace: 'elsewhere', name: 'origin', annotations: { [cdiAnnotations.immediateBinding]: 'true' } },
      spec: {
        source: { registry: { url: `docker://${registry.host}/disks/fedora@${digest}` } },
        storage: { storageClassName: 'local', resources: { requests: { storage: '16Mi' } } },
      },
    });
    await flow.aCron('nineteen', fed({ pvc: { namespace: 'elsewhere', name: 'origin' } }));
    const refused = await flow.until(
      crons,
      'nineteen',
      (cron) => conditionOf(cron, 'Progressing')?.reason === 'NotAuthorized',
    );
    expect(conditionOf(refused, 'Degraded')?.message).toContain(
      'golden-images/default may not clone from namespace elsewhere',
    );
    expect(
      (await cluster.kube.list(dataVolumes, { namespace, labelSelector: `${cdiLabels.cron}=nineteen` })).items,
    ).toEqual([]);
    const grants = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      metadata: { namespace: 'elsewhere', name: 'cloners' },
    };
    const rbac = (kind: string, plural: string) =>
      ({ group: 'rbac.authorization.k8s.io', version: 'v1', kind, plural, namespaced: true }) as ResourceType;
    await cluster.kube.create(rbac('Role', 'roles'), {
      ...grants,
      kind: 'Role',
      rules: [{ apiGroups: ['cdi.kubevirt.io'], resources: ['datavolumes/source'], verbs: ['create'] }],
    } as never);
    await cluster.kube.create(rbac('RoleBinding', 'rolebindings'), {
      ...grants,
      kind: 'RoleBinding',
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'cloners' },
      subjects: [{ kind: 'ServiceAccount', namespace, name: 'default' }],
    } as never);
    await flow.pollNow('nineteen');
    const cron = await flow.until(crons, 'nineteen', isUpToDate);
    expect(await contentOf(cron.status?.lastImportedPVC?.name ?? '')).toEqual(noise('nineteen', bytes));
  });

  it('22: DataSources are ready with what they refer to, several with one volume, and references with their target', async () => {
    const aSource = (name: string, source: DataSource['spec']['source']) =>
      cluster.kube.create(dataSourceKind.type, {
        apiVersion: 'cdi.kubevirt.io/v1beta1',
        kind: 'DataSource',
        metadata: { namespace, name },
        spec: { source },
      });
    const says = async (name: string, reason: string): Promise<DataSource> =>
      flow.until(dataSourceKind.type, name, (source) => conditionOf(source, 'Ready')?.reason === reason);
    await aSource('a', { pvc: { name: 'late' } });
    await aSource('b', { pvc: { namespace, name: 'late' } });
    await aSource('pointer', { dataSource: { name: 'a' } });
    await aSource('too-deep', { dataSource: { name: 'pointer' } });
    await aSource('itself', { dataSource: { name: 'itself' } });
    await aSource('abroad', { dataSource: { namespace: 'elsewhere', name: 'a' } });
    await aSource('pictured', { snapshot: { name: 'nowhere' } });
    await says('too-deep', 'MaxReferenceDepthReached');
    await says('itself', 'SelfReference');
    await says('abroad', 'CrossNamespaceReference');
    await says('pictured', 'NotFound');
    await says('a', 'NotFound');
    await aVolume('late', '');
    for (const name of ['a', 'b', 'pointer']) {
      const source = await says(name, 'Ready');
      expect(source.status?.source?.pvc?.name).toBe('late');
    }
    await flow.remove(persistentVolumeClaims, 'late');
    for (const name of ['a', 'b']) await says(name, 'NotFound');
    await flow.until(dataSourceKind.type, 'pointer', (source) => conditionOf(source, 'Ready')?.status === 'False');
  });
});
