// `bullion why` on what a cluster holds, whichever kind is meant: what is said, once, within a screen.
import { describe, expect, it } from 'vitest';
import { whyCommand } from './why.ts';
import type { Values } from '#cli/command.ts';
import { wrap } from '#cli/output.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { kubeEvents, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { backingImages } from '#shared/api/foreign/longhorn.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { labels } from '#shared/api/names.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#shared/api/object.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { runCommand } from '#test/support/command.ts';

const namespace = 'vms';
const uid = '22222222-2222-4222-8222-222222222222';
const made = '2026-01-02T03:04:05Z';
const later = '2026-01-02T03:10:00Z';
const now = new Date('2026-01-02T04:04:05Z');

const failure =
  'the file at https://images.example/a/long/path/jammy.img is a web page (HTML), and no disk image: the link may have moved';
const ready = (status: 'True' | 'False', reason: string, message: string) => ({
  conditions: [{ type: 'Ready', status, reason, message, lastTransitionTime: later }],
});
const failed = {
  phase: 'Failed',
  lastFailure: { reason: 'ImageCorrupt', message: failure },
  ...ready('False', 'ImageCorrupt', failure),
};

const anObject = ({ kind, ...type }: ResourceType, name: string, status: object = {}, over: object = {}): KubeObject =>
  ({
    apiVersion: apiVersionOf(type),
    kind,
    metadata: { name, uid, ...(type.namespaced ? { namespace } : {}), creationTimestamp: made, ...over },
    spec: {},
    status,
  }) as unknown as KubeObject;

const anEvent = (name: string, type: string, message: string, lastTimestamp = later): KubeObject =>
  ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace },
    involvedObject: { kind: 'DataVolume', name: 'disk', uid },
    type,
    reason: 'ImageCorrupt',
    message,
    lastTimestamp,
  }) as unknown as KubeObject;

type Seen = readonly (readonly [ResourceType<never>, KubeObject])[];

const why = (wanted: string, ...objects: Seen) => whyWith({}, wanted, ...objects);

const whyWith = async (values: Values, wanted: string, ...objects: Seen) => {
  const kube = createMemoryKube();
  for (const [type, object] of objects) kube.seed(type, object);
  return (await runCommand(whyCommand, { kube, namespace, positionals: [wanted], values, now })).out;
};
const seen = <T extends KubeObject>(type: ResourceType<T>, object: KubeObject) =>
  [type as unknown as ResourceType<never>, object] as const;

const kinds = [...servedKinds.map(({ type }) => type), persistentVolumeClaims].filter(
  ({ namespaced, kind }) => namespaced && !kind.endsWith('Downloader'),
);

describe('bullion why', () => {
  it('says of a cron, and of the DataSource it keeps, whether they are ready', async () => {
    const owner = [{ apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataImportCron', name: 'fedora', uid }];
    const owned = {
      uid: 'other',
      ownerReferences: owner,
      labels: { [labels.ownerUid]: uid, 'cdi.kubevirt.io/dataImportCron': 'fedora' },
    };
    const text = await why(
      'dataimportcron/fedora',
      seen(dataImportCronKind.type, anObject(dataImportCronKind.type, 'fedora', ready('True', 'Ready', 'in use'))),
      seen(dataSourceKind.type, anObject(dataSourceKind.type, 'fedora', ready('False', 'NoSource', 'none'), owned)),
    );
    expect(text).toMatch(/State +Ready/);
    expect(text).not.toContain('unobserved');
    expect(text).toMatch(/datasource\/fedora +NoSource/);
  });

  it.each(kinds.map((type) => [`${type.kind}.${type.group}`, type] as const))(
    'finds a %s by its name',
    async (_, type) => {
      const text = await why('disk', seen(type, anObject(type, 'disk', failed)));
      expect(text.replaceAll(/\s+/g, ' ')).toContain(failure);
      expect(text).toMatch(/State +Failed, ImageCorrupt/);
    },
  );

  it.each(kinds.filter(({ kind }) => kind !== 'PersistentVolumeClaim').map((type) => [type.kind, type] as const))(
    'tells how to start a %s again, in its namespace, and says nothing twice',
    async (_, type) => {
      const events = [anEvent('a', 'Warning', failure), anEvent('b', 'Warning', `${failure} (again)`)];
      const text = await why(
        'disk',
        seen(type, anObject(type, 'disk', failed)),
        ...events.map((event) => seen(kubeEvents, event)),
      );
      const plain = text.replaceAll(/\s+/g, ' ');
      expect(plain).toMatch(/To do publish a good file at its source; then: .*disk -n vms/);
      expect(plain.split(failure)).toHaveLength(3);
      expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
    },
  );

  it.each<readonly [ResourceType, object]>([
    [harvesterImageKind.type, { sourceType: 'upload' }],
    [dataVolumeKind.type, { source: { upload: {} } }],
  ])('asks for another file where one was uploaded (%#)', async (type, spec) => {
    const object = { ...anObject(type, 'disk', failed), spec } as KubeObject;
    const text = await why('disk', seen(type, object));
    expect(text.replaceAll(/\s+/g, ' ')).toMatch(/upload a file again.* \(bullion upload disk <file> -n vms/);
  });

  it.each<readonly [ResourceType, (own: object) => object]>([
    [harvesterImageKind.type, (own: object) => own],
    [dataVolumeKind.type, (own: object) => ({ detail: own })],
  ])('says which mirror served (%#)', async (type, within) => {
    const status = { phase: 'Succeeded', ...within({ servedFrom: 'near.example/disks (first.example: gone)' }) };
    const text = await why('disk', seen(type, anObject(type, 'disk', status)));
    expect(text).toMatch(/Served from +near\.example\/disks \(first\.example: gone\)/);
  });

  it('means what fills a claim, and not the claim', async () => {
    const volume = seen(dataVolumeKind.type, anObject(dataVolumeKind.type, 'disk', failed));
    const claim = seen(persistentVolumeClaims, anObject(persistentVolumeClaims, 'disk', { phase: 'Bound' }));
    expect(await why('disk', volume, claim)).toMatch(/^DataVolume vms\/disk/);
    expect(await why('pvc/disk', volume, claim)).toMatch(/^PersistentVolumeClaim vms\/disk/);
  });

  it('asks which of several is meant', async () => {
    const types: readonly ResourceType[] = [dataSourceKind.type, dataImportCronKind.type];
    const both = types.map((type) => seen(type, anObject(type, 'fedora')));
    await expect(why('fedora', ...both)).rejects.toThrow(/datasource\/fedora or dataimportcron\/fedora/);
    expect(await why('dic/fedora', ...both)).toMatch(/^DataImportCron/);
  });

  it('says where to look for what is not there', async () => {
    await expect(why('nothing')).rejects.toThrow(/in namespace vms, .*bullion images -A .*-n names another/);
  });

  it('shows conditions of a backup, and the object that Longhorn has of an image', async () => {
    const message = 'the Secret backup is missing in namespace vms: make it there as well';
    const status = {
      phase: 'Imported',
      conditions: [
        ...ready('True', 'Ready', 'the image is ready to use').conditions,
        { type: 'DataReady', status: 'False', reason: 'SecretMissing', message },
      ],
    };
    const child = { labels: { [labels.ownerUid]: uid }, uid: 'b' };
    const copies = { diskFileStatusMap: { a: { state: 'ready' }, b: { state: 'in-progress' } } };
    const longhorn = anObject(backingImages, 'vmi-1', copies, { ...child, namespace: 'longhorn-system' });
    const { status: _, ...aClass } = anObject(storageClasses, 'lh-1', {}, child) as KubeObject & {
      status: object;
    };
    const text = await why(
      'jammy',
      seen(harvesterImageKind.type, anObject(harvesterImageKind.type, 'jammy', status)),
      seen(backingImages, longhorn),
      seen(storageClasses, aClass),
    );
    expect(text.replaceAll(/\s+/g, ' ')).toContain(`DataReady False, SecretMissing: ${message}`);
    expect(text).toMatch(/backingimage\/vmi-1 +ready, in-progress/);
    expect(text).toMatch(/sc\/lh-1 +- /);
  });

  it('explains its reasons once each, if asked', async () => {
    const event = seen(kubeEvents, anEvent('a', 'Warning', 'damaged'));
    const text = await whyWith(
      { explain: true },
      'disk',
      seen(dataVolumeKind.type, anObject(dataVolumeKind.type, 'disk', failed)),
      event,
    );
    expect(
      text.match(/^ImageCorrupt \(The source\)\n {2}ImageCorrupt, ImageTruncated: the image is damaged/gm),
    ).toHaveLength(1);
  });

  it('does not show what went wrong before a success', async () => {
    const status = { phase: 'Available', ...ready('True', 'Ready', 'it is there') };
    const early = seen(kubeEvents, anEvent('a', 'Warning', 'no node yet', made));
    const text = await why('out', seen(volumeExportKind.type, anObject(volumeExportKind.type, 'out', status)), early);
    expect(text).not.toContain('no node yet');
  });
});

describe('a line', () => {
  it('is cut between words, and behind the first begins further in', () => {
    const lines = wrap(`  Says  ${'word '.repeat(40)}`, '        ');
    expect(lines.every((line) => line.length <= 80)).toBe(true);
    expect(lines.map((line) => line.trim()).join(' ')).toBe(`Says  ${'word '.repeat(40)}`.trim());
    expect(wrap('x'.repeat(200), '')).toEqual(['x'.repeat(200)]);
  });
});
