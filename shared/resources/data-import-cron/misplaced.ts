// Crons at rest whose version no longer lies where or as it should: another default class, another form, another snapshot class. Nothing of theirs
// changes then, so that the tick compares what it has read anyway. Called by the tick (sweep.ts).
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { StorageClass } from '#shared/api/foreign/core.ts';
import { type KubeObject, type ObjectRef, refOf, isOfType } from '#shared/api/object.ts';
import { defaultClassOf } from '#shared/populate/storage/profile.ts';
import { snapshotClassFor } from '#shared/resources/data-import-cron/snapshot.ts';
import { type CronResource, isUpToDate, readCron } from '#shared/resources/data-import-cron/cron.ts';
import { classNameOf, isForDisk } from '#shared/resources/data-import-cron/template.ts';
import type { StorageFacts } from '#shared/resources/storage-profile/ensure.ts';

/** The class a cron's versions are to lie in. */
const classFor = (cron: CronResource, { classes }: StorageFacts): StorageClass | undefined => {
  const named = classNameOf(cron);
  return named === undefined
    ? defaultClassOf(classes, isForDisk(cron))
    : classes.find(({ metadata }) => metadata.name === named);
};

const isForm = ({ status }: DataImportCron, snapshotClass: string | undefined): boolean =>
  (status?.sourceFormat === 'snapshot') === (snapshotClass !== undefined) &&
  (status?.snapshotClass === undefined || status.snapshotClass === snapshotClass);

/** Whether a cron at rest would decide otherwise now. */
export const isMisplaced = (object: DataImportCron, facts: StorageFacts): boolean => {
  if (!isUpToDate(object) || object.metadata.deletionTimestamp !== undefined) return false;
  const cron = readCron(object);
  const storageClass = classFor(cron, facts);
  if (storageClass === undefined) return false;
  const { name } = storageClass.metadata;
  const place = object.metadata.annotations?.[cdiAnnotations.storageClass] ?? name;
  if (classNameOf(cron) === undefined && place !== name) return true;
  const profile = facts.profiles.find(({ metadata }) => metadata.name === name);
  return !isForm(object, snapshotClassFor({ profile, storageClass, snapshotClasses: facts.snapshotClasses }));
};

export interface MisplacedCrons {
  /** Takes note of an object that a listing came across. */
  readonly visit: (object: KubeObject) => void;
  readonly found: readonly ObjectRef[];
}

/** `facts`: `undefined` where a CDI that is installed looks after its crons itself. */
export const createMisplacedCrons = (facts: StorageFacts | undefined): MisplacedCrons => {
  const found: ObjectRef[] = [];
  const { type } = dataImportCronKind;
  return {
    visit: (object) => {
      if (isOfType(object, type) && facts !== undefined && isMisplaced(object, facts)) found.push(refOf(object));
    },
    found,
  };
};
