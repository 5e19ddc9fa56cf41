// The StorageProfile of a storage class: settings of an administrator, else what is known of the driver. Pure.
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { StorageProfileSpec, StorageProfileStatus } from '#shared/api/cdi/storage-profile.ts';
import type { PersistentVolume, StorageClass } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshotClass } from '#shared/api/foreign/snapshot.ts';
import {
  type Capabilities,
  type ClaimSet,
  capabilitiesOf,
  recognitionOf,
} from '#shared/populate/storage/capabilities.ts';
import { askedStrategyOf, claimSetsOf, classAnnotationOf, setsOfVolumes } from './profile.ts';
import type { CloneStrategy } from '#shared/populate/clone/strategy.ts';
import { chooseSnapshotClass } from '#shared/populate/storage/snapshot.ts';

export interface ProfileDescription {
  readonly status: Omit<StorageProfileStatus, 'conditions' | 'observedGeneration'>;
  readonly isRecognized: boolean;
  readonly reason: string;
  readonly message: string;
}

export interface ClassFacts {
  readonly storageClass: StorageClass;
  readonly snapshotClasses: readonly VolumeSnapshotClass[];
  /** Read only if the class has no dynamic provisioning. */
  readonly volumes?: readonly PersistentVolume[] | undefined;
}

export const describeClass = (
  { storageClass, snapshotClasses, volumes = [] }: ClassFacts,
  asked: StorageProfileSpec,
): ProfileDescription => {
  const { provisioner, metadata } = storageClass;
  const known = capabilitiesOf(storageClass);
  const wantedClass = asked.snapshotClass ?? classAnnotationOf(storageClass, 'snapshotClass');
  const choice = chooseSnapshotClass(snapshotClasses, provisioner, wantedClass);
  const snapshotClass = choice.is === 'found' ? choice.name : undefined;
  const hasSnapshots = snapshotClass !== undefined;
  const found = mutable(setsOfVolumes(metadata.name, volumes));
  const sets = claimSetsOf(storageClass, { spec: asked, status: { claimPropertySets: found } });
  return {
    status: {
      storageClass: metadata.name,
      provisioner,
      cloneStrategy: askedStrategyOf(storageClass, asked) ?? usualStrategy(known?.clone, hasSnapshots),
      claimPropertySets: mutable(sets),
      dataImportCronSourceFormat: hasSnapshots ? formatOf(asked, known) : 'pvc',
      ...(snapshotClass === undefined ? {} : { snapshotClass }),
    },
    ...judge(storageClass, choice.is === 'wrong' ? choice.message : undefined),
  };
};

const formatOf = (
  { dataImportCronSourceFormat: format }: StorageProfileSpec,
  known: Capabilities | undefined,
): 'snapshot' | 'pvc' => (format === 'snapshot' || format === 'pvc' ? format : (known?.format ?? 'pvc'));

const mutable = (sets: readonly ClaimSet[]): NonNullable<StorageProfileStatus['claimPropertySets']> =>
  sets.map(({ accessModes, volumeMode }) => ({ accessModes: [...accessModes], volumeMode }));

/** Without a snapshot class no snapshot is taken, whatever the driver supports. */
const usualStrategy = (known: CloneStrategy = 'snapshot', hasSnapshots: boolean): CloneStrategy =>
  known === 'snapshot' && !hasSnapshots ? 'copy' : known;

const unknownMessages = {
  UnrecognizedProvisioner: 'nothing is known about',
  UnrecognizedStorageClassParameters:
    'the modes of its volumes depend on parameters of the class that are missing or unknown:',
} as const;

const judge = (storageClass: StorageClass, problem: string | undefined): Omit<ProfileDescription, 'status'> => {
  const { provisioner } = storageClass;
  const reason = recognitionOf(storageClass);
  const isRecognized = reason === 'RecognizedProvisioner';
  if (problem !== undefined) return { isRecognized, reason: 'SnapshotClassInvalid', message: problem };
  if (isRecognized) return { isRecognized, reason, message: `${provisioner} is known` };
  const message = `${unknownMessages[reason]} ${provisioner}: DataVolumes must set their access modes unless spec.claimPropertySets does`;
  return { isRecognized, reason, message };
};

/** Annotations of the profile with the requirements of golden images. `undefined`: there are none. */
export const goldenMarksOf = ({
  storageClass,
  snapshotClasses,
}: ClassFacts): Readonly<Record<string, string | undefined>> => {
  const { hasSingleWriter, goldenSnapshots, least } = capabilitiesOf(storageClass) ?? {};
  return {
    ...(least === undefined ? {} : { [cdiAnnotations.leastSize]: least }),
    ...(hasSingleWriter === undefined ? {} : { [cdiAnnotations.singleWriter]: 'true' }),
    ...(goldenSnapshots === undefined
      ? {}
      : { [cdiAnnotations.snapshotClass]: goldenClassOf(storageClass, snapshotClasses, goldenSnapshots) }),
  };
};

const goldenClassOf = (
  { provisioner }: StorageClass,
  classes: readonly VolumeSnapshotClass[],
  wanted: Readonly<Record<string, string>>,
): string | undefined => {
  const fitting = classes.filter(({ parameters = {} }) =>
    Object.entries(wanted).every(([name, value]) => parameters[name] === value),
  );
  const choice = chooseSnapshotClass(fitting, provisioner, undefined);
  return choice.is === 'found' ? choice.name : undefined;
};
