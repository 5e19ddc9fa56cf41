// Once a minute: versions are copied into the classes that their cron or policy names (`prewarm`), and copies that nobody uses go. Right after the import,
// so that no channel waits for the storage of another class; a disk that comes first waits for the copy, as it would have waited for its own. From the
// listings that the tick makes anyway.
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { type StorageClass, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { type KubeObject, keyOf, refOf, isOfType } from '#shared/api/object.ts';
import { ensure } from '#shared/populate/actions.ts';
import { type Origin, readClaimOrigin, readSnapshotOrigin } from '#shared/populate/clone/origin.ts';
import { chooseSnapshotClass } from '#shared/populate/storage/snapshot.ts';
import { inClass, namedSnapshotClass } from '#shared/populate/storage/profile.ts';
import { buildCopy, originalOf, usualModeOf } from '#shared/populate/volume/golden-copy.ts';
import { worthOf } from '#shared/populate/volume/golden-copy-use.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { execute } from '#shared/resources/execute.ts';
import {
  type ListedCron,
  type UnwantedCopy,
  type WantedCopy,
  planCopies,
} from '#shared/resources/golden-copies/plan.ts';
import { isLocked } from '#shared/resources/protected/golden.ts';
import type { StorageFacts } from '#shared/resources/storage-profile/ensure.ts';
import { recordNote } from '#shared/resources/write.ts';
import { isOfOneObject, messageOf } from '#shared/runtime/errors.ts';

export interface GoldenCopies {
  /** Takes note of an object that a listing came across. */
  readonly visit: (object: KubeObject) => void;
  readonly carryOut: (deps: ReconcileDeps) => Promise<void>;
}

/** The claim or the snapshot of a version, whichever its cron keeps. */
const readOrigin = async ({ kube }: ReconcileDeps, { cron, version }: WantedCopy): Promise<Origin> => {
  const key = { namespace: cron.metadata.namespace ?? '', name: version };
  const asked = { what: `version ${version}`, mayUse: () => true };
  const claim = await readClaimOrigin(kube, key, asked);
  return claim.is === 'ready' ? claim : readSnapshotOrigin(kube, key, asked);
};

const describe = ({ profiles, snapshotClasses }: StorageFacts, { metadata, provisioner }: StorageClass) => {
  const profile = profiles.find((one) => one.metadata.name === metadata.name);
  const fitting = snapshotClasses.filter(({ driver }) => driver === provisioner);
  const named = profile === undefined ? undefined : namedSnapshotClass(profile);
  const choice = chooseSnapshotClass(
    fitting,
    provisioner,
    fitting.some((one) => one.metadata.name === named) ? named : undefined,
  );
  return { profile, snapshotClass: choice.is === 'found' ? choice.name : undefined };
};

/** Why a class that is named gets no copies; `undefined`: it has them, or there is nothing to report. */
const make = async (deps: ReconcileDeps, facts: StorageFacts, wanted: WantedCopy): Promise<string | undefined> => {
  const { storageClass, className, cron } = wanted;
  if (storageClass === undefined) return `there is no storage class ${className}`;
  const origin = await readOrigin(deps, wanted);
  const original = origin.is === 'ready' ? originalOf(origin) : undefined;
  if (origin.is !== 'ready' || original?.metadata.labels?.[cdiLabels.cron] !== cron.metadata.name) return undefined;
  const { profile, snapshotClass } = describe(facts, storageClass);
  const place = { storageClass, profile, snapshotClass, volumeMode: usualModeOf(origin, { storageClass, profile }) };
  const worth = worthOf(origin, place, inClass({ now: deps.now(), settings: deps.settings }, storageClass));
  if (worth.is === 'useless') return worth.why;
  if (worth.is === 'worth') await execute(deps.kube, [ensure(dataVolumes, buildCopy(original, place))]);
  return undefined;
};

const noteUseless = (deps: ReconcileDeps, { cron, version, className }: WantedCopy, why: string): Promise<void> =>
  recordNote(deps, refOf(cron), {
    type: 'Warning',
    reason: 'NotPrewarmed',
    message: `${version} is not copied into class ${className}: ${why}; change the class, or take it out of prewarm`,
    occurrence: `${version}/${className}/${why}`,
  });

/** As it was listed: a disk that was made from it since has changed it. */
const discard = async ({ kube, log }: ReconcileDeps, { copy, why }: UnwantedCopy): Promise<void> => {
  const { uid = '', resourceVersion } = copy.metadata;
  const claim = await kube.get(persistentVolumeClaims, keyOf(copy));
  if (claim !== undefined && isLocked(claim)) return;
  await kube.delete(dataVolumes, keyOf(copy), { uid, resourceVersion, propagation: 'Background' });
  log.info('removed a golden copy', { copy: copy.metadata.name, why });
};

/** What changed meanwhile, and what is refused, is looked at again by the next tick; others do not wait for it. */
const each = async <T>({ log }: ReconcileDeps, all: readonly T[], work: (one: T) => Promise<void>): Promise<void> => {
  for (const one of all) {
    try {
      await work(one);
    } catch (error) {
      if (!isOfOneObject(error)) throw error;
      log.warn('golden copy not changed', { error: messageOf(error) });
    }
  }
};

const toListed = (cron: DataImportCron): ListedCron => {
  const { namespace = '', name, uid = '', labels: own = {}, annotations = {} } = cron.metadata;
  const { lastImportedPVC, lastImportTimestamp } = cron.status ?? {};
  return {
    apiVersion: cron.apiVersion,
    kind: cron.kind,
    metadata: { namespace, name, uid, labels: own, annotations },
    status: { lastImportedPVC, lastImportTimestamp },
  };
};

/** `facts`: `undefined` where a CDI that is installed makes the disks. */
export const createGoldenCopies = (facts: StorageFacts | undefined): GoldenCopies => {
  const copies: DataVolume[] = [];
  const crons: ListedCron[] = [];
  const policies: GoldenImagePolicy[] = [];
  return {
    visit: (object) => {
      if (isOfType(object, dataImportCronKind.type)) crons.push(toListed(object));
      else if (isOfType(object, goldenImagePolicyKind.type)) policies.push(object);
      else if (object.metadata.labels?.[labels.copyOf] !== undefined && isOfType(object, dataVolumes))
        copies.push(object);
    },
    carryOut: async (deps) => {
      if (facts === undefined) return;
      const { wanted, unwanted } = planCopies({ copies, crons, policies }, { classes: facts.classes, now: deps.now() });
      await each(deps, unwanted, (one) => discard(deps, one));
      await each(deps, wanted, async (one) => {
        const why = await make(deps, facts, one);
        if (why !== undefined) await noteUseless(deps, one, why);
      });
    },
  };
};
