// Rules that are checked after admission, as users experience them: kubectl with a whole cluster.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { startFileServer } from '#infra/local/demo/file-server.ts';
import { applyObjects } from '#local-cluster/install.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type Draft, aHyperCloudImage } from '#test/support/admission.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { noise } from '#test/support/disk.ts';
import { kubectlWith } from '#test/support/admission-server.ts';
import { hasKubectl } from '#test/support/tools.ts';

const fromGolden = (name: string): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name, namespace: 'default' },
  spec: {
    source: { pvc: { namespace: 'golden', name: 'fedora' } },
    storage: { resources: { requests: { storage: '1Gi' } } },
  },
});

describe.skipIf(!hasKubectl())('rules about existing objects, through kubectl', { timeout: 500_000 }, () => {
  let cluster: TestCluster;
  let dir: string;
  let asTenant: string;

  beforeAll(async () => {
    cluster = await startTestCluster();
    dir = await mkdtemp(join(tmpdir(), 'bullion-admission-'));
    await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'golden' } });
    asTenant = await tenant();
  });
  afterAll(async () => {
    await cluster?.close();
    await rm(dir, { recursive: true, force: true });
  });

  const asAdmin = async (args: readonly string[], input?: object): Promise<string> => {
    const { stdout, stderr } = await kubectlWith(cluster.kubeconfigPath, join(dir, 'cache'))(args, input);
    return stdout === '' ? `refused: ${stderr}` : stdout;
  };
  const create = async (object: object): Promise<string> => {
    const send = kubectlWith(asTenant, join(dir, 'cache'));
    const { stdout, stderr } = await send(['create', '--dry-run=server', '-f', '-'], object);
    return stdout === '' ? `refused: ${stderr}` : stdout;
  };
  /** A service account that may create data volumes in `default`, and nothing elsewhere. */
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
    const token = (await asAdmin(['create', 'token', 'tenant'])).trim();
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

  const until = (args: readonly string[], says: RegExp) =>
    vi.waitFor(async () => expect(await asAdmin(args)).toMatch(says), { timeout: 150_000, interval: 200 });

  it('keeps a storage class that an image uses', async () => {
    await asAdmin(
      ['create', '-f', '-'],
      aHyperCloudImage({ storageClassName: 'local-wffc' }, { name: 'kept', uid: undefined }),
    );
    const remove = ['delete', 'storageclass', 'local-wffc', '--dry-run=server'];
    expect(await asAdmin(remove)).toMatch(/used by images: virtualmachineimage default\/kept/);
    await asAdmin(['delete', 'vmim', 'kept', '--wait']);
    expect(await asAdmin(remove)).toMatch(/deleted/);
  });

  it('a clone across namespaces requires a permission there, and is created with it', async () => {
    await vi.waitFor(
      async () =>
        expect(await create(fromGolden('early'))).toMatch(
          /Forbidden.*user system:serviceaccount:default:tenant is not allowed to clone from golden\/fedora/s,
        ),
      { timeout: 150_000 },
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
    // An authorizer may take a moment to observe the change.
    await vi.waitFor(async () => expect(await create(fromGolden('late'))).toMatch(/created/), { timeout: 150_000 });
  });

  it('allows the deletion of a Longhorn image once no volume and no backup depends on it (harvester/volumes-of-image, harvester/backups-of-image)', async () => {
    const file = join(dir, 'disk.img');
    await writeFile(file, noise('kept', 2 ** 20));
    const server = await startFileServer();
    const metadata = { namespace: 'default' };
    const spec = { displayName: 'kept', sourceType: 'download', url: server.offer('disk.img', file) };
    const ofImage = { apiVersion: 'harvesterhci.io/v1beta1', kind: 'VirtualMachineImage' };
    await asAdmin(['create', '-f', '-'], { ...ofImage, metadata: { ...metadata, name: 'stays' }, spec });
    await until(['wait', '--for=condition=Imported', 'vmimage/stays', '--timeout=5s'], /condition met/);
    const className = await asAdmin(['get', 'vmimage', 'stays', '-o', 'jsonpath={.status.storageClassName}']);
    await asAdmin(['create', '-f', '-'], {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { ...metadata, name: 'on-it' },
      spec: {
        storageClassName: className,
        accessModes: ['ReadWriteMany'],
        volumeMode: 'Block',
        resources: { requests: { storage: '16Mi' } },
      },
    });
    const backup = { apiVersion: 'harvesterhci.io/v1beta1', kind: 'VirtualMachineBackup' };
    await asAdmin(['create', '-f', '-'], { ...backup, metadata: { ...metadata, name: 'nightly' } });
    const volumeBackups = [{ persistentVolumeClaim: { spec: { storageClassName: className } } }];
    const patch = JSON.stringify({ status: { volumeBackups } });
    const backups = 'virtualmachinebackups.harvesterhci.io';
    await asAdmin(['patch', backups, 'nightly', '--type=merge', '--subresource=status', '-p', patch]);

    await asAdmin(['delete', 'vmimage', 'stays', '--wait=false']);
    const ready = ['get', 'vmimage', 'stays', '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")]}'];
    await until(ready, /used by PersistentVolumeClaim default\/on-it, VirtualMachineBackup default\/nightly.*InUse/);
    await asAdmin(['delete', 'pvc', 'on-it']);
    await until(ready, /used by VirtualMachineBackup default\/nightly/);
    await asAdmin(['delete', backups, 'nightly']);
    await vi.waitFor(async () => expect(await asAdmin(['get', 'vmimage', 'stays'])).toMatch(/NotFound/), {
      timeout: 150_000,
    });
    await server.close();
  });

  it('accepts one of two images of the same display name, even if they are created concurrently', async () => {
    const create = (name: string) =>
      asAdmin(['create', '-f', '-'], {
        apiVersion: 'harvesterhci.io/v1beta1',
        kind: 'VirtualMachineImage',
        metadata: { name, namespace: 'default' },
        spec: { displayName: 'twins', sourceType: 'upload' },
      });
    const said = await Promise.all(['twin-a', 'twin-b'].map(create));
    const refused = said.filter((words) => /has this display name/.test(words)).length;
    const reasons = '{.items[?(@.spec.displayName=="twins")].status.conditions[?(@.type=="Ready")].reason}';
    await vi.waitFor(
      async () => {
        const told = (await asAdmin(['get', 'vmimages', '-o', `jsonpath=${reasons}`])).split(' ');
        const losers = told.filter((reason) => reason === 'DisplayNameTaken').length;
        expect([losers + refused, told.length - losers]).toEqual([1, 1]);
      },
      { timeout: 150_000, interval: 200 },
    );
  });

  it('creates what templates describe, and reports what is wrong with others (templates/enable-flag, templates/spec-given, templates/unique-name, templates/name-given, templates/filled-in)', async () => {
    const entry = (name: string | undefined, annotations: object = {}) => ({
      metadata: { name, annotations },
      spec: {
        managedDataSource: name ?? 'none',
        schedule: '0 */12 * * *',
        template: { spec: { source: { registry: { url: 'docker://r.example/a' } }, storage: {} } },
      },
    });
    const hco = (name: string, ...templates: readonly object[]) => ({
      apiVersion: 'hco.kubevirt.io/v1beta1',
      kind: 'HyperConverged',
      metadata: { name, namespace: 'templates' },
      spec: { enableCommonBootImageImport: false, dataImportCronTemplates: templates },
    });
    const items = [
      hco('t1', entry('t1', { 'dataimportcrontemplate.kubevirt.io/enable': 'perhaps' })),
      hco('t2', { metadata: { name: 't2' } }),
      hco('t3', entry('t3'), entry('t3')),
      hco('t5', entry('t5', { 'dataimportcrontemplate.kubevirt.io/enable': 'True' })),
      {
        apiVersion: 'ssp.kubevirt.io/v1beta3',
        kind: 'SSP',
        metadata: { name: 't4', namespace: 'templates' },
        spec: { commonTemplates: { dataImportCronTemplates: [entry(undefined)] } },
      },
    ];
    for (const name of ['templates', 'kubevirt-os-images']) await asAdmin(['create', 'namespace', name]);
    await asAdmin(['create', '--validate=false', '-f', '-'], { apiVersion: 'v1', kind: 'List', items });
    const crons = ['get', 'dic', '-n', 'kubevirt-os-images', '-o', 'yaml'];
    await until(crons, /importsToKeep: 1[^]*retentionPolicy: None/);
    const events = ['get', 'events', '-n', 'templates', '-o', 'custom-columns=A:.involvedObject.name,B:.message'];
    await until(events, /t1 +the \S+ annotation of a dataImportCronTemplate must be either "true" or "false": t1/);
    await until(events, /t2 +dataImportCronTemplate spec is empty for an enabled DataImportCronTemplate: t2/);
    await until(events, /t3 +t3 DataImportCronTable is already defined/);
    await until(events, /t4 +missing name in DataImportCronTemplate/);
    expect(await asAdmin(crons)).toMatch(/storage.bind.immediate.requested: "true"/);
    const names = ['get', 'dic', '-n', 'kubevirt-os-images', '-o', 'jsonpath={.items[*].metadata.name}'];
    expect(await asAdmin(names)).toBe('t5');
  });
});
