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
  { id: 'image-of-template', types: erased(harvesterImageKind.type), on: 'DELETE', check: keepImageOfTemplate },
  { id: 'image-class-allowed', types: erased(persistentVolumeClaims), on: 'CREATE', check: mayUseClass },
  { id: 'marks-are-ours', types: goldenTypes, on: 'CREATE', check: keepMarks },
  { id: 'marks-are-ours', types: goldenTypes, on: 'UPDATE', check: keepMarks },
  { id: 'golden-volume-in-use', types: goldenTypes, on: 'DELETE', check: keepGolden },
  { id: 'golden-volume-unmounted', types: machines, on: 'CREATE', check: keepGoldenUnmounted },
  { id: 'golden-volume-unmounted', types: machines, on: 'UPDATE', check: keepGoldenUnmounted },
  { id: 'machine-image-allowed', types: machines, on: 'CREATE', check: mayUseImages },
  { id: 'machine-image-allowed', types: machines, on: 'UPDATE', check: mayUseImages },
  { id: 'class-in-use', types: classes, on: 'DELETE', check: keepClassInUse },
  { id: 'reserved-class', types: classes, on: 'DELETE', check: keepReservedClass },
  { id: 'exported-claim', types: erased(persistentVolumeClaims), on: 'DELETE', check: keepExported },
  {
    id: 'machine-disk',
    types: erased(persistentVolumeClaims, dataVolumeKind.type),
    on: 'DELETE',
    check: keepMachineDisk,
  },
  // The table of class-rules.ts.
  { id: 'class', types: classes, on: 'CREATE', check: checkClass },
  { id: 'class', types: classes, on: 'UPDATE', check: checkClass },
  { id: 'encryption-key-in-use', types: erased(secrets), on: 'UPDATE', check: keepEncryptionKey },
  { id: 'encryption-key-in-use', types: erased(secrets), on: 'DELETE', check: keepEncryptionKey },
];
