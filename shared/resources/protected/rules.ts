// The table: one rule one line. Called by admission.ts; which requests get here at all is in infra/generate/wiring.ts.
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { mayUseClass } from '#shared/resources/protected/claim.ts';
import { keepGolden, keepMarks } from '#shared/resources/protected/golden.ts';
import { keepGoldenUnmounted, mayUseImages } from '#shared/resources/protected/machine.ts';
import { type ProtectedRule, erased } from '#shared/resources/protected/rule.ts';
import { keepClassInUse, keepReservedClass } from '#shared/resources/protected/storage-class.ts';
import { keepImageOfTemplate } from '#shared/resources/protected/template-version.ts';

/** Kinds an image is kept in. */
export const goldenKinds = erased(persistentVolumeClaims, volumeSnapshots, dataVolumeKind.type, storageClasses);
const machines = erased(virtualMachines);
const classes = erased(storageClasses);

export const protectedRules: readonly ProtectedRule[] = [
  { id: 'D2', types: erased(harvesterImageKind.type), on: 'DELETE', check: keepImageOfTemplate },
  { id: 'P5', types: erased(persistentVolumeClaims), on: 'CREATE', check: mayUseClass },
  { id: 'P6', types: goldenKinds, on: 'UPDATE', check: keepMarks },
  // P7 of claims, P10 of data volumes.
  { id: 'P7', types: goldenKinds, on: 'DELETE', check: keepGolden },
  { id: 'P12', types: machines, on: 'CREATE', check: keepGoldenUnmounted },
  { id: 'P12', types: machines, on: 'UPDATE', check: keepGoldenUnmounted },
  { id: 'P13', types: machines, on: 'CREATE', check: mayUseImages },
  { id: 'P13', types: machines, on: 'UPDATE', check: mayUseImages },
  { id: 'P14', types: classes, on: 'DELETE', check: keepClassInUse },
  { id: 'P15', types: classes, on: 'DELETE', check: keepReservedClass },
];
