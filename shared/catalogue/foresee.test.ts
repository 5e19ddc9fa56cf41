// What `bullion plan` says of objects, on a cluster in memory: by the functions' own planners, and without a trace.
import { beforeEach, describe, expect, it } from 'vitest';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type ForesightTools, foresee } from '#shared/catalogue/foresee.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Denied, InvalidInput } from '#shared/runtime/errors.ts';
import { aStorageClass, aStorageProfile } from '#test/support/builders.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';

const mib = 2 ** 20;
const nobody = undefined as never;
const url = 'https://images.example/disk.qcow2';
const aVolume = (spec: object = { source: { http: { url } } }): KubeObject =>
  ({
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { name: 'root', namespace: 'vms' },
    spec: { storage: { storageClassName: 'local', resources: { requests: { storage: '2Gi' } } }, ...spec },
  }) as KubeObject;

const found = { format: 'qcow2', compression: 'none', size: 3 * mib, virtualSize: 16 * mib };

describe('what would come of an object', () => {
  let memory: MemoryKube;
  beforeEach(() => {
    memory = createMemoryKube();
    memory.seed(storageClasses, aStorageClass());
    memory.seed(storageProfiles, aStorageProfile());
  });

  /** A dry run of the API server: `admit` is what it asks. */
  const plan = async (object: KubeObject, over: Partial<ForesightTools> = {}, admit: () => void = () => undefined) => {
    const dry = async <T extends KubeObject>(_type: unknown, one: T): Promise<T> => {
      if (one.kind !== 'PersistentVolumeClaim') return { ...one, metadata: { uid: 'u-1', ...one.metadata } };
      admit();
      return one;
    };
    const kube = { ...memory, apply: dry, create: dry } as KubeClient;
    const before = memory.all();
    const look = async () => ({ is: 'found', inspection: found }) as never;
    const observe = async () => ({ is: 'failed', message: 'not asked' }) as never;
    const { verdict, rows } = await foresee({ kube, look, observe, verify: nobody, now: 0, ...over }, object);
    expect(memory.all()).toEqual(before);
    return {
      verdict,
      ...Object.fromEntries(rows.filter(([heading]) => !['makes', 'then'].includes(heading))),
      all: rows.map((row) => row.join(' ')),
    };
  };

  it('is its source, its claim and the first step of its function', async () => {
    const said = await plan(aVolume());
    expect(said).toMatchObject({
      verdict: 'would be created',
      source: 'reached from here: qcow2, 3.0 MiB, a disk of 16.0 MiB',
    });
    expect(said.all.join('\n')).toMatch(
      /makes PersistentVolumeClaim root: 2Gi of class local.*\nmakes Job .*\(import\)\nthen Pending/,
    );
    expect(said).not.toHaveProperty('fails');
  });

  it('fails where a quota has no room for its claim', async () => {
    const exceeded = () => {
      throw new Denied('exceeded quota: q, requested: requests.storage=2Gi');
    };
    expect(await plan(aVolume(), {}, exceeded)).toMatchObject({ fails: expect.stringContaining('exceeded quota: q') });
  });

  it('names a source that does not answer', async () => {
    const look = async () => ({ is: 'failed', reason: 'SourceNotFound', message: 'there is no such file' }) as never;
    expect(await plan(aVolume(), { look })).toMatchObject({
      verdict: 'would be created',
      source: 'not reached from here: SourceNotFound: there is no such file',
    });
  });

  it('would not change where the object is there already', async () => {
    memory.seed(dataVolumeKind.type, aVolume() as never);
    expect(await plan(aVolume())).toMatchObject({ verdict: 'would not change' });
    expect(await plan(aVolume({ source: { blank: {} } }))).toMatchObject({ verdict: 'would be changed' });
  });

  it('would be refused with the words of admission', async () => {
    const apply = async () => {
      throw new InvalidInput('the volume is not valid', [{ field: 'spec.source', message: 'is missing' }]);
    };
    const { verdict, rows } = await foresee(
      { kube: { ...memory, apply }, look: nobody, observe: nobody, verify: nobody, now: 0 },
      aVolume({}),
    );
    expect([verdict, rows]).toEqual([
      'would be refused',
      [['because', 'the volume is not valid; spec.source is missing']],
    ]);
  });

  it('would be refused with the words of the API server, each once, and without the request', async () => {
    const words = 'DataVolume.cdi.kubevirt.io "root" is invalid: spec: Invalid value: spec cannot be changed';
    const faults = [{ field: 'spec', message: 'Invalid value: spec cannot be changed' }];
    const apply = async () => {
      throw new InvalidInput(`Kubernetes API: PATCH /apis/x/root?dryRun=All: ${words}`, faults);
    };
    const tools = { kube: { ...memory, apply }, look: nobody, observe: nobody, verify: nobody, now: 0 };
    expect(await foresee(tools, aVolume())).toEqual({ verdict: 'would be refused', rows: [['because', words]] });
  });

  it('fails where its function would end it', async () => {
    memory.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'large', namespace: 'vms' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        volumeMode: 'Block',
        storageClassName: 'local',
        resources: { requests: { storage: '2Gi' } },
      },
      status: { phase: 'Bound', capacity: { storage: '2Gi' } },
    });
    const tight = aVolume({
      source: { pvc: { namespace: 'vms', name: 'large' } },
      storage: { storageClassName: 'local', resources: { requests: { storage: '1Mi' } } },
    });
    expect(await plan(tight)).toMatchObject({ fails: expect.stringMatching(/^TargetTooSmall: /) });
  });

  const http = { source: { http: { url } } };
  const missing = { storage: { storageClassName: 'gone', resources: { requests: { storage: '2Gi' } } } };
  const ofKind = (apiVersion: string, kind: string, spec: object): KubeObject =>
    ({ apiVersion, kind, metadata: { name: 'root', namespace: 'vms' }, spec }) as KubeObject;

  it.each([
    ['a volume', aVolume({ ...http, ...missing })],
    [
      'an image',
      ofKind('hypercloud.tmaxanc.com/v1alpha1', 'VirtualMachineImage', {
        source: { http: url },
        storageClassName: 'gone',
      }),
    ],
    [
      'a cron',
      ofKind('cdi.kubevirt.io/v1beta1', 'DataImportCron', {
        schedule: '',
        managedDataSource: 'root',
        template: { spec: { ...http, ...missing } },
      }),
    ],
    ['a claim', ofKind('v1', 'PersistentVolumeClaim', { storageClassName: 'gone', accessModes: ['ReadWriteOnce'] })],
  ])('fails for a storage class that does not exist, once: %s', async (_what, object) => {
    const { all } = await plan(object);
    expect(all.filter((row) => row.startsWith('fails'))).toEqual([
      'fails StorageClassNotFound: storage class "gone" does not exist: create it, or create this object again with another',
    ]);
  });

  it('does not fail for the class of a volume that is there already', async () => {
    const claim = ofKind('v1', 'PersistentVolumeClaim', { storageClassName: 'manual', volumeName: 'pv-1' });
    expect(await plan(claim)).not.toHaveProperty('fails');
  });

  it.each([
    [
      { is: 'verified', message: 'it is signed', attestations: [{ predicateType: 'urn:sbom', by: 'k' }] },
      'fedora: Verified: it is signed',
    ],
    [{ is: 'refused', reason: 'Unsigned', message: 'it has no signature' }, 'fedora: Unsigned: it has no signature'],
    [{ is: 'refused', reason: 'WrongKey', message: 'it fits no key' }, 'fedora: WrongKey: it fits no key'],
    [{ is: 'unreachable', reason: 'Unavailable', message: 'no answer' }, 'fedora: Unavailable: no answer'],
  ])('is what the signature rule of a policy says: $is', async (outcome, signature) => {
    memory.seed(dataImportCronKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataImportCron',
      metadata: { name: 'fedora', namespace: 'vms' },
      spec: {
        schedule: '',
        managedDataSource: 'fedora',
        source: { registry: { url: 'docker://registry.example/fedora:42' } },
      },
    });
    const policy = {
      apiVersion: 'bullion.dev/v1alpha1',
      kind: 'GoldenImagePolicy',
      metadata: { name: 'fedora', namespace: 'vms' },
      spec: {
        dataImportCrons: { names: ['fedora'] },
        channels: [{ name: 'stable', dataSource: 'fedora' }],
        verify: { signature: { cosign: { keys: { configMap: 'keys' } } } },
      },
    };
    const digest = `sha256:${'a'.repeat(64)}`;
    const asked: string[] = [];
    const verify = async (request: { readonly digest: string }) => {
      asked.push(request.digest);
      return outcome as never;
    };
    const observe = async () => ({ is: 'found', digest, message: 'it is there', memory: {} }) as never;
    const said = await plan(policy as never, { observe, verify });
    expect([said, asked]).toMatchObject([{ signature }, [digest]]);
    expect(await plan(policy as never)).toMatchObject({ signature: expect.stringMatching(/not reached from here/) });
  });

  it('is not known of other kinds', async () => {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'vms' } };
    expect(await plan(object)).toMatchObject({ verdict: 'is not known here' });
    expect(memory.all(persistentVolumeClaims)).toEqual([]);
  });
});
