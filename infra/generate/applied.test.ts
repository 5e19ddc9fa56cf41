// Every manifest, as kubectl renders it, put into a real API server beside the definitions of all it may meet there: in one go, in any order, again and
// again, and not a word of warning.
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { findAssets } from '#local-cluster/envtest/assets.ts';
import { findDefinitions } from '#local-cluster/envtest/knative/assets.ts';
import { buildOpenCrd } from '#infra/local/manifests.ts';
import { type RealApiServer, startRealApiServer } from '#local-cluster/real-api-server/server.ts';
import { systemNamespace } from '#shared/api/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { kubectlWith } from '#test/support/admission-server.ts';
import { infraDir, overlayWith, renderText } from '#test/support/overlay.ts';
import { createRandom } from '#test/support/random.ts';
import { readUpstreamCrds } from '#test/support/shared-folder.ts';
import { hasKubectl } from '#test/support/tools.ts';

const assetsDir = findAssets(process.env);
const upstream = readUpstreamCrds();
const canRun = assetsDir !== undefined && upstream.length > 0 && hasKubectl();
if (!canRun) console.warn('manifests are not applied: npm run envtest, and upstream CRDs beside the repository');

const parse = (text: string): readonly KubeObject[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object) => object !== null);

/** Kinds of the Prometheus operator and of cert-manager, of which nothing lies beside the repository. */
const lacking = [
  ...['ServiceMonitor', 'PodMonitor', 'PrometheusRule'].map((kind) => ({ group: 'monitoring.coreos.com', kind })),
  ...['Certificate', 'Issuer'].map((kind) => ({ group: 'cert-manager.io', kind })),
];
const openCrdOf = ({ group, kind }: (typeof lacking)[number]): KubeObject => {
  const type = { group, version: 'v1', kind, plural: `${kind.toLowerCase()}s`, namespaced: true };
  return buildOpenCrd(type as ResourceType) as unknown as KubeObject;
};

/** In full where Go keeps them, else open ones. Their labels are templates of a chart. */
const readDefinitions = (): readonly KubeObject[] => {
  const folders = findDefinitions(process.env);
  if (folders === undefined) return lacking.map(openCrdOf);
  const all = folders.flatMap((folder) =>
    readdirSync(folder)
      .filter((file) => file.endsWith('.yaml'))
      .flatMap((file) => parse(readFileSync(join(folder, file), 'utf8'))),
  );
  const wanted = lacking.map(({ group, kind }) => `${kind.toLowerCase()}s.${group}`);
  return all
    .filter(({ metadata }) => wanted.includes(metadata.name))
    .map((crd) => ({ ...crd, metadata: { name: crd.metadata.name } }));
};

const shuffled = (objects: readonly KubeObject[], seed: number): readonly KubeObject[] => {
  const random = createRandom(seed);
  return objects
    .map((object) => ({ object, at: random.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ object }) => object);
};

interface WithPods extends KubeObject {
  readonly spec?: { readonly template?: { readonly spec: { readonly containers: readonly object[] } } };
}

/** The pod that a Deployment makes, or Knative of a Service of its own: with a name and a port for its probes where none is given. */
const podsOf = ({ apiVersion, metadata: { name }, spec }: WithPods) => {
  const pod = spec?.template?.spec;
  if (pod === undefined) return [];
  const isKnative = apiVersion.startsWith('serving.knative.dev/');
  const probe = (given: { readonly httpGet?: object } | undefined) => ({
    ...given,
    httpGet: { port: 8080, ...given?.httpGet },
  });
  const ofKnative = ['containerConcurrency', 'timeoutSeconds', 'responseStartTimeoutSeconds'];
  const plain = Object.fromEntries(Object.entries(pod).filter(([field]) => !ofKnative.includes(field)));
  const containers = pod.containers.map((container) => {
    const { readinessProbe, livenessProbe } = container as Record<string, object>;
    const probes = { readinessProbe: probe(readinessProbe), livenessProbe: probe(livenessProbe) };
    return isKnative ? { name: 'user-container', ...container, ...probes } : container;
  });
  const metadata = { name, namespace: systemNamespace };
  return [{ apiVersion: 'v1', kind: 'Pod', metadata, spec: { ...plain, containers } }];
};

const idOf = ({ kind, metadata: { namespace = '', name } }: KubeObject): string => `${kind} ${namespace}/${name}`;

describe.skipIf(!canRun)('on a real API server with the kinds of all projects', { timeout: 120_000 }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'bullion-applied-'));
  const everything = overlayWith(['oidc', 'nfs-backups', 'monitoring', 'cdi', 'retry-after']);
  let server: RealApiServer;
  let kubectl: ReturnType<typeof kubectlWith>;

  const list = (items: readonly KubeObject[]) => ({ apiVersion: 'v1', kind: 'List', items });
  /** What is there afterwards, and all that was said beside it. */
  const apply = async (items: readonly KubeObject[]) => {
    const args = ['apply', '--server-side', '--force-conflicts', '--warnings-as-errors', '-o', 'json', '-f', '-'];
    const { stdout, stderr } = await kubectl(args, list(items));
    // One object is printed as itself.
    const printed = stdout === '' ? { items: [] } : (JSON.parse(stdout) as KubeObject & { items?: KubeObject[] });
    return { applied: (printed.items ?? [printed]) as readonly KubeObject[], said: stderr };
  };
  /** The API server goes on to write the status of definitions: their generation tells whether we changed them. */
  const versionOf = ({ kind, metadata }: KubeObject) =>
    kind === 'CustomResourceDefinition' ? metadata.generation : metadata.resourceVersion;
  const versionsOf = (objects: readonly KubeObject[]) =>
    objects.map((object) => `${idOf(object)} ${versionOf(object) ?? ''}`).toSorted();
  const untilServed = async (): Promise<void> => {
    const { stderr } = await kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s']);
    if (stderr !== '') throw new Error(stderr);
  };
  /** All of ours but the namespace, which goes only where something empties it. */
  const removeAll = async (objects: readonly KubeObject[]): Promise<void> => {
    const leaving = objects.filter(({ kind }) => !['Namespace', 'CustomResourceDefinition'].includes(kind));
    await kubectl(['delete', '--wait=false', '-f', '-'], list(leaving));
  };

  beforeAll(async () => {
    server = await startRealApiServer({ assetsDir: assetsDir!, dataDir, durable: false });
    kubectl = kubectlWith(server.kubeconfigPath, join(dataDir, 'cache'));
    const definitions = [...upstream, ...readDefinitions()];
    const { applied, said } = await apply(definitions);
    if (applied.length < definitions.length) throw new Error(said);
    await untilServed();
  }, 180_000);
  afterAll(async () => {
    await server?.close();
    for (const dir of [dataDir, everything]) rmSync(dir, { recursive: true, force: true });
  });

  it('has the kinds of Knative, CDI, Longhorn, snapshots, SSP and HCO before those of Bullion', async () => {
    const groups = new Set(upstream.map(({ spec }) => spec.group));
    expect([...groups]).toEqual(
      expect.arrayContaining([
        'eventing.knative.dev',
        'sources.knative.dev',
        'serving.knative.dev',
        'cdi.kubevirt.io',
        'longhorn.io',
        'snapshot.storage.k8s.io',
        'ssp.kubevirt.io',
        'hco.kubevirt.io',
      ]),
    );
  });

  it('has everything, with every component, after a second apply in any order, and the kinds of CDI unchanged', async () => {
    const objects = parse(renderText(everything));
    const before = await kubectl([
      'get',
      'crd',
      'datavolumes.cdi.kubevirt.io',
      '-o',
      'jsonpath={.metadata.generation}',
    ]);
    // The namespace last: what lives in it is refused the first time.
    const { said } = await apply(objects.toReversed());
    expect(said.replaceAll(/^.*namespaces "bullion-system" not found\n/gm, '')).toBe('');
    const { applied, said: repeatedNote } = await apply(objects.toReversed());
    expect([repeatedNote, applied.map(idOf).toSorted()]).toEqual(['', objects.map(idOf).toSorted()]);
    const after = await kubectl(['get', 'crd', 'datavolumes.cdi.kubevirt.io', '-o', 'jsonpath={.metadata.generation}']);
    expect(after).toEqual(before);
    await removeAll(objects);
  });

  it.each([
    ['infra', 1],
    ['infra/overlays/minimal', 2],
    ['infra/overlays/production', 3],
    ['infra/overlays/openshift', 4],
  ])(
    '%s is applied in one pass in any order, without a warning; a second apply changes nothing',
    async (folder, seed) => {
      const objects = parse(renderText(join(infraDir, '..', folder)));
      const first = await apply(shuffled(objects, seed));
      expect([first.said, first.applied.map(idOf).toSorted()]).toEqual(['', objects.map(idOf).toSorted()]);
      const second = await apply(objects);
      expect(second.said).toBe('');
      expect(versionsOf(second.applied)).toEqual(versionsOf(first.applied));
    },
  );

  it('also by kubectl apply -k, including the manifests that are applied on their own', async () => {
    const args = ['apply', '--warnings-as-errors', '--server-side', '--force-conflicts'];
    const base = await kubectl([...args, '-k', infraDir]);
    expect([base.stderr, base.stdout.match(/serverside-applied$/gm)?.length]).toEqual([
      '',
      parse(renderText(infraDir)).length,
    ]);
    const certificate = await kubectl([...args, '-f', join(infraDir, 'webhooks/certificate.yaml')]);
    expect(certificate).toEqual({ stderr: '', stdout: expect.stringMatching(/certificate.*admission-tls/) });
    const apis = await kubectl([...args, '-k', join(infraDir, 'apis')]);
    expect(apis).toEqual({ stderr: '', stdout: expect.stringContaining('apiservice.apiregistration.k8s.io/') });
  });

  it('every pod of Bullion is admitted to its namespace, which enforces the restricted policy', async () => {
    const pods = parse(renderText(infraDir)).flatMap(podsOf);
    expect(pods.length).toBeGreaterThan(6);
    const { stdout, stderr } = await kubectl(['create', '--dry-run=server', '-f', '-'], list(pods));
    expect([stderr, stdout.match(/created \(server dry run\)$/gm)?.length]).toEqual(['', pods.length]);
    const [open = {}] = pods.map(({ spec, ...pod }) => ({
      ...pod,
      spec: { ...spec, containers: [{ name: 'open', image: 'busybox' }] },
    }));
    const refused = await kubectl(['create', '--dry-run=server', '-f', '-'], open);
    expect(refused.stderr).toContain('violates PodSecurity "restricted');
  });
});
