// Limits of tenants and golden images that are offered, on a whole cluster: what is refused at the door, where a transfer does not go, what users are
// told, and a disk of an image of another namespace without rights there.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { configMaps, namespaces } from '#shared/api/foreign/core.ts';
import { annotations, tenantLimits } from '#shared/api/names.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { grantRights } from '#test/support/admission-scenes.ts';
import { kubectlWith } from '#test/support/admission-server.ts';
import { runBullion } from '#test/support/bullion.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { type Origin, fileAnswer, startOrigin } from '#test/support/origin.ts';
import { hasKubectl } from '#test/support/tools.ts';
import { untilStatus } from '#test/support/until.ts';

const tenant = 'team-a';
const golden = 'golden-images';
const disk = noise('limits', 64 * 1024);

const aVolume = (name: string, spec: object, namespace = tenant): DataVolume => ({
  apiVersion: apiVersionOf(dataVolumes),
  kind: 'DataVolume',
  metadata: { name, namespace },
  spec: { storage: { storageClassName: 'local', resources: { requests: { storage: '8Mi' } } }, ...spec },
});

describe('limits of tenants', { timeout: 200_000 }, () => {
  const cache = temporaryDirectory();
  let cluster: TestCluster;
  let file: Origin;
  let redirecting: Origin;
  const from = ({ url }: Origin) => ({ source: { http: { url: `${url}/disk.img` } } });
  const make = (volume: DataVolume) => cluster.kube.create(dataVolumes, volume);
  const endOf = (name: string, namespace = tenant) =>
    untilStatus(cluster.kube, dataVolumes, { namespace, name }, ({ phase }) =>
      ['Succeeded', 'Failed'].includes(phase ?? ''),
    );
  const limit = async (spec: object): Promise<void> => {
    await cluster.kube.mergePatch(tenantLimitKind.type, { name: 'teams' }, { spec });
  };
  const portOf = ({ url }: Origin): string => new URL(url).host;

  beforeAll(async () => {
    file = await startOrigin((request) => fileAnswer(request, disk, { etag: '"1"' }));
    redirecting = await startOrigin(() => ({ status: 302, headers: { location: `${file.url}/disk.img` } }));
    cluster = await startTestCluster();
    for (const [name, team] of [
      [tenant, 'a'],
      [golden, 'platform'],
    ] as const)
      await cluster.kube.create(namespaces, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name, labels: { team } },
      });
    await cluster.kube.create(tenantLimitKind.type, {
      apiVersion: apiVersionOf(tenantLimitKind.type),
      kind: 'TenantLimit',
      metadata: { name: 'teams' },
      spec: {
        namespaceSelector: { matchLabels: { team: 'a' } },
        quota: { volumes: 2 },
        storageClasses: { allow: ['local'] },
        sources: { allow: [{ host: portOf(redirecting) }], message: 'use the mirror' },
        message: 'ask #platform',
      },
    });
  }, 120_000);
  afterAll(async () => {
    await cluster?.close();
    await file?.close();
    await redirecting?.close();
  });

  it('refuse at the door what is not allowed (limit/source, limit/storage-class)', async () => {
    await expect(make(aVolume('direct', from(file)))).rejects.toThrow(
      /must not be used as a source.*teams.*use the mirror/,
    );
    const otherClass = { storage: { storageClassName: 'local-plain', resources: { requests: { storage: '8Mi' } } } };
    await expect(make(aVolume('classed', { ...from(redirecting), ...otherClass }))).rejects.toThrow(
      /storage class local-plain is not allowed by TenantLimit teams, which allows local/,
    );
  });

  it('hold where a source redirects to, and let go on what was allowed since', async () => {
    await make(aVolume('redirected', from(redirecting)));
    const failed = await endOf('redirected');
    expect(JSON.stringify(failed)).toMatch(/SourceNotAllowed/);
    expect(JSON.stringify(failed)).toContain(`${portOf(file)} is not asked`);
    expect(file.requests).toEqual([]);
    await limit({ sources: { allow: [{ host: portOf(redirecting), redirects: 'Any' }] } });
    await vi.waitFor(() => make(aVolume('open', from(redirecting))), { timeout: 30_000 });
    expect((await endOf('open')).phase).toBe('Succeeded');
  });

  it('leave no room for more, and tell users why (limit/quota)', async () => {
    await expect(make(aVolume('third', from(redirecting)))).rejects.toThrow(
      /TenantLimit teams limits the volumes of this namespace to 2, and it has 2: delete what is not needed.*ask #platform/,
    );
    const told = async () => {
      const { out } = await runBullion(['limits', '-n', tenant, '--kubeconfig', cluster.kubeconfigPath]);
      expect(out).toMatch(/teams +volumes +- +2 +2\n/);
      return out;
    };
    expect(await vi.waitFor(told, { timeout: 60_000, interval: 500 })).toContain('teams: ask #platform');
    expect((await cluster.kube.get(configMaps, { namespace: golden, name: tenantLimits }))?.data).toBeUndefined();
  });

  it.skipIf(!hasKubectl())(
    'do not concern a golden image that is offered, which is taken without rights in its namespace',
    async () => {
      await limit({ quota: { volumes: 3 } });
      await make(aVolume('v1', from(file), golden));
      expect((await endOf('v1', golden)).phase).toBe('Succeeded');
      await cluster.kube.create(dataSourceKind.type, {
        apiVersion: apiVersionOf(dataSourceKind.type),
        kind: 'DataSource',
        metadata: { name: 'fedora', namespace: golden, annotations: { [annotations.offeredTo]: 'team=a' } },
        spec: { source: { pvc: { namespace: golden, name: 'v1' } } },
      });
      const copy = { namespace: tenant, name: 'fedora' };
      const isReady = ({ source }: NonNullable<DataSource['status']>) => source !== undefined;
      await untilStatus(cluster.kube, dataSourceKind.type, copy, isReady);
      await grantRights(cluster.kube, 'jane', []);
      const kubectl = kubectlWith(cluster.kubeconfigPath, cache);
      const taken = { source: undefined, sourceRef: { kind: 'DataSource', name: 'fedora' } };
      const asJane = (name: string) => kubectl(['create', '--as', 'jane', '-f', '-'], aVolume(name, taken));
      expect(await asJane('root')).toEqual({ stdout: expect.stringContaining('root created'), stderr: '' });
      expect((await endOf('root')).phase).toBe('Succeeded');
      await cluster.kube.mergePatch(
        dataSourceKind.type,
        { namespace: golden, name: 'fedora' },
        { metadata: { annotations: { [annotations.offeredTo]: null } } },
      );
      await vi.waitFor(async () => expect(await cluster.kube.get(dataSourceKind.type, copy)).toBeUndefined(), {
        timeout: 60_000,
        interval: 500,
      });
      const direct = { ...taken, sourceRef: { ...taken.sourceRef, namespace: golden } };
      const { stderr } = await kubectl(['create', '--as', 'jane', '-f', '-'], aVolume('late', direct));
      expect(stderr).toMatch(/user jane is not allowed to clone from the volume behind DataSource/);
      expect(await cluster.kube.get(dataVolumes, { namespace: tenant, name: 'root' })).toBeDefined();
    },
  );

  it('are no longer told where they do not apply any more', async () => {
    await cluster.kube.mergePatch(namespaces, { name: tenant }, { metadata: { labels: { team: null } } });
    const told = () => cluster.kube.get(configMaps, { namespace: tenant, name: tenantLimits });
    await vi.waitFor(async () => expect(await told()).toBeUndefined(), { timeout: 60_000, interval: 500 });
    await vi.waitFor(() => make(aVolume('free', from(file))), { timeout: 60_000 });
  });
});
