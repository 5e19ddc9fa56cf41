// A storage class described in the words of a StorageProfile: what an administrator wants, else what is known of the driver. Pure.
import type { StorageProfileSpec, StorageProfileStatus } from '#shared/api/cdi/storage-profile.ts';
import type { StorageClass } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshotClass } from '#shared/api/foreign/snapshot.ts';
import { capabilitiesOf } from '#shared/populate/capabilities.ts';
import { classAnnotationOf } from '#shared/populate/class-annotations.ts';
import { claimSetsOf, cloneStrategyOf } from '#shared/populate/profile.ts';
import { chooseSnapshotClass } from '#shared/populate/snapshot.ts';

export interface Described {
  readonly status: Omit<StorageProfileStatus, 'conditions' | 'observedGeneration'>;
  readonly isRecognized: boolean;
  readonly reason: string;
  readonly message: string;
}

export const describeClass = (
  storageClass: StorageClass,
  snapshotClasses: readonly VolumeSnapshotClass[],
  asked: StorageProfileSpec,
): Described => {
  const { provisioner, metadata } = storageClass;
  const known = capabilitiesOf(storageClass);
  const wantedClass = asked.snapshotClass ?? classAnnotationOf(storageClass, 'snapshotClass');
  const choice = chooseSnapshotClass(snapshotClasses, provisioner, wantedClass);
  const snapshotClass = choice.is === 'found' ? choice.name : undefined;
  const hasSnapshots = snapshotClass !== undefined;
  const wanted = asked.dataImportCronSourceFormat;
  const format = wanted === 'snapshot' || wanted === 'pvc' ? wanted : (known?.format ?? 'pvc');
  return {
    status: {
      storageClass: metadata.name,
      provisioner,
      cloneStrategy: cloneStrategyOf(storageClass, asked) ?? (hasSnapshots ? 'snapshot' : 'copy'),
      claimPropertySets: claimSetsOf(storageClass, asked).map(({ accessModes, volumeMode }) => ({
        accessModes: [...accessModes],
        volumeMode,
      })),
      dataImportCronSourceFormat: hasSnapshots ? format : 'pvc',
      ...(snapshotClass === undefined ? {} : { snapshotClass }),
    },
    ...judge({
      provisioner,
      isKnown: known !== undefined,
      problem: choice.is === 'wrong' ? choice.message : undefined,
    }),
  };
};

interface Judged {
  readonly provisioner: string;
  readonly isKnown: boolean;
  readonly problem: string | undefined;
}

const judge = ({ provisioner, isKnown, problem }: Judged): Omit<Described, 'status'> => {
  if (problem !== undefined) return { isRecognized: isKnown, reason: 'SnapshotClassInvalid', message: problem };
  if (isKnown) return { isRecognized: true, reason: 'RecognizedProvisioner', message: `${provisioner} is known` };
  const message = `nothing is known of ${provisioner}: block volumes written by one node are assumed; say otherwise in spec.claimPropertySets`;
  return { isRecognized: false, reason: 'UnrecognizedProvisioner', message };
};
