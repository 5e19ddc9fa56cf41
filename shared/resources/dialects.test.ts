// The status of each kind, in its own format; and that nothing written by one pass is lost when the next one reads it.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { HarvesterImageStatus } from '#shared/api/harvester/image.ts';
import { HyperCloudImageStatus } from '#shared/api/hypercloud/image.ts';
import {
  type CloneState,
  type ImageChildren,
  type ImageState,
  type TransferState,
  imagePhases,
  initialState,
} from '#shared/populate/filled.ts';
import { cloneStrategies } from '#shared/populate/clone/strategy.ts';
import { dataVolumes } from '#shared/resources/data-volume/dialect.ts';
import { virtualMachinePvcs, virtualMachineVolumes } from '#shared/resources/hypercloud-volume/dialect.ts';
import type { VolumeDialect } from '#shared/resources/volume-reconciler.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import { hyperCloudImages } from '#shared/resources/hypercloud-image/dialect.ts';
import { compressions, imageFormats, transferPhases } from '#shared/transfer/report.ts';
import { aHarvesterImage, aHyperCloudImage } from '#test/support/builders.ts';
import type { Image } from '#shared/backends/backend.ts';

const now = '2026-01-02T03:04:05Z';
const uid = '22222222-2222-4222-8222-222222222222';
const cloud = aHyperCloudImage({ metadata: { name: 'ubuntu', namespace: 'default', uid, generation: 2 } });
const made = { metadata: { name: 'disk', namespace: 'default', uid, generation: 2 } };
const ofHyperCloud = { apiVersion: 'hypercloud.tmaxanc.com/v1alpha1', ...made };
const volume = { ...ofHyperCloud, kind: 'VirtualMachineVolume', spec: { virtualMachineImage: { name: 'ubuntu' } } };
const volumePvc = { ...ofHyperCloud, kind: 'VirtualMachinePvc', spec: { virtualMachineImageName: 'ubuntu' } };
const dataVolume: DataVolume = {
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  ...made,
  spec: { source: { http: { url: 'https://images.example/ubuntu.img' } }, storage: {} },
};
const harvester = aHarvesterImage({ metadata: { name: 'image-leap', namespace: 'default', uid, generation: 2 } });

const state = (over: Partial<ImageState>): ImageState => ({ ...initialState, ...over });
const withoutUndefined = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

const text = fc.string({ maxLength: 20 });
const time = fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }).map((date) => date.toISOString());
const count = fc.nat();
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
/** Every field is set, or a loss would not be noticed; the source of a clone exists only for volumes. */
type Fields<T> = { readonly [K in keyof T]-?: fc.Arbitrary<T[K]> };
const transfer: Fields<TransferState> = {
  run: text,
  startedAt: time,
  sequence: count,
  phase: fc.constantFrom(...transferPhases),
  percent: fc.integer({ min: 0, max: 99 }),
  receivedBytes: count,
  totalBytes: optional(count),
  bytesPerSecond: optional(count),
  etaSeconds: optional(count),
  note: optional(text),
  reportedAt: time,
};
const children: Fields<ImageChildren> = {
  volume: optional(text),
  snapshot: optional(text),
  job: optional(text),
  backingImage: optional(text),
  storageClass: optional(text),
};
const fields: Fields<Omit<ImageState, 'clone'>> = {
  phase: fc.constantFrom(...imagePhases),
  reason: text,
  message: text,
  progress: fc.integer({ min: 0, max: 100 }),
  attempts: count,
  attemptsFailed: count,
  failures: count,
  lastFailureTime: optional(time),
  lastFailure: optional(fc.record({ reason: text, message: text })),
  nextAttemptTime: optional(time),
  deadline: optional(time),
  handledRetryToken: optional(text),
  inspection: optional(
    fc.record({
      format: fc.constantFrom(...imageFormats),
      compression: fc.constantFrom(...compressions),
      size: optional(count),
      virtualSize: optional(count),
    }),
  ),
  digests: optional(fc.dictionary(fc.constantFrom('sha256', 'md5'), text)),
  lostDigests: optional(fc.dictionary(fc.constantFrom('sha256', 'md5'), text)),
  storageClassName: optional(text),
  fetchReason: optional(text),
  servedFrom: optional(text),
  children: optional(fc.record(children)),
  transfer: optional(fc.record(transfer)),
  announced: optional(text),
};
const anyState: fc.Arbitrary<ImageState> = fc.record(fields);
const clone: Fields<CloneState> = { strategy: fc.constantFrom(...cloneStrategies), because: text };
const anyVolumeState: fc.Arbitrary<ImageState> = fc.record({ ...fields, clone: optional(fc.record(clone)) });

describe('a round trip', () => {
  it('loses nothing of the state on a HyperCloud image, and conforms to the schema', () => {
    fc.assert(
      fc.property(anyState, (written) => {
        const status = hyperCloudImages.toStatus(cloud, hyperCloudImages.toImage(cloud), written, now);
        expect(HyperCloudImageStatus.parse(status)).toEqual(status);
        expect(withoutUndefined(hyperCloudImages.toImage({ ...cloud, status }).state)).toEqual(
          withoutUndefined(written),
        );
      }),
    );
  });

  it('loses nothing of the state on a Harvester image, and conforms to the schema', () => {
    fc.assert(
      fc.property(anyState, (written) => {
        const status = harvesterImages.toStatus(harvester, harvesterImages.toImage(harvester), written, now);
        expect(HarvesterImageStatus.parse(status)).toEqual(status);
        expect(withoutUndefined(harvesterImages.toImage({ ...harvester, status }).state)).toEqual(
          withoutUndefined(written),
        );
      }),
    );
  });

  it.each<[string, VolumeDialect<KubeObject>, KubeObject]>([
    ['VirtualMachineVolume', virtualMachineVolumes as VolumeDialect<KubeObject>, volume],
    ['VirtualMachinePvc', virtualMachinePvcs as VolumeDialect<KubeObject>, volumePvc],
  ])('loses nothing of the state on a %s, and conforms to the schema', (_, dialect, object) => {
    fc.assert(
      fc.property(anyVolumeState, (written) => {
        const status = dialect.toStatus(object, dialect.toVolume(object), written, now);
        expect(dialect.kind.status.parse(status)).toEqual(status);
        expect(withoutUndefined(dialect.toVolume({ ...object, status } as KubeObject).state)).toEqual(
          withoutUndefined(written),
        );
      }),
    );
  });

  it('loses nothing of the state on a DataVolume except reason and message, which are those of CDI, and conforms to the schema', () => {
    fc.assert(
      fc.property(anyVolumeState, (written) => {
        const status = dataVolumes.toStatus(dataVolume, dataVolumes.toVolume(dataVolume), written, now);
        expect(dataVolumeKind.status.parse(status)).toEqual(status);
        const {
          reason: _,
          message: _said,
          ...read
        } = dataVolumes.toVolume({ ...dataVolume, status } as DataVolume).state;
        expect(withoutUndefined(read)).toEqual(withoutUndefined({ ...written, reason: undefined, message: undefined }));
      }),
    );
  });

  it('writes the same status at any time when nothing changed', () => {
    fc.assert(
      fc.property(anyState, (written) => {
        const image = harvesterImages.toImage(harvester);
        const status = harvesterImages.toStatus(harvester, image, written, now);
        const again = harvesterImages.toStatus({ ...harvester, status }, image, written, '2030-01-01T00:00:00Z');
        expect(again).toEqual(status);
      }),
    );
  });
});

describe('HyperCloud', () => {
  const image = hyperCloudImages.toImage(cloud);
  const said = (over: Partial<ImageState>) => hyperCloudImages.toStatus(cloud, image, state(over), now);

  it.each([
    ['Pending', 'Creating', 'False', 'VmiIsCreating', 'VMI is in creating'],
    ['Converting', 'Creating', 'False', 'VmiIsCreating', 'VMI is in creating'],
    ['Snapshotting', 'Creating', 'False', 'VmiIsCreating', 'VMI is in creating'],
    ['Available', 'Available', 'True', 'VmiIsReady', 'Vmi is ready to use'],
    ['Failed', 'Error', 'False', 'SeeMessages', 'it broke'],
  ] as const)('says %s as state %s', (phase, summary, ...[status, reason, message]) => {
    const result = said({ phase, message: 'it broke' });
    expect(result).toMatchObject({ state: summary, phase, observedGeneration: 2 });
    expect(result.conditions?.[0]).toMatchObject({ type: 'ReadyToUse', status, reason, message });
    expect(result.conditions?.[1]).toMatchObject({ type: 'Ready', status, message: 'it broke', observedGeneration: 2 });
  });

  it('parses the short form', () => {
    expect(image).toMatchObject({
      backend: 'csi',
      source: { type: 'http', url: 'https://images.example/ubuntu.img' },
      storage: { className: 'local', volumeMode: 'Block', capacityBytes: undefined },
      childNames: { volume: 'ubuntu-image-pvc', snapshot: 'ubuntu-image-snapshot' },
      faults: [],
      retries: 3,
    });
  });

  it('parses the released form', () => {
    const released = hyperCloudImages.toImage({
      ...cloud,
      spec: {
        source: { http: 'https://images.example/cirros.img' },
        pvc: {
          volumeMode: 'Block',
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '3Gi' } },
          storageClassName: 'cephrbd',
        },
        snapshotClassName: 'csi-snapclass',
        checksum: ` SHA256:${'AB'.repeat(32)} `,
      },
    });
    expect(released).toMatchObject({
      faults: [],
      checksum: { algorithm: 'sha256', hex: 'ab'.repeat(32) },
      storage: {
        className: 'cephrbd',
        volumeMode: 'Block',
        accessModes: ['ReadWriteOnce'],
        capacityBytes: 3 * 2 ** 30,
        snapshotClassName: 'csi-snapclass',
      },
    });
  });

  it.each([
    ['a path of a node', { hostPath: { path: '/', nodeName: 'n' } }, 'spec.source.hostPath'],
    ['no source', {}, 'spec.source'],
    ['a file URL', { http: 'file:///etc/passwd' }, 'spec.source.http'],
  ])('rejects %s', (_name, source, field) => {
    const faulty = hyperCloudImages.toImage({ ...cloud, spec: { source } });
    expect(faulty.faults.map((fault) => fault.field)).toContain(field);
    expect(faulty.source).toBeUndefined();
  });
});

const ownClass = { storageClassName: 'lh-1', children: { storageClass: 'lh-1' } };

describe('Harvester', () => {
  const image = harvesterImages.toImage(harvester);
  const conditions = (over: Partial<ImageState>, object = harvester) =>
    Object.fromEntries(
      (harvesterImages.toStatus(object, image, state(over), now).conditions ?? []).map(({ type, ...rest }) => [
        type,
        rest,
      ]),
    );

  it('names children after its UID and keeps what the user requested', () => {
    expect(image).toMatchObject({
      backend: 'csi',
      childNames: { volume: `vmi-${uid}`, snapshot: `vmi-${uid}` },
      storage: { className: 'local' },
      retries: 3,
      faults: [],
    });
  });

  it('labels its golden volumes as Harvester does, and lets every node read what its upgrade needs', () => {
    expect(image.volumeMarks.filling).toEqual({
      'harvesterhci.io/imageId': 'default/image-leap',
      'harvesterhci.io/goldenImage': 'true',
    });
    expect(image.storage).not.toHaveProperty('volumeMode');
    const metadata = { ...harvester.metadata, annotations: { 'harvesterhci.io/os-upgrade-image': 'True' } };
    expect(harvesterImages.toImage({ ...harvester, metadata }).storage).toMatchObject({
      volumeMode: 'Filesystem',
      accessModes: ['ReadWriteMany'],
    });
  });

  it('uses the original default backend when none is given', () => {
    const { backend: _, ...spec } = harvester.spec;
    expect(harvesterImages.toImage({ ...harvester, spec }).backend).toBe('backingimage');
  });

  it.each<[string, string, object, Partial<ImageState>, string | undefined]>([
    ['names in spec', 'csi', { targetStorageClassName: 'lvm' }, {}, 'lvm'],
    ['found out', 'csi', {}, { storageClassName: 'found' }, 'found'],
    ['does not know yet', 'csi', {}, {}, undefined],
    ['models its own on', 'backingimage', { targetStorageClassName: 'longhorn' }, ownClass, 'longhorn'],
    ['made for itself alone', 'backingimage', {}, ownClass, undefined],
  ])('reports as target the class that it %s (%s)', (_how, backend, ...[spec, over, expected]) => {
    const { targetStorageClassName: _, ...rest } = harvester.spec;
    const object = aHarvesterImage({ ...harvester, spec: { ...rest, backend: backend as 'csi', ...spec } });
    const status = harvesterImages.toStatus(object, harvesterImages.toImage(object), state(over), now);
    expect(status.targetStorageClassName).toBe(expected);
  });

  it('is importing', () => {
    expect(
      conditions({ phase: 'Downloading', message: 'attempt 1 of 4: downloading', children: { job: 'j' } }),
    ).toMatchObject({
      Initialized: { status: 'True', reason: 'Initialized' },
      Imported: { status: 'Unknown', reason: 'Importing', message: 'attempt 1 of 4: downloading' },
      RetryLimitExceeded: { status: 'False', message: '' },
      Ready: { status: 'False' },
    });
  });

  it('reports a failure that is retried', () => {
    const lastFailure = { reason: 'SourceUnavailable', message: 'the server answered 503' };
    expect(conditions({ phase: 'Pending', lastFailure })).toMatchObject({
      Imported: { status: 'Unknown' },
      RetryLimitExceeded: { status: 'False', message: 'failed due to error: the server answered 503' },
    });
  });

  it('reports a final failure', () => {
    expect(conditions({ phase: 'Failed', message: 'no' })).toMatchObject({
      Imported: { status: 'False', reason: 'Importing', message: 'failed due to error: no' },
      RetryLimitExceeded: { status: 'True' },
      Initialized: { status: 'False' },
    });
  });

  it('is imported, and its earlier failure is cleared', () => {
    const status = harvesterImages.toStatus(
      harvester,
      image,
      state({
        phase: 'Available',
        progress: 100,
        failures: 2,
        inspection: { format: 'qcow2', compression: 'none', size: 5, virtualSize: 10 },
        storageClassName: 'local',
      }),
      now,
    );
    expect(status).toMatchObject({
      phase: 'Imported',
      progress: 100,
      size: 5,
      virtualSize: 10,
      failed: 2,
      storageClassName: 'local',
      appliedUrl: 'https://images.example/leap.qcow2',
    });
    expect(conditions({ phase: 'Available' })).toMatchObject({
      Imported: { status: 'True', reason: 'Imported' },
      RetryLimitExceeded: { status: 'False', message: '' },
      Ready: { status: 'True' },
    });
  });

  it('updates the times of a condition only when it changes', () => {
    const first = harvesterImages.toStatus(harvester, image, state({ phase: 'Pending', message: 'a' }), now);
    const later = '2026-01-02T04:00:00Z';
    const second = harvesterImages.toStatus(
      { ...harvester, status: first },
      image,
      state({ phase: 'Pending', message: 'b' }),
      later,
    );
    const ready = second.conditions?.find(({ type }) => type === 'Ready');
    expect(ready).toMatchObject({ message: 'b', lastUpdateTime: later, lastTransitionTime: now });
    const third = harvesterImages.toStatus(
      { ...harvester, status: second },
      image,
      state({ phase: 'Available' }),
      later,
    );
    expect(third.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ lastTransitionTime: later });
  });

  it('keeps fields that others wrote into its status', () => {
    const status = { phase: 'Pending', backupTarget: { endpoint: 's3://b' } };
    expect(harvesterImages.toStatus({ ...harvester, status }, image, state({}), now).backupTarget).toEqual({
      endpoint: 's3://b',
    });
  });

  it('never shows the secrets in a URL', () => {
    const signed: Image = { ...image, source: { type: 'http', url: 'https://a.example/x.img?signature=secret' } };
    expect(harvesterImages.toStatus(harvester, signed, state({}), now).appliedUrl).toBe('https://a.example/x.img');
  });
});
