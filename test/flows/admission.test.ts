// The rules at the door as people meet them: kubectl against a cluster with its webhooks, embedded or real.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { namespaces } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { applyObjects } from '#infra/local/install.ts';
import { type Draft, aHarvesterImage, aHyperCloudImage } from '#test/support/admission.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { hasKubectl } from '#test/support/tools.ts';

const dataVolume = (spec: Record<string, unknown>, name = 'disk'): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name, namespace: 'default' },
  spec,
});
const storage = { resources: { requests: { storage: '1Gi' } } };
const http = { http: { url: 'https://images.example/a.qcow2' } };
const fromGolden = (name: string) =>
  dataVolume({ source: { pvc: { namespace: 'golden', name: 'fedora' } }, storage }, name);

/** Rule, an object that passes, one that does not, and what kubectl says. */
type Row = readonly [rule: string, allowed: Draft, denied: Draft, says: RegExp];
const rows: readonly Row[] = [
  ['C2', aHarvesterImage(), aHarvesterImage({ displayName: '' }), /spec\.displayName/],
  [
    'C4',
    aHarvesterImage({ targetStorageClassName: 'a' }),
    aHarvesterImage({ targetStorageClassName: 'a' }, { annotations: { 'harvesterhci.io/storageClassName': 'b' } }),
    /spec\.targetStorageClassName.*differs/,
  ],
  ['C5', aHarvesterImage(), aHarvesterImage({ url: undefined }), /spec\.url.*is required/],
  ['C6', aHarvesterImage(), aHarvesterImage({ url: 'nowhere' }), /spec\.url.*is no URL/],
  ['C7', aHarvesterImage(), aHarvesterImage({ sourceType: 'upload' }), /spec\.url.*must be empty/],
  ['C8', aHarvesterImage(), aHarvesterImage({ sourceType: 'clone', url: undefined }), /sourceImageName.*is required/],
  ['C21', aHarvesterImage(), aHarvesterImage({ sourceType: 'export-from-volume', url: undefined }), /spec\.pvcName/],
  ['H2', aHyperCloudImage(), aHyperCloudImage({ pvc: { volumeMode: 'Block' } }), /requests\.storage.*is missing/],
  ['H3', aHyperCloudImage(), aHyperCloudImage({ source: {} }), /spec\.source/],
  ['5', dataVolume({ source: http, storage }), dataVolume({ source: http, storage, pvc: storage }), /spec\.storage/],
  ['11', dataVolume({ source: http, storage }), dataVolume({ source: http, pvc: storage }), /accessModes.*exactly one/],
  ['18', dataVolume({ source: http, storage }), dataVolume({ source: { ...http, blank: {} }, storage }), /exactly one/],
  ['20', dataVolume({ source: http, storage }), dataVolume({ source: { http: { url: 'ftp://a/b' } }, storage }), /url/],
];

describe.skipIf(!hasKubectl())('the door, through kubectl', { timeout: 120_000 }, () => {
  let cluster: TestCluster;
  let dir: string;
  let asTenant: string;

  beforeAll(async () => {
    cluster = await startTestCluster();
    dir = await mkdtemp(join(tmpdir(), 'bullion-door-'));
    await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'golden' } });
    asTenant = await tenant();
  });
  afterAll(async () => {
    await cluster?.close();
    await rm(dir, { recursive: true, force: true });
  });

  const kubectl = (kubeconfig: string, args: readonly string[], input?: object): Promise<string> =>
    new Promise((resolve) => {
      const child = execFile(
        'kubectl',
        ['--kubeconfig', kubeconfig, '--cache-dir', join(dir, 'cache'), ...args],
        (error, stdout, stderr) => resolve(error === null ? stdout : `refused: ${stderr}`),
      );
      child.stdin?.end(input === undefined ? '' : JSON.stringify(input));
    });
  const create = (object: Draft, kubeconfig = cluster.kubeconfigPath): Promise<string> => {
    const { uid: _, ...metadata } = object.metadata;
    return kubectl(kubeconfig, ['create', '--dry-run=server', '-f', '-'], { ...object, metadata });
  };

  /** A service account that may make data volumes in `default`, and nothing elsewhere. */
  const tenant = async (): Promise<string> => {
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role' };
    await applyObjects(cluster.kube, [
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'tenant', namespace: 'default' } },
      {
        ...role,
        metadata: { name: 'tenant', namespace: 'default' },
        rules: [{ apiGroups: ['cdi.kubevirt.io'], resources: ['datavolumes'], verbs: ['*'] }],
      },
      binding('tenant', 'default'),
    ] as unknown as readonly KubeObject[]);
    const token = (await kubectl(cluster.kubeconfigPath, ['create', 'token', 'tenant'])).trim();
    const config = parse(await readFile(cluster.kubeconfigPath, 'utf8')) as { users: { name: string }[] };
    const path = join(dir, 'tenant.kubeconfig');
    await writeFile(path, stringify({ ...config, users: config.users.map(({ name }) => ({ name, user: { token } })) }));
    return path;
  };
  const binding = (name: string, namespace: string) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ kind: 'ServiceAccount', name: 'tenant', namespace: 'default' }],
  });

  it.each(rows)('%s', async (_rule, allowed, denied, says) => {
    expect(await create(allowed)).toMatch(/created/);
    expect(await create(denied)).toMatch(says);
  });

  it('a clone across namespaces takes a right there, and is granted with it', async () => {
    expect(await create(fromGolden('early'), asTenant)).toMatch(
      /Forbidden.*user system:serviceaccount:default:tenant is not allowed to clone from golden\/fedora/s,
    );
    await applyObjects(cluster.kube, [
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata: { name: 'sourcer', namespace: 'golden' },
        rules: [{ apiGroups: ['cdi.kubevirt.io'], resources: ['datavolumes/source'], verbs: ['create'] }],
      },
      binding('sourcer', 'golden'),
    ] as unknown as readonly KubeObject[]);
    // An authorizer may be a moment behind.
    await vi.waitFor(async () => expect(await create(fromGolden('late'), asTenant)).toMatch(/created/), {
      timeout: 10_000,
    });
  });

  it('keeps a storage class that an image is kept in', async () => {
    await kubectl(
      cluster.kubeconfigPath,
      ['create', '-f', '-'],
      aHyperCloudImage({ storageClassName: 'local-wffc' }, { name: 'kept', uid: undefined }),
    );
    const remove = ['delete', 'storageclass', 'local-wffc', '--dry-run=server'];
    expect(await kubectl(cluster.kubeconfigPath, remove)).toMatch(/used by images: virtualmachineimage default\/kept/);
    await kubectl(cluster.kubeconfigPath, ['delete', 'vmim', 'kept', '--wait']);
    expect(await kubectl(cluster.kubeconfigPath, remove)).toMatch(/deleted/);
  });
});
