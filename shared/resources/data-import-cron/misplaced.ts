// Crons at rest whose version no longer lies where or as it should: another default class, another form, another snapshot class. Nothing of theirs
// changes then, so that the tick compares what it has read anyway. Called by tick.ts.
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { type KubeObject, type ObjectRef, apiVersionOf, refOf } from '#shared/api/object.ts';
import { defaultClassOf } from '#shared/populate/profile.ts';
import { snapshotClassFor } from '#shared/resources/data-import-cron/snapshot.ts';
import { readCron } from '#shared/resources/data-import-cron/subject.ts';
import { classNameOf } from '#shared/resources/data-import-cron/template.ts';
import { type DriverDeps, drive } from '#shared/resources/driver.ts';
import type { StorageFacts } from '#shared/resources/storage-profile/ensure.ts';
import { AppError, messageOf } from '#shared/runtime/errors.ts';
import { type Outcome, done, worstOf } from '#shared/runtime/outcome.ts';

/** Whether a cron at rest would decide otherwise now. */
export const isMisplaced = (object: DataImportCron, facts: StorageFacts): boolean => {
  const { metadata, status } = object;
  const isAtRest = status?.conditions?.some((one) => one.type === 'UpToDate' && one.status === 'True') === true;
  if (!isAtRest || metadata.deletionTimestamp !== undefined) return false;
  const named = classNameOf(readCron(object));
  const storageClass =
    named === undefined
      ? defaultClassOf(facts.classes)
      : facts.classes.find((candidate) => candidate.metadata.name === named);
  if (storageClass === undefined) return false;
  const { name } = storageClass.metadata;
  const place = metadata.annotations?.[cdiAnnotations.storageClass];
  if (named === undefined && place !== undefined && place !== name) return true;
  const profile = facts.profiles.find((candidate) => candidate.metadata.name === name);
  const snapshotClass = snapshotClassFor({ profile, storageClass, snapshotClasses: facts.snapshotClasses });
  if ((status?.sourceFormat === 'snapshot') !== (snapshotClass !== undefined)) return true;
  return status?.snapshotClass !== undefined && status.snapshotClass !== snapshotClass;
};

export interface MisplacedCrons {
  /** Takes note of an object that a listing came across. */
  readonly visit: (object: KubeObject) => void;
  readonly run: () => Promise<Outcome>;
}

/** `facts`: `undefined` where a CDI that is installed looks after its crons itself. */
export const createMisplacedCrons = (deps: DriverDeps, facts: StorageFacts | undefined): MisplacedCrons => {
  const found: ObjectRef[] = [];
  const { type } = dataImportCronKind;
  return {
    visit: (object) => {
      const isCron = object.kind === type.kind && object.apiVersion === apiVersionOf(type);
      if (isCron && facts !== undefined && isMisplaced(object as DataImportCron, facts)) found.push(refOf(object));
    },
    run: async () => {
      const outcomes: Outcome[] = [done];
      for (const ref of found) {
        try {
          // oxlint-disable-next-line no-await-in-loop
          outcomes.push(await drive(deps, ref, { which: 'all' }));
        } catch (error) {
          // One in trouble must not keep the others from being driven; the next tick finds it again.
          if (!(error instanceof AppError)) throw error;
          deps.log.warn('cron not driven', { cron: ref.name, error: messageOf(error) });
        }
      }
      return worstOf(outcomes);
    },
  };
};
