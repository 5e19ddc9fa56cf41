// Crons that follow one file without a published digest: it is fetched once for all of them, also for one that is created when the first is done.
import { beforeEach, describe, expect, it } from 'vitest';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { jobs } from '#shared/api/foreign/core.ts';
import { refOf } from '#shared/api/object.ts';
import { validatorDigest } from '#shared/golden/version.ts';
import { recordObservation } from '#shared/resources/data-import-cron/poll.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { type Shared, namespace, share } from '#test/support/shared-content.ts';

const url = 'https://images.example/bucket/noble.img';
const validatorOf = (tag: string): string => validatorDigest([url, 'etag', tag]);
/** As `share` fills volumes. */
const short = 'b'.repeat(12);

let shared: Shared;
let fetched: Set<string>;

beforeEach(() => {
  shared = share();
  fetched = new Set();
});

const note = (): void => {
  for (const { metadata, spec } of shared.kube.all(jobs))
    if (/"type\\*":\\*"(http|s3)/.test(JSON.stringify(spec))) fetched.add(metadata.uid ?? '');
};

const settle = async (): Promise<void> => {
  const { kube, deps, fill } = shared;
  for (let round = 0; round < 14; round += 1) {
    for (const type of [dataVolumes, dataImportCronKind.type] as const)
      for (const object of kube.all(type as typeof dataVolumes)) await reconcile(deps, refOf(object), { which: 'all' });
    note();
    fill();
    kube.collectGarbage();
  }
};

const follow = async (name: string, tag: string, type: 'http' | 's3' = 'http'): Promise<void> => {
  const { kube, deps } = shared;
  const storage = { storageClassName: 'local', resources: { requests: { storage: '1Gi' } } };
  const isThere = kube.all(dataImportCronKind.type).some(({ metadata }) => metadata.name === name);
  if (!isThere)
    kube.seed(dataImportCronKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataImportCron',
      metadata: { namespace, name },
      spec: {
        schedule: '0 3 * * *',
        managedDataSource: name,
        retentionPolicy: 'None',
        template: { spec: { source: { [type]: { url } }, storage } },
      },
    });
  const cron = kube.all(dataImportCronKind.type).find(({ metadata }) => metadata.name === name)!;
  const observation = { is: 'found', digest: validatorOf(tag), message: tag, memory: { etag: tag } } as const;
  await recordObservation({ ...deps, now: () => deps.now() + (isThere ? 120_000 : 0) }, refOf(cron), observation);
  await settle();
};

const offered = (name: string): string | undefined => {
  const source = shared.kube.all(dataSourceKind.type).find(({ metadata }) => metadata.name === name)?.spec.source;
  return source?.pvc?.name ?? source?.snapshot?.name;
};

describe('a file without a published digest', () => {
  it.each(['http', 's3'] as const)(
    'is fetched once over %s, also for a cron that is created after the first is done',
    async (type) => {
      await follow('one', '1', type);
      expect([offered('one'), fetched.size]).toEqual([`one-${short}`, 1]);
      await follow('two', '1', type);
      expect([offered('two'), fetched.size]).toEqual([`two-${short}`, 1]);
    },
  );

  it('is identified by the last validator of its server, even if it was published again with the same bytes', async () => {
    await follow('one', '1');
    await follow('one', '2');
    expect([offered('one'), fetched.size]).toEqual([`one-${short}`, 2]);
    await follow('two', '2');
    expect([offered('two'), fetched.size]).toEqual([`two-${short}`, 2]);
  });

  it('can be cloned as long as one of the volumes exists', async () => {
    const { kube } = shared;
    await follow('one', '1');
    await follow('two', '1');
    await kube.delete(dataImportCronKind.type, { namespace, name: 'one' });
    await settle();
    expect(kube.all(dataVolumes).map(({ metadata }) => metadata.name)).toEqual([`two-${short}`]);
    await follow('three', '1');
    expect([offered('three'), fetched.size]).toEqual([`three-${short}`, 1]);
    for (const name of ['two', 'three']) await kube.delete(dataImportCronKind.type, { namespace, name });
    await settle();
    await follow('four', '1');
    expect([offered('four'), fetched.size]).toEqual([`four-${short}`, 2]);
  });

  it('is restored when versions are kept as snapshots', async () => {
    shared.kube.seed(storageProfiles, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'StorageProfile',
      metadata: { name: 'local' },
      status: { dataImportCronSourceFormat: 'snapshot' },
    });
    await follow('one', '1');
    expect([offered('one'), shared.kube.all(dataVolumes), fetched.size]).toEqual([`one-${short}`, [], 1]);
    await follow('two', '1');
    expect([offered('two'), fetched.size]).toEqual([`two-${short}`, 1]);
  });
});
