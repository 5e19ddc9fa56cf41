// Versions of files whose digest is unknown before they are fetched: named by it afterwards.
import { beforeEach, describe, expect, it } from 'vitest';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { kubeEvents, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import { refOf } from '#shared/api/object.ts';
import { validatorDigest } from '#shared/golden/version.ts';
import { populatedPatch } from '#shared/populate/population.ts';
import { recordObservation } from '#shared/resources/data-import-cron/poll.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

const namespace = 'golden-images';
const url = 'https://images.example/noble.img';
const validatorOf = (tag: string): string => validatorDigest([url, 'etag', tag]);
const provisional = (tag: string): string => `noble-${validatorOf(tag).slice(10, 22)}`;
const named = (char: string): string => `noble-${char.repeat(12)}`;

let deps: ReconcileDeps & { readonly kube: MemoryKube };
let kube: MemoryKube;
let time: number;

beforeEach(() => {
  time = Date.parse('2026-03-01T00:00:00Z');
  deps = { ...createTestReconciler(), now: () => time };
  kube = deps.kube;
  kube.seed(dataImportCronKind.type, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataImportCron',
    metadata: { namespace, name: 'noble' },
    spec: {
      schedule: '0 3 * * *',
      managedDataSource: 'noble',
      importsToKeep: 2,
      template: {
        spec: {
          source: { http: { url } },
          storage: { storageClassName: 'local', resources: { requests: { storage: '1Gi' } } },
        },
      },
    },
  });
});

const cronNow = (): DataImportCron => kube.all(dataImportCronKind.type)[0]!;
const reconcileCron = () => reconcile(deps, refOf(cronNow()), { which: 'all' });
const poll = async (tag: string) => {
  time += 120_000;
  const memory = { etag: tag };
  await recordObservation(deps, refOf(cronNow()), {
    is: 'found',
    digest: validatorOf(tag),
    message: `ETag ${tag}`,
    memory,
  });
};
const names = () =>
  kube
    .all(dataVolumes)
    .map(({ metadata }) => metadata.name)
    .sort();
const offered = () => kube.all(dataSourceKind.type)[0]?.spec.source.pvc?.name;
const importOf = (name: string): DataVolume => kube.all(dataVolumes).find(({ metadata }) => metadata.name === name)!;

/** As the driver of data volumes does it: its volume, filled with bytes of this digest. */
const finish = async (name: string, sha256: string | undefined) => {
  const { metadata } = importOf(name);
  const digests = sha256 === undefined ? {} : { sha256 };
  const mark = populatedPatch({ inspection: { format: 'raw', compression: 'none' }, digests }, {});
  kube.seed(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      namespace,
      name,
      labels: { ...metadata.labels },
      annotations: (mark as { metadata: { annotations: Record<string, string> } }).metadata.annotations,
      ownerReferences: [{ apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', name, uid: metadata.uid! }],
    },
    spec: { storageClassName: 'local', resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Bound' },
  });
  kube.edit(dataVolumes, { namespace, name }, (object) => {
    object.status = { phase: 'Succeeded', detail: {} };
  });
  await reconcileCron();
  await reconcileCron();
  kube.collectGarbage();
};

const importAs = async (tag: string, char: string) => {
  await poll(tag);
  await finish(provisional(tag), char.repeat(64));
  if (names().includes(named(char)) && importOf(named(char)).status?.phase !== 'Succeeded')
    await finish(named(char), char.repeat(64));
};

describe('a file without a digest', () => {
  it('is fetched under a provisional name, and then renamed after the digest of its bytes', async () => {
    await poll('1');
    expect(names()).toEqual([provisional('1')]);
    expect(importOf(provisional('1')).spec.source).toEqual({ http: { url } });
    expect(offered()).toBe(undefined);
    await finish(provisional('1'), 'a'.repeat(64));
    expect(names()).toEqual([named('a'), provisional('1')].sort());
    const copy = importOf(named('a'));
    expect(copy.spec.source).toEqual({ pvc: { namespace, name: provisional('1') } });
    expect(copy.metadata.annotations?.[annotations.content]).toBe(`sha256:${'a'.repeat(64)}`);
    expect(offered()).toBe(undefined);
    await finish(named('a'), 'a'.repeat(64));
    expect([offered(), names()]).toEqual([named('a'), [named('a')]]);
    expect(cronNow().status?.currentImports).toEqual([
      { DataVolumeName: named('a'), Digest: `sha256:${'a'.repeat(64)}`, Validator: validatorOf('1') },
    ]);
    expect(kube.all(kubeEvents).map(({ message }) => message)).toContain(
      `${named('a')} (sha256:${'a'.repeat(64)}) is in use`,
    );
  });

  it('is given to others only with the Secret of the cron, under either name', async () => {
    kube.edit(dataImportCronKind.type, { namespace, name: 'noble' }, ({ spec }) => {
      spec.template!.spec.source!.http!.secretRef = 'login';
    });
    await poll('1');
    await finish(provisional('1'), 'a'.repeat(64));
    const contents = [provisional('1'), named('a')].map(
      (name) => importOf(name).metadata.annotations?.[annotations.content] ?? '',
    );
    expect(contents).toEqual([
      expect.stringMatching(new RegExp(`^${validatorOf('1')} with [0-9a-f]{16}$`)),
      expect.stringMatching(/^sha256:a{64} with [0-9a-f]{16}$/),
    ]);
    expect(new Set(contents.map((content) => content.slice(-16))).size).toBe(1);
  });

  it('is not polled by version any more once it is in use', async () => {
    await importAs('1', 'a');
    const before = kube.calls.length;
    await reconcile(deps, refOf(cronNow()));
    expect(kube.calls.slice(before).filter(({ verb }) => verb !== 'get')).toEqual([]);
    await poll('1');
    expect([names(), cronNow().status?.lastPoll?.outcome]).toEqual([[named('a')], 'Same']);
  });

  it('that is published again with the same bytes leads to the existing version', async () => {
    await importAs('1', 'a');
    const { uid } = importOf(named('a')).metadata;
    await importAs('2', 'a');
    expect([offered(), names(), importOf(named('a')).metadata.uid]).toEqual([named('a'), [named('a')], uid]);
    expect(cronNow().status?.currentImports).toMatchObject([
      { DataVolumeName: named('a'), Validator: validatorOf('2') },
    ]);
  });

  it('has a version for each content, and the version in use is kept until the next has its name', async () => {
    await importAs('1', 'a');
    await poll('2');
    await finish(provisional('2'), 'b'.repeat(64));
    expect(offered()).toBe(named('a'));
    await finish(named('b'), 'b'.repeat(64));
    expect([offered(), names()]).toEqual([named('b'), [named('a'), named('b')]]);
  });

  it('that is superseded before it is renamed leaves nothing behind', async () => {
    await poll('1');
    await finish(provisional('1'), 'a'.repeat(64));
    await importAs('2', 'b');
    expect([offered(), names()]).toEqual([named('b'), [named('b')]]);
  });

  it('is fetched again when its version was deleted, under the same name', async () => {
    await importAs('1', 'a');
    await kube.delete(dataVolumes, { namespace, name: named('a') });
    kube.collectGarbage();
    await reconcileCron();
    expect(names()).toEqual([provisional('1')]);
    await finish(provisional('1'), 'a'.repeat(64));
    await finish(named('a'), 'a'.repeat(64));
    expect([offered(), names()]).toEqual([named('a'), [named('a')]]);
  });

  it('keeps the provisional name when its bytes were not hashed', async () => {
    await poll('1');
    await finish(provisional('1'), undefined);
    expect([offered(), names()]).toEqual([provisional('1'), [provisional('1')]]);
  });
});

describe('a digest that a user wrote', () => {
  it('is compared with the file', async () => {
    const digest = `sha256:${'d'.repeat(64)}`;
    await recordObservation(deps, refOf(cronNow()), { is: 'found', digest, message: 'by hand', memory: {} });
    expect(importOf(named('d')).spec.source).toEqual({ http: { url, checksum: digest } });
  });
});
