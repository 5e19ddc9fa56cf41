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
import { type Draft, aHyperCloudImage } from '#test/support/admission.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { type DoorRow, doorRows } from '#test/support/door-rows.ts';
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

/** The object as it is sent: under a name of its own where the row is not about names. */
const named = ({ metadata: all, ...draft }: Draft, name: string): Draft => {
  const metadata: Record<string, unknown> = { ...all, uid: undefined };
  const own = ['ubuntu', 'image-a', undefined].includes(metadata['name'] as string | undefined);
  const spec = draft.spec?.['displayName'] === 'leap' ? { ...draft.spec, displayName: name } : draft.spec;
  return { ...draft, metadata: { ...metadata, ...(own ? { name } : {}) }, ...(spec === undefined ? {} : { spec }) };
};

describe.skipIf(!hasKubectl())('the door, through kubectl', { timeout: 300_000 }, () => {
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
  /** What it says on both streams. */
  const kubectlBoth = (kubeconfig: string, args: readonly string[], input: object) =>
    new Promise<{ readonly stdout: string; readonly stderr: string }>((resolve) => {
      const child = execFile(
        'kubectl',
        ['--kubeconfig', kubeconfig, '--cache-dir', join(dir, 'cache'), ...args],
        { maxBuffer: 2 ** 24 },
        (_error, stdout, stderr) => resolve({ stdout, stderr }),
      );
      child.stdin?.end(JSON.stringify(input));
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

  /** One call for all: what kubectl says of each. Those that pass are named on standard output; errors come in the order of the rest. */
  const sendAll = async (verb: 'create' | 'replace', objects: readonly Draft[]): Promise<readonly string[]> => {
    const list = { apiVersion: 'v1', kind: 'List', items: objects };
    const { stdout, stderr } = await kubectlBoth(
      cluster.kubeconfigPath,
      [verb, '--dry-run=server', '--validate=false', '-f', '-'],
      list,
    );
    const errors = stderr.split(/\n(?=Error from server|The |error: )/);
    return objects.map(({ metadata }) => {
      const passed = stdout.split('\n').find((line) => line.includes(`/${String(metadata['name'])} `));
      return passed ?? errors.shift() ?? 'kubectl said nothing';
    });
  };

  type Pick = 'allowed' | 'denied';
  const isAsItShould = (pick: Pick, { says }: DoorRow, said: string): boolean =>
    pick === 'denied' ? says.test(said) : /(created|replaced) \(server dry run\)/.test(said);
  /** Rows that went wrong, with what was said. */
  const tryAll = async (verb: 'create' | 'replace', pick: Pick, rows: readonly DoorRow[]) => {
    const said = await sendAll(
      verb,
      rows.map((row) => named(row[pick], `${verb}-${doorRows.indexOf(row)}-${verb === 'create' ? pick : 'row'}`)),
    );
    return rows.flatMap((row, index) =>
      isAsItShould(pick, row, said[index] ?? '') ? [] : [{ row, said: `${row.ids.join()} ${pick}: ${said[index]}` }],
    );
  };

  const creations = doorRows.filter(({ before }) => before === undefined);
  const updates = doorRows.filter(({ before }) => before !== undefined);

  it.each(['allowed', 'denied'] as const)('of every rule about what is created, the %s object', async (pick) => {
    const wrong = await tryAll('create', pick, creations);
    expect(wrong.map(({ said }) => said)).toEqual([]);
  });

  it('of every rule about what is changed, the allowed and the denied change', async () => {
    const items = updates.map((row) => named(row.before!, `replace-${doorRows.indexOf(row)}-row`));
    const list = { apiVersion: 'v1', kind: 'List', items };
    await kubectlBoth(cluster.kubeconfigPath, ['create', '--validate=false', '-f', '-'], list);
    for (const pick of ['allowed', 'denied'] as const) {
      let left = updates;
      // What is driven meanwhile has another version than the one that is replaced.
      await vi.waitFor(
        async () => {
          const wrong = await tryAll('replace', pick, left);
          left = wrong.map(({ row }) => row);
          expect(wrong.map(({ said }) => said)).toEqual([]);
        },
        { timeout: 120_000, interval: 500 },
      );
    }
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
