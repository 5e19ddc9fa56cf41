// Golden images that are offered to namespaces: who sees them, who may clone them, and what a withdrawn offer leaves.
import { beforeEach, describe, expect, it } from 'vitest';
import { createApp as createInitialize } from '#functions/initialize/app.ts';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp } from '#functions/validate/app.ts';
import { isOffered, parseOffer, reaches } from '#shared/access/offers.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { type PersistentVolumeClaim, namespaces, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { labelsOfNamespace, matchesLabels } from '#shared/api/label-selector.ts';
import { annotations, unguardedNamespaces } from '#shared/api/names.ts';
import { apiVersionOf, refOf } from '#shared/api/object.ts';
import { createOffers } from '#shared/resources/data-source/offers.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type Draft, ask, patched, rightOf, withAccess } from '#test/support/admission.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import { sendChange } from '#test/support/send-event.ts';

const golden = 'golden-images';
const tenant = 'team-a';
const type = dataSourceKind.type;

describe('namespaces that something is offered to', () => {
  const labels = { team: 'blue', env: 'dev', 'example.com/tier': '1' };
  it.each<[text: string, isIn: boolean | undefined]>([
    ['*', true],
    ['team=blue', true],
    ['team==blue, env in (dev, test)', true],
    ['team=red', false],
    ['team!=red,!old', true],
    ['team,env notin (dev)', false],
    ['example.com/tier', true],
    ['other=', false],
    ['', undefined],
    ['team blue', undefined],
    ['team in dev', undefined],
    ['**', undefined],
    ['team=blue,', undefined],
  ])('are selected by "%s": %s', (text, isIn) => {
    const selector = parseOffer(text);
    expect(selector && matchesLabels(selector, labels)).toBe(isIn);
  });
});

describe('a namespace of a system', () => {
  it.each<[name: string, text: string, isReached: boolean]>([
    ['team-a', '*', true],
    ['team-a', 'env!=test', true],
    ['longhorn-system', '*', false],
    ['longhorn-system', 'env!=test,kubernetes.io/metadata.name', false],
    ['longhorn-system', 'kubernetes.io/metadata.name=longhorn-system', true],
    ['longhorn-system', 'team in (storage)', true],
    ['kube-flannel', '*', false],
    ['kube-flannel', 'team=storage', true],
    ['kube-system', 'team=storage', false],
    ['bullion-system', 'team=storage', false],
  ])('is reached only if it is meant: %s by "%s"', (name, text, isReached) => {
    const labels = labelsOfNamespace({ name, labels: { team: 'storage' } });
    expect(reaches(parseOffer(text) ?? {}, name, labels)).toBe(isReached);
  });
});

let deps: ReconcileDeps & { readonly kube: MemoryKube };
let kube: MemoryKube;
beforeEach(() => {
  deps = createTestReconciler();
  kube = deps.kube;
  for (const [name, team] of [
    [golden, 'platform'],
    [tenant, 'a'],
    ['team-b', 'b'],
    ['kube-system', 'cluster'],
  ] as const)
    kube.seed(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { team } } });
});

const claimIn = (namespace: string, name: string): PersistentVolumeClaim =>
  kube.seed(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace, name },
    spec: { storageClassName: 'local', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Bound', capacity: { storage: '1Gi' } },
  } as PersistentVolumeClaim);
const sourceIn = (namespace: string, claim: string, offered?: string, of = namespace): DataSource => {
  const pvc = { namespace: of, name: claim };
  return kube.seed(type, {
    apiVersion: apiVersionOf(type),
    kind: 'DataSource',
    metadata: {
      namespace,
      name: 'fedora',
      ...(offered === undefined ? {} : { annotations: { [annotations.offeredTo]: offered } }),
    },
    spec: { source: { pvc } },
    status: { source: { pvc }, conditions: [{ type: 'Ready', status: 'True' }] },
  } as DataSource);
};
const tick = async () => {
  const offers = createOffers();
  for (const source of kube.all(type)) offers.visit(source);
  await offers.carryOut(deps);
};
const seen = () =>
  kube
    .all(type)
    .map(({ metadata, spec }) => `${metadata.namespace}: ${spec.source.pvc?.namespace}/${spec.source.pvc?.name}`);
const offerTo = (offered: string | null) =>
  kube.mergePatch(
    type,
    { namespace: golden, name: 'fedora' },
    { metadata: { annotations: { [annotations.offeredTo]: offered } } },
  );

/** As jane, who has these rights. */
const offerAs = async (rights: readonly string[], object: DataSource, oldObject?: DataSource) => {
  const draft = object as unknown as Draft;
  const around = { kube: withAccess(kube, (question) => rights.includes(rightOf(question))), log: silentLogger };
  const { allowed, status } = await ask(createApp(around), '/validate', {
    object: draft,
    ...(oldObject === undefined ? {} : { oldObject: oldObject as unknown as Draft }),
  });
  return allowed ? 'allowed' : (status?.message ?? '');
};

const use = (name: string, namespace = golden) => ({ use: 'clone-claim', namespace, name }) as const;

describe('an offer', () => {
  const clone = `create datavolumes/source ${golden}/*`;
  const make = 'create datasources /*';
  it.each<[rights: readonly string[], says: RegExp]>([
    [[clone, make], /^allowed$/],
    [[make], /not allowed to offer what is in namespace golden-images: .*datavolumes\/source/],
    // Users of other namespaces would take what a tenant names like a well-known image.
    [[clone], /not allowed to offer .* to other namespaces: .*create datasources .* in all namespaces/],
  ])('is made by who may %j: %s', async (rights, says) => {
    expect(await offerAs(rights, sourceIn(golden, 'v1', '*'))).toMatch(says);
  });

  it('is not given to something else by who may not make it', async () => {
    const offered = sourceIn(golden, 'v1', '*');
    const labelled = { ...offered, metadata: { ...offered.metadata, labels: { a: 'b' } } };
    expect(await offerAs([], labelled, offered)).toBe('allowed');
    const moved = { ...offered, spec: { source: { pvc: { namespace: golden, name: 'secret' } } } };
    expect(await offerAs([make], moved, offered)).toMatch(/not allowed to offer/);
  });

  it('is seen as soon as the event of its DataSource arrives', async () => {
    claimIn(golden, 'v1');
    const offered = sourceIn(golden, 'v1', 'team=a');
    expect((await sendChange(createInitialize(deps), 'update', offered)).status).toBe(204);
    expect(seen()).toHaveLength(2);
  });

  it('is a DataSource in each namespace that it selects, and goes with it', async () => {
    sourceIn(golden, 'v1', 'team in (a,c)');
    await tick();
    expect(seen()).toEqual([`${golden}: ${golden}/v1`, `${tenant}: ${golden}/v1`]);
    await offerTo('*');
    await tick();
    expect(seen().map((text) => text.split(':')[0])).toEqual([golden, tenant, 'team-b']);
    await offerTo(null);
    await tick();
    expect(seen()).toEqual([`${golden}: ${golden}/v1`]);
  });

  it('leaves a DataSource of somebody else alone', async () => {
    sourceIn(tenant, 'own');
    sourceIn(golden, 'v1', '*');
    await tick();
    expect(seen()).toContain(`${tenant}: ${tenant}/own`);
  });

  it('is of what it stands for, to whom it says, and only from its own namespace', async () => {
    sourceIn(golden, 'v1', 'team=a');
    const asked = (to: string, name: string) => isOffered(kube, to, use(name));
    expect(await Promise.all([asked(tenant, 'v1'), asked(tenant, 'v2'), asked('team-b', 'v1')])).toEqual([
      true,
      false,
      false,
    ]);
    // A tenant who offers a claim of others.
    sourceIn('team-b', 'secret', '*', golden);
    expect(await asked('team-b', 'secret')).toBe(false);
    expect(await isOffered(kube, tenant, { use: 'read-secret', namespace: golden, name: 'v1' })).toBe(false);
  });

  it.each(unguardedNamespaces)('counts for nothing in %s, where nobody checks who makes it', async (namespace) => {
    sourceIn(namespace, 'v1', '*');
    expect(await isOffered(kube, tenant, use('v1', namespace))).toBe(false);
  });
});

const disk = (spec: object): DataVolume => ({
  apiVersion: apiVersionOf(dataVolumes),
  kind: 'DataVolume',
  metadata: { name: 'root', namespace: tenant, uid: 'uid-1' },
  spec: { storage: { storageClassName: 'local' }, ...spec } as DataVolume['spec'],
});
const fromSource = disk({ sourceRef: { kind: 'DataSource', name: 'fedora' } });
/** As jane, who has no rights anywhere but in her namespace. */
const admit = async (object: DataVolume) => {
  const around = { kube: withAccess(kube, () => false), log: silentLogger };
  const draft = object as unknown as Draft;
  const filled = patched(draft, await ask(createMutate(around), '/mutate', { object: draft }));
  const { allowed, status } = await ask(createApp(around), '/validate', { object: filled });
  return allowed ? 'allowed' : (status?.message ?? '');
};
const pass = async (object: DataVolume) => {
  await reconcile(deps, refOf(object), { which: 'all' });
  return JSON.stringify((await kube.get(dataVolumes, refOf(object)))?.status ?? {});
};

describe('a disk of what is offered', () => {
  beforeEach(async () => {
    claimIn(golden, 'v1');
    claimIn(golden, 'v2');
    sourceIn(golden, 'v1', 'team=a');
    await tick();
  });

  it.each([
    ['its DataSource', { sourceRef: { kind: 'DataSource', name: 'fedora' } }],
    ['the DataSource that is offered', { sourceRef: { kind: 'DataSource', namespace: golden, name: 'fedora' } }],
    ['the claim', { source: { pvc: { namespace: golden, name: 'v1' } } }],
  ])('is admitted by %s, and no longer once the offer is withdrawn', async (_what, spec) => {
    expect(await admit(disk(spec))).toBe('allowed');
    await offerTo(null);
    expect(await admit(disk(spec))).toMatch(/user jane is not allowed to clone from/);
  });

  it('is not a disk of something else', async () => {
    expect(await admit(disk({ source: { pvc: { namespace: golden, name: 'v2' } } }))).toMatch(/not allowed to clone/);
    // A DataSource that says it stands for another one.
    claimIn('team-b', 'secret');
    kube.seed(type, {
      apiVersion: apiVersionOf(type),
      kind: 'DataSource',
      metadata: { namespace: 'team-b', name: 'secret' },
      spec: { source: { pvc: { name: 'secret' } } },
    } as DataSource);
    await kube.mergePatch(
      type,
      { namespace: tenant, name: 'fedora' },
      { metadata: { annotations: { [annotations.offeredBy]: 'team-b/secret' } } },
    );
    expect(await admit(fromSource)).toMatch(/not allowed to clone from the volume behind DataSource/);
  });

  it('is made, of the newest version at that time, and waits once the offer is withdrawn', async () => {
    const made = kube.seed(dataVolumes, fromSource);
    // The copy is a minute late.
    await kube.mergePatch(
      type,
      { namespace: golden, name: 'fedora' },
      { spec: { source: { pvc: { namespace: golden, name: 'v2' } } } },
    );
    kube.edit(type, { namespace: golden, name: 'fedora' }, (one) => {
      one.status = { source: { pvc: { namespace: golden, name: 'v2' } } };
    });
    expect(await pass(made)).not.toMatch(/NotAuthorized/);
    expect(
      JSON.stringify([kube.all(persistentVolumeClaims), (await kube.get(dataVolumes, refOf(made)))?.status]),
    ).toMatch(/v2/);
    await offerTo(null);
    const late = kube.seed(dataVolumes, {
      ...fromSource,
      metadata: { ...fromSource.metadata, name: 'late', uid: 'uid-2' },
    });
    expect(await pass(late)).toMatch(/NotAuthorized/);
    expect(await kube.get(dataVolumes, refOf(made))).toBeDefined();
  });
});
