// Reconciles StorageProfiles: each reports what is known of its class. One line in registry.ts; `ensure.ts` creates them.
import { setCdiConditions } from '#shared/api/conditions.ts';
import { type StorageProfile, type StorageProfileStatus, storageProfileKind } from '#shared/api/cdi/storage-profile.ts';
import {
  type PersistentVolume,
  type StorageClass,
  persistentVolumes,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { readSnapshotClasses } from '#shared/populate/reading.ts';
import { follow } from '#shared/populate/watched-child.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { plainReconciler } from '#shared/resources/reconciler.ts';
import { isMadeByHand } from '#shared/populate/storage/profile.ts';
import { type ClassFacts, describeClass } from '#shared/populate/storage/storage-profile.ts';
import type { Reconciler, ReconciledState, Planner, Resource } from '#shared/resources/reconciler.ts';
import { readResource } from '#shared/resources/dialect.ts';

interface ProfileState extends ReconciledState {
  readonly status: Omit<StorageProfileStatus, 'conditions' | 'observedGeneration'>;
}

interface ProfileResource extends Resource<ProfileState> {
  readonly object: StorageProfile;
}

type ObservedProfile = Omit<ClassFacts, 'storageClass'> & { readonly storageClass: StorageClass | undefined };

const read = (object: StorageProfile): ProfileResource => {
  const { conditions = [], observedGeneration: _, ...status } = object.status ?? {};
  const recognized = conditions.find(({ type }) => type === 'Recognized');
  return {
    ...readResource(object),
    object,
    state: {
      phase: recognized?.status === 'True' ? 'Recognized' : 'Unrecognized',
      reason: recognized?.reason ?? 'Pending',
      message: recognized?.message ?? 'waiting to be processed',
      status,
    },
  };
};

const plan: Planner<ProfileResource, ObservedProfile>['plan'] = ({ object, state }, { storageClass, ...observed }) => {
  if (storageClass === undefined) {
    const message = `there is no storage class ${object.metadata.name}: a profile must have the name of its class`;
    return { actions: [], state: { ...state, phase: 'Unrecognized', reason: 'StorageClassNotFound', message } };
  }
  const { status, isRecognized, reason, message } = describeClass({ storageClass, ...observed }, object.spec ?? {});
  return { actions: [], state: { phase: isRecognized ? 'Recognized' : 'Unrecognized', reason, message, status } };
};

/** Volumes of classes without dynamic provisioning; not read if there is no such class. */
export const readVolumesByHand = async (
  kube: KubeClient,
  classes: readonly StorageClass[],
): Promise<readonly PersistentVolume[]> =>
  classes.some(isMadeByHand) ? (await kube.list(persistentVolumes)).items : [];

const planner: Planner<ProfileResource, ObservedProfile> = {
  check: async (kube, { ref }) => {
    const storageClass = await kube.get(storageClasses, { name: ref.name });
    const volumes = storageClass === undefined ? [] : await readVolumesByHand(kube, [storageClass]);
    return { storageClass, volumes, snapshotClasses: await readSnapshotClasses(kube) };
  },
  plan,
  remove: ({ state }) => ({ actions: [], state, removed: true }),
};

export const storageProfileReconciler: Reconciler<StorageProfile, ProfileResource> = {
  ...plainReconciler('Recognized', ({ state }, refusal) => ({ ...state, ...refusal })),
  kind: storageProfileKind,
  // They have no owner; declared for the permission to create and annotate them.
  watchedChildren: () => [follow(storageProfileKind.type, ['create', 'patch'], () => false)],
  reads: () => [storageClasses, volumeSnapshotClasses, persistentVolumes],
  read,
  toStatus: ({ status }, { generation }, state, now): StorageProfileStatus => ({
    observedGeneration: generation,
    ...state.status,
    conditions: setCdiConditions(
      status?.conditions ?? [],
      [
        {
          type: 'Recognized',
          status: state.phase === 'Recognized' ? 'True' : 'False',
          reason: state.reason,
          message: state.message,
        },
      ],
      now,
    ),
  }),
  refusalOf: () => undefined,
  plannerOf: () => planner,
  // The tick observes changes of classes, by comparing all of them.
  isSettled: ({ object, generation, deleting }) => !deleting && object.status?.observedGeneration === generation,
};
