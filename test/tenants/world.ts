// A cluster with a victim and a tenant, and all functions of Bullion: a request is accepted by admission or not, and then every function reconciles all objects.
import { createApp as createInitialize } from '#functions/initialize/app.ts';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp as createSidecarSync } from '#functions/sidecar-sync/app.ts';
import { createApp as createValidate } from '#functions/validate/app.ts';
import { objects } from '#infra/generate/declared.ts';
import { scopeOf } from '#infra/generate/webhook-scopes.ts';
import { admissionFunctions } from '#infra/generate/wiring.ts';
import type { AdmissionResponse } from '#shared/api/admission.ts';
import { leases } from '#shared/api/foreign/kubernetes.ts';
import {
  configMaps,
  jobs,
  kubeEvents,
  namespaces,
  persistentVolumeClaims,
  secrets,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { type KubeObject, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import { createObserver } from '#shared/golden/poll/observe.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { tick } from '#shared/resources/sweep.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type AccessQuestion, type Draft, ask, patched, withAccess } from '#test/support/admission.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import { sendChange } from '#test/support/send-event.ts';
import { type ObjectRow, loot, secretWord, tenant, victim } from '#test/tenants/row.ts';

const types = [
  ...servedKinds.map(({ type }) => type),
  ...([
    persistentVolumeClaims,
    jobs,
    leases,
    secrets,
    configMaps,
    volumeSnapshots,
    virtualMachines,
  ] as readonly unknown[]),
  ...([storageClasses, namespaces] as readonly unknown[]),
] as readonly ResourceType[];

export const typeOf = ({ apiVersion, kind }: Pick<KubeObject, 'apiVersion' | 'kind'>): ResourceType => {
  const type = types.find((one) => one.kind === kind && apiVersionOf(one) === apiVersion);
  if (type === undefined) throw new Error(`${apiVersion} ${kind} is not known`);
  return type;
};

const words = {
  labels: { 'instancetype.kubevirt.io/default-preference': secretWord },
  annotations: { of: secretWord },
};
const ofImage = {
  labels: {
    ...words.labels,
    'bullion.dev/owner-uid': 'uid-loot',
    'bullion.dev/owner-kind': 'VirtualMachineImage.harvesterhci.io',
    'bullion.dev/role': 'volume',
  },
  annotations: {
    'bullion.dev/owner-name': loot,
    'bullion.dev/owner-namespace': victim,
    'bullion.dev/populated': '{}',
    'harvesterhci.io/goldenImage': 'true',
  },
};

const imageStatus = {
  phase: 'Imported',
  storageClassName: 'local',
  children: { volume: loot, snapshot: loot },
  conditions: [
    {
      type: 'Ready',
      status: 'True',
      reason: 'Imported',
      message: secretWord,
      lastTransitionTime: '2026-01-01T00:00:00Z',
    },
  ],
};
const source = { blank: {} };
const storage = { resources: { requests: { storage: '1Gi' } } };

/** Every object that a name could refer to. */
const theirs: readonly (Draft & Record<string, unknown>)[] = [
  { apiVersion: 'v1', kind: 'Secret', metadata: words, data: { accessKeyId: btoa(secretWord) } },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: words, data: { 'ca.pem': secretWord } } as never,
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: ofImage,
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'local', volumeName: 'pv-loot', ...storage },
    status: { phase: 'Bound', capacity: { storage: '1Gi' } },
  },
  {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: ofImage,
    spec: { source: { persistentVolumeClaimName: loot } },
    status: { readyToUse: true, restoreSize: '1Gi' },
  },
  {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataSource',
    metadata: words,
    spec: { source: { pvc: { namespace: victim, name: loot } } },
  },
  {
    apiVersion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImage',
    metadata: { uid: 'uid-loot', ...words, finalizers: ['bullion.dev/image'] },
    spec: {
      backend: 'csi',
      displayName: secretWord,
      sourceType: 'download',
      url: 'https://images.example/a',
      retry: 0,
    },
    status: imageStatus,
  },
  {
    apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
    kind: 'VirtualMachineImage',
    metadata: { uid: 'uid-cloud', ...words, finalizers: ['bullion.dev/image'] },
    spec: { source: { http: 'https://images.example/a' }, storageClassName: 'local' },
    status: { state: 'Available', phase: 'Available', children: { volume: loot }, volumeSize: 1 },
  },
  {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { name: 'volume', uid: 'uid-volume', ...words },
    spec: { source, storage },
    status: { phase: 'Succeeded', claimName: loot },
  },
];

const theirClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'lh-victim', ...ofImage },
  provisioner: 'driver.longhorn.io',
};

export interface World {
  readonly kube: MemoryKube;
  readonly deps: ReconcileDeps;
}

/** The author, and the pods they run. */
const tenants = ['jane', `system:serviceaccount:${tenant}:default`];

/** Nobody has a permission in the victim's namespace. `rights` of the tenant alone: `verb resource[/subresource]`. */
export const createWorld = (rights: readonly string[] = []): World => {
  const { kube, ...rest } = createTestReconciler();
  const mayDo = ({ user, resourceAttributes: { verb, resource, subresource, namespace } }: AccessQuestion): boolean =>
    namespace === tenant ||
    (tenants.includes(user) &&
      rights.includes(`${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`));
  kube.seed(storageClasses, theirClass as never);
  for (const object of theirs) {
    const metadata = { name: loot, namespace: victim, ...object.metadata };
    kube.seed(typeOf(object), { ...object, metadata } as never);
  }
  const asked = withAccess(kube, mayDo);
  const look = createObserver({
    kube: asked,
    allowedAddresses: [],
    registries: async () => ({ plainRegistries: [] }),
    architecture: 'amd64',
    now: rest.now,
  });
  const digest = `sha256:${'a'.repeat(64)}`;
  const observe: ReconcileDeps['observe'] = async (request) =>
    request.source.type === 'pvc' ? look(request) : { is: 'found', digest, message: 'found', memory: {} };
  return { kube, deps: { ...rest, kube: asked, observe } };
};

/** What the API server does with it. */
export const submit = async (
  { deps }: World,
  { object, before: oldObject, by: username = 'jane' }: Pick<ObjectRow, 'object' | 'before' | 'by'>,
): Promise<{ readonly answer: AdmissionResponse; readonly object: Draft }> => {
  const tools = { kube: deps.kube, log: silentLogger };
  const asked = { object, username, ...(oldObject === undefined ? {} : { oldObject }) };
  const filled = patched(object, await ask(createMutate(tools), '/mutate', asked));
  return { object: filled, answer: await ask(createValidate(tools), '/validate', { ...asked, object: filled }) };
};

/** Whether any webhook of that function selects such a kind at all. */
export const isScoped = (name: 'validate' | 'mutate', { apiVersion, kind }: Draft): boolean =>
  admissionFunctions
    .filter((fn) => fn.name === name)
    .some((fn) =>
      fn.webhooks.some((webhook) =>
        scopeOf(fn, webhook, objects).types.some((type) => {
          const one = type as ResourceType;
          return one.kind === kind && apiVersionOf(one) === apiVersion;
        }),
      ),
    );

const changes = ['add', 'update', 'delete'] as const;

/** Every function processes the object and all objects of the victim, in every possible way, and a tick passes. */
export const drive = async ({ kube, deps }: World, object?: KubeObject): Promise<void> => {
  const [initialize, sidecarSync] = [createInitialize(deps), createSidecarSync(deps)];
  const tell = async (one: KubeObject): Promise<void> => {
    const now = (await kube.get(typeOf(one), one.metadata)) ?? one;
    for (const change of changes) {
      if (change !== 'delete') await sendChange(initialize, change, now);
      await sendChange(sidecarSync, change, now);
    }
  };
  const known = types.flatMap((type) => kube.all(type)).filter(({ metadata }) => metadata.namespace === victim);
  for (let round = 0; round < 3; round += 1) {
    for (const one of [...known, ...(object === undefined ? [] : [object])]) await tell(one);
    await tick(deps);
  }
};

/** Without what differs between runs: versions, and random keys. */
export const bare = ({ metadata, ...rest }: KubeObject): unknown => {
  const { resourceVersion: _v, uid: _u, managedFields: _m, ...kept } = metadata as object as Record<string, unknown>;
  const { 'bullion.dev/report-key': _k, ...annotations } = metadata.annotations ?? {};
  const { data, ...others } = rest as { readonly data?: Readonly<Record<string, string>> };
  const { 'report-key': _p, ...files } = data ?? {};
  const text = JSON.stringify({ ...others, metadata: { ...kept, annotations }, files });
  return JSON.parse(text.replaceAll(/(-[0-9a-f]{12})-[0-9a-f]{8}"/g, '$1"'));
};

/** Everything of the victim's, in a form that can be compared. */
export const theirsIn = ({ kube }: World): readonly unknown[] =>
  kube
    .all()
    .filter(({ metadata }) => metadata.namespace === victim || metadata.name === theirClass.metadata.name)
    .map(bare);

/** The victim's data in what others see or got: the secret word anywhere, or references in created objects. */
export const lootIn = ({ kube }: World, own: KubeObject): readonly string[] => {
  const isOwn = ({ kind, metadata }: KubeObject): boolean => kind === own.kind && metadata.name === own.metadata.name;
  const seen = kube
    .all()
    .filter(({ metadata }) => metadata.namespace !== victim && metadata.name !== theirClass.metadata.name);
  const made = seen.filter((one) => !isOwn(one) && one.kind !== kubeEvents.kind);
  return [
    ...seen.filter((one) => JSON.stringify(one).includes(secretWord)),
    ...made.filter((one) => /victim|"bullion\.dev\/(populated|granted)"/.test(JSON.stringify(one))),
  ].map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
};
