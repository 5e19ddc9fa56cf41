// Conformance scenarios of CDI that are tables: 15 (sizes), 19 (rights to a volume elsewhere), 20 (one writer); and snapshot classes (14).
import { beforeEach, describe, expect, it } from 'vitest';
import { grantFor, serviceAccountRequester } from '#shared/access/permissions.ts';
import { type DataImportCron, type DataImportCronSpec, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { type StorageProfile, storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { volumeSnapshotClasses, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import { refOf } from '#shared/api/object.ts';
import { createObserver } from '#shared/golden/poll/observe.ts';
import { recordObservation } from '#shared/resources/data-import-cron/poll.ts';
import { advisedRestoreSize } from '#shared/resources/data-import-cron/snapshot.ts';
import { readCron } from '#shared/resources/data-import-cron/cron.ts';
import { buildImport } from '#shared/resources/data-import-cron/template.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { tick } from '#shared/resources/sweep.ts';
import { rightOf, withAccess } from '#test/support/admission.ts';
import { aSnapshotClass } from '#test/support/builders.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

const namespace = 'golden-images';
const digest = `sha256:${'a'.repeat(64)}`;
const version = `fedora-${'a'.repeat(12)}`;

const aCron = (spec: Partial<DataImportCronSpec> = {}, found: Record<string, string> = {}): DataImportCron => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataImportCron',
  metadata: { namespace, name: 'cron', annotations: found },
  spec: {
    schedule: '0 */12 * * *',
    managedDataSource: 'fedora',
    template: {
      spec: {
        source: { registry: { url: 'docker://quay.io/containerdisks/fedora:latest' } },
        storage: { resources: { requests: { storage: '1Gi' } } },
      },
    },
    ...spec,
  },
});

describe('15: the advised size of volumes restored from a version', () => {
  it.each([
    [{ asked: '1Gi' }, '1Gi'],
    [{ asked: '2Gi', restore: '1Gi' }, '2Gi'],
    [{ asked: '1Gi', restore: '2Gi' }, '2Gi'],
    [{ volume: '500Mi' }, '500Mi'],
    [{ asked: '1Gi', volume: '500Mi' }, '1Gi'],
  ])('of %j is %s', (sizes, advised) => {
    expect(advisedRestoreSize(sizes)).toBe(advised);
  });
});

describe('20: the access mode ReadWriteOnce of the profile', () => {
  const profile: StorageProfile = {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'StorageProfile',
    metadata: { name: 'local', annotations: { [cdiAnnotations.singleWriter]: 'true' } },
    spec: {},
  };
  const modesOf = (storage: object, observed: StorageProfile | undefined) => {
    const source = { registry: { url: 'docker://quay.io/x' } };
    const cron = readCron(
      aCron({ template: { spec: { source, storage } } }, { [cdiAnnotations.desiredDigest]: digest }),
    );
    return buildImport(cron, version, { profile: observed, right: { is: 'not needed' } }).spec.storage?.['accessModes'];
  };
  it.each([
    ['is used', {}, profile, ['ReadWriteOnce']],
    ['is used for an empty list', { accessModes: [] }, profile, ['ReadWriteOnce']],
    ['is not used when the template sets modes', { accessModes: ['ReadWriteMany'] }, profile, ['ReadWriteMany']],
    ['is not used when the profile does not set it', {}, undefined, undefined],
  ])('%s', (_what, storage, observed, modes) => {
    expect(modesOf(storage, observed)).toEqual(modes);
  });
});

let deps: ReconcileDeps & { readonly kube: MemoryKube };
let kube: MemoryKube;
beforeEach(() => {
  deps = createTestReconciler();
  kube = deps.kube;
  kube.edit(storageClasses, { name: 'local' }, ({ metadata }) => {
    metadata.annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  });
});
const cronNow = () => kube.all(dataImportCronKind.type)[0]!;
const conditionsOf = () =>
  Object.fromEntries(
    (cronNow().status?.conditions ?? []).map(({ type, status, reason }) => [type, `${status}/${reason}`]),
  );
const reconcileCron = (with_: ReconcileDeps = deps) => reconcile(with_, refOf(cronNow()), { which: 'all' });

describe('19: a volume that a cron follows', () => {
  const right = 'create datavolumes/source other/*';
  const account = 'system:serviceaccount:golden-images:importer';
  const acting = (mayDo: (user: string, right: string) => boolean): ReconcileDeps => {
    const asked = withAccess(kube, (question) => mayDo(question.user ?? '', rightOf(question)));
    return {
      ...deps,
      kube: asked,
      observe: createObserver({
        kube: asked,
        allowedAddresses: [],
        registries: () => Promise.resolve({ plainRegistries: [] }),
        architecture: 'amd64',
        now: deps.now,
      }),
    };
  };
  const volumeIn = (place: string) =>
    kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace: place, name: 'source', uid: '12345678-9abc-def0-1234-56789abcdef0' },
      spec: { storageClassName: 'local', resources: { requests: { storage: '1Gi' } } },
      status: { phase: 'Bound' },
    });
  const following = (place: string | undefined, serviceAccountName?: string) =>
    kube.seed(
      dataImportCronKind.type,
      aCron({
        template: { spec: { source: { pvc: { name: 'source', ...(place && { namespace: place }) } }, storage: {} } },
        ...(serviceAccountName && { serviceAccountName }),
      }),
    );

  it('may be any volume of its own namespace', async () => {
    volumeIn(namespace);
    following(undefined);
    await tick(acting(() => false));
    expect(kube.all(dataVolumes)[0]).toMatchObject({
      metadata: { name: 'fedora-12345678-9ab' },
      spec: { source: { pvc: { namespace, name: 'source' } } },
    });
  });

  it('may be in another namespace when its service account may clone it, which the import records', async () => {
    volumeIn('other');
    following('other', 'importer');
    await tick(acting((user, asked) => user === account && asked === right));
    const [imported] = kube.all(dataVolumes);
    expect(imported?.spec.source).toEqual({ pvc: { namespace: 'other', name: 'source' } });
    expect(imported?.metadata.annotations?.[annotations.granted]).toBe(
      '[{"use":"clone-claim","namespace":"other","name":"*"}]',
    );
  });

  it.each([
    ['only another account has the permission', (user: string) => user === `${account}-2`],
    ['no account has the permission', () => false],
  ])('is not imported when %s, and the cron reports it and what to do', async (_what, mayDo) => {
    volumeIn('other');
    following('other', 'importer');
    await tick(acting(mayDo));
    expect(kube.all(dataVolumes)).toEqual([]);
    expect(conditionsOf()).toMatchObject({
      Progressing: 'False/NotAuthorized',
      UpToDate: 'False/NoDigest',
      Degraded: 'True/NotAuthorized',
    });
    const degraded = cronNow().status?.conditions?.find(({ type }) => type === 'Degraded');
    expect(degraded?.message).toContain('golden-images/importer may not clone from namespace other: give it the right');
    // Without the permission to clone, the message does not reveal what exists.
    expect(JSON.stringify(cronNow())).not.toContain('12345678-9abc');
  });

  it('is not imported either for a digest that a user wrote', async () => {
    following('other');
    const refused = acting(() => false);
    await recordObservation(refused, refOf(cronNow()), {
      is: 'found',
      digest: 'uid:12345678-9abc',
      message: '',
      memory: {},
    });
    expect(kube.all(dataVolumes)).toEqual([]);
    expect(conditionsOf()).toMatchObject({ Progressing: 'False/NotAuthorized' });
  });

  it('is checked for the default account when none is named', async () => {
    const asked = withAccess(kube, () => true);
    await grantFor(asked, serviceAccountRequester(namespace, 'default'), {
      use: 'clone-claim',
      namespace: 'other',
      name: 'source',
    });
    expect(asked.questions[0]).toMatchObject({
      user: 'system:serviceaccount:golden-images:default',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:golden-images', 'system:authenticated'],
    });
  });
});

describe('11: versions from before there were labels', () => {
  it('are removed with a volume that has no label', async () => {
    const old = (name: string, isLabelled: boolean) => {
      const { metadata } = kube.seed(dataVolumes, {
        apiVersion: 'cdi.kubevirt.io/v1beta1',
        kind: 'DataVolume',
        metadata: { namespace, name, labels: { [cdiLabels.cron]: 'cron' } },
        spec: {},
        status: { phase: 'Succeeded' },
      });
      kube.seed(persistentVolumeClaims, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: {
          namespace,
          name,
          ...(isLabelled ? { labels: { [cdiLabels.cron]: 'cron' } } : {}),
          ownerReferences: [
            { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', name, uid: metadata.uid ?? '' },
          ],
        },
        spec: { storageClassName: 'local', resources: { requests: { storage: '1Gi' } } },
        status: { phase: 'Bound' },
      });
    };
    old('fedora-of-old', false);
    old(version, true);
    kube.seed(dataImportCronKind.type, aCron({ importsToKeep: 1 }, { [cdiAnnotations.desiredDigest]: digest }));
    await reconcileCron();
    await reconcileCron();
    kube.collectGarbage();
    expect(kube.all(persistentVolumeClaims).map(({ metadata }) => metadata.name)).toEqual([version]);
  });
});

describe('14: versions that are snapshots', () => {
  const wantClass = (name: string) => {
    kube.edit(storageProfiles, { name: 'local' }, ({ metadata }) => {
      metadata.annotations = { [cdiAnnotations.snapshotClass]: name };
    });
  };
  const arrive = async (name: string) => {
    kube.edit(dataVolumes, { namespace, name }, (object) => {
      object.status = { phase: 'Succeeded', detail: {} };
    });
    kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        namespace,
        name,
        labels: { [cdiLabels.cron]: 'cron' },
        ownerReferences: [
          {
            apiVersion: 'cdi.kubevirt.io/v1beta1',
            kind: 'DataVolume',
            name,
            uid: kube.all(dataVolumes).find(({ metadata }) => metadata.name === name)?.metadata.uid ?? '',
          },
        ],
      },
      spec: { storageClassName: 'local', resources: { requests: { storage: '1Gi' } } },
      status: { phase: 'Bound' },
    });
    await reconcileCron();
  };
  const makeReady = async (name: string, restoreSize = '1Gi') => {
    kube.edit(volumeSnapshots, { namespace, name }, (snapshot) => {
      snapshot.status = { readyToUse: true, restoreSize };
    });
    await reconcileCron();
    kube.collectGarbage();
    await reconcileCron();
  };
  const offered = () => kube.all(dataSourceKind.type)[0]?.spec.source.snapshot?.name;
  const snapshots = () =>
    kube.all(volumeSnapshots).map(({ metadata, spec }) => [metadata.name, spec.volumeSnapshotClassName]);

  beforeEach(async () => {
    kube.seed(volumeSnapshotClasses, { ...aSnapshotClass(), metadata: { name: 'other' } });
    kube.seed(storageProfiles, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'StorageProfile',
      metadata: { name: 'local' },
      spec: { dataImportCronSourceFormat: 'snapshot', snapshotClass: 'other' },
      status: { dataImportCronSourceFormat: 'snapshot', snapshotClass: 'other' },
    } as StorageProfile);
    kube.seed(dataImportCronKind.type, aCron({ importsToKeep: 1 }, { [cdiAnnotations.desiredDigest]: digest }));
    await reconcileCron();
    await arrive(version);
  });

  it('use the class in the status of the profile, unless its annotation names one', () => {
    expect(snapshots()).toEqual([[version, 'other']]);
  });

  it('report what the driver needs, once that is known', async () => {
    await makeReady(version, '3Gi');
    const [snapshot] = kube.all(volumeSnapshots);
    expect(snapshot?.metadata.annotations?.[cdiAnnotations.advisedRestoreSize]).toBe('3Gi');
  });

  it('come into use although the driver needs more space than was requested, and time passes', async () => {
    let time = deps.now();
    deps = { ...deps, now: () => (time += 7) };
    await makeReady(version, '3Gi');
    expect(offered()).toBe(version);
    expect(kube.all(dataImportCronKind.type)[0]?.status?.lastImportedPVC?.name).toBe(version);
  });

  it('stay in use while another one of a different class is created', async () => {
    await makeReady(version);
    expect(offered()).toBe(version);
    wantClass(aSnapshotClass().metadata.name);
    await tick(deps);
    const next = kube.all(dataVolumes).at(-1)?.metadata.name ?? '';
    expect(next).toMatch(new RegExp(`^${version}-[0-9a-f]{8}$`));
    await arrive(next);
    expect(offered()).toBe(version);
    await makeReady(next);
    expect(offered()).toBe(next);
    expect(snapshots()).toEqual([[next, aSnapshotClass().metadata.name]]);
    // And it stays so: a minute costs no write.
    await tick(deps);
    const before = kube.calls.length;
    await tick(deps);
    expect(kube.all(dataVolumes)).toEqual([]);
    expect(kube.calls.slice(before).filter(({ verb }) => !['get', 'list'].includes(verb))).toEqual([]);
  });

  it('become volumes again within a minute of a change of the profile, and volumes become snapshots', async () => {
    await makeReady(version);
    const ask = (format: string) =>
      kube.edit(storageProfiles, { name: 'local' }, (profile) => {
        Object.assign(profile, { spec: { ...profile.spec, dataImportCronSourceFormat: format } });
      });
    ask('pvc');
    await tick(deps);
    await tick(deps);
    expect(offered()).toBe(version);
    await arrive(version);
    expect(kube.all(dataSourceKind.type)[0]?.spec.source).toEqual({ pvc: { namespace, name: version } });
    ask('snapshot');
    await tick(deps);
    await tick(deps);
    await makeReady(version);
    expect(offered()).toBe(version);
  });

  it('of a class that is no longer configured are deleted before the new ones are ready', async () => {
    wantClass(aSnapshotClass().metadata.name);
    await reconcileCron();
    await reconcileCron();
    expect(snapshots()).toEqual([[version, aSnapshotClass().metadata.name]]);
  });
});
