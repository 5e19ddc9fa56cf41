// Maintains one StorageProfile per storage class: checked each minute, with three listings if nothing has changed.
import { isDeepStrictEqual } from 'node:util';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { type StorageProfile, storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { type StorageClass, storageClasses } from '#shared/api/foreign/core.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import type { VolumeSnapshotClass } from '#shared/api/foreign/snapshot.ts';
import { readSnapshotClasses } from '#shared/populate/reading.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { tolerate } from '#shared/clients/kube/tolerant.ts';
import { withoutUndefined } from '#shared/runtime/json.ts';
import { type ClassFacts, describeClass, goldenMarksOf } from '#shared/populate/storage/storage-profile.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { readVolumesByHand } from '#shared/resources/storage-profile/index.ts';
import { AppError, isConflict, messageOf } from '#shared/runtime/errors.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

const ownedBy = ({ apiVersion, kind, metadata: { name, uid = '' } }: StorageClass) => ({ apiVersion, kind, name, uid });

const profileFor = (facts: ClassFacts): StorageProfile => ({
  apiVersion: apiVersionOf(storageProfiles),
  kind: storageProfiles.kind,
  metadata: {
    name: facts.storageClass.metadata.name,
    labels: { 'app.kubernetes.io/managed-by': 'bullion' },
    annotations: Object.fromEntries(
      Object.entries(goldenMarksOf(facts)).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value] as const],
      ),
    ),
    ownerReferences: [ownedBy(facts.storageClass)],
  },
  spec: {},
});

const isTrue = ({ status = {} }: StorageProfile, described: ReturnType<typeof describeClass>): boolean => {
  const { conditions: _, observedGeneration: __, ...reported } = status;
  return isDeepStrictEqual(withoutUndefined(described.status), reported);
};

/**
 * Annotations to change: missing ones are set from what is known of the driver, and may be changed by an administrator. The snapshot class for
 * golden images follows the existing classes.
 */
const lateMarks = ({ metadata: { annotations = {} } }: StorageProfile, facts: ClassFacts) =>
  Object.entries(goldenMarksOf(facts)).filter(([name, value]) =>
    name === cdiAnnotations.snapshotClass ? annotations[name] !== value : annotations[name] === undefined,
  );

const annotate = async (kube: KubeClient, profile: StorageProfile, facts: ClassFacts): Promise<void> => {
  const late = lateMarks(profile, facts);
  if (late.length === 0) return;
  const annotations = Object.fromEntries(late.map(([name, value]) => [name, value ?? null]));
  await kube.mergePatch(storageProfiles, profile.metadata, { metadata: { annotations } });
};

/** Storage classes of the cluster, and their profiles. */
export interface StorageFacts {
  readonly classes: readonly StorageClass[];
  readonly snapshotClasses: readonly VolumeSnapshotClass[];
  readonly profiles: readonly StorageProfile[];
}

/** Creates missing profiles, and reconciles outdated ones. An installed CDI does this itself: `undefined`. */
export const ensureProfiles = async (deps: ReconcileDeps): Promise<StorageFacts | undefined> => {
  const { kube, cdi } = deps;
  if ((await cdi?.()) === 'use') return undefined;
  const [classes, snapshotClasses, profiles] = await Promise.all([
    kube.list(storageClasses),
    readSnapshotClasses(kube),
    kube.list(storageProfiles),
  ]);
  const volumes = await readVolumesByHand(kube, classes.items);
  for (const storageClass of classes.items) {
    const { name } = storageClass.metadata;
    const profile = profiles.items.find(({ metadata }) => metadata.name === name);
    try {
      await ensureProfile(deps, profile, { storageClass, snapshotClasses, volumes });
    } catch (error) {
      // Not required by other work, which a tick must not leave undone while admission refuses a profile; the next tick retries it.
      if (!(error instanceof AppError)) throw error;
      deps.log.warn('StorageProfile not updated', { storageClass: name, error: messageOf(error) });
    }
  }
  return { classes: classes.items, snapshotClasses, profiles: profiles.items };
};

const ensureProfile = async (
  deps: ReconcileDeps,
  profile: StorageProfile | undefined,
  facts: ClassFacts,
): Promise<void> => {
  const { kube } = deps;
  if (profile === undefined) {
    // The event of its creation reconciles it.
    return void (await tolerate(kube.create(storageProfiles, profileFor(facts)), isConflict));
  }
  await annotate(kube, profile, facts);
  if (isTrue(profile, describeClass(facts, profile.spec ?? {}))) return;
  const { apiVersion, kind, metadata } = profile;
  await reconcile(deps, { apiVersion, kind, name: metadata.name }, { which: 'all' });
};
