// The table: one rule one line. Called by admission.ts; which requests get here at all is in infra/generate/wiring.ts.
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, secrets, storageClasses } from '#shared/api/foreign/core.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { mayUseClass } from '#shared/resources/protected/claim.ts';
import { checkClass } from '#shared/resources/protected/class-rules.ts';
import { keepEncryptionKey } from '#shared/resources/protected/encryption-key.ts';
import { keepExported } from '#shared/resources/protected/exported.ts';
import { goldenTypes, keepGolden } from '#shared/resources/protected/golden.ts';
import { keepGoldenUnmounted, mayUseImages } from '#shared/resources/protected/machine.ts';
import { keepMachineDisk } from '#shared/resources/protected/machine-disk.ts';
import { keepMarks } from '#shared/resources/protected/marks.ts';
import { type ProtectedRule, erased } from '#shared/resources/protected/rule.ts';
import { keepClassInUse, keepReservedClass } from '#shared/resources/protected/storage-class.ts';
import { keepImageOfTemplate } from '#shared/resources/protected/template-version.ts';

const machines = erased(virtualMachines);
const classes = erased(storageClasses);

export const protectedRules: readonly ProtectedRule[] = [
  { id: 'D2', types: erased(harvesterImageKind.type), on: 'DELETE', check: keepImageOfTemplate },
  { id: 'P5', types: erased(persistentVolumeClaims), on: 'CREATE', check: mayUseClass },
  { id: 'P6', types: goldenTypes, on: 'CREATE', check: keepMarks },
  { id: 'P6', types: goldenTypes, on: 'UPDATE', check: keepMarks },
  // P7 of claims, P10 of data volumes.
  { id: 'P7', types: goldenTypes, on: 'DELETE', check: keepGolden },
  { id: 'P12', types: machines, on: 'CREATE', check: keepGoldenUnmounted },
  { id: 'P12', types: machines, on: 'UPDATE', check: keepGoldenUnmounted },
  { id: 'P13', types: machines, on: 'CREATE', check: mayUseImages },
  { id: 'P13', types: machines, on: 'UPDATE', check: mayUseImages },
  { id: 'P14', types: classes, on: 'DELETE', check: keepClassInUse },
  { id: 'P15', types: classes, on: 'DELETE', check: keepReservedClass },
  { id: 'P8', types: erased(persistentVolumeClaims), on: 'DELETE', check: keepExported },
  // P9 of claims, P11 of data volumes.
  { id: 'P9', types: erased(persistentVolumeClaims, dataVolumeKind.type), on: 'DELETE', check: keepMachineDisk },
  // P16 to P21.
  { id: 'class', types: classes, on: 'CREATE', check: checkClass },
  { id: 'class', types: classes, on: 'UPDATE', check: checkClass },
  { id: 'P22', types: erased(secrets), on: 'UPDATE', check: keepEncryptionKey },
  { id: 'P22', types: erased(secrets), on: 'DELETE', check: keepEncryptionKey },
];
