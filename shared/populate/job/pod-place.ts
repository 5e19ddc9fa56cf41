// Scheduling, security context, priority and temporary storage of transfer pods. Called by transfer-job.ts.
import type { PodSpec, PodVolume } from '#shared/api/foreign/core.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';

/** What an owner may request for its pods. */
export interface PodWishes {
  readonly priorityClassName?: string | undefined;
  /** In the owner's namespace. Its token is not mounted; it determines the permissions of the pod and the image pull secrets. */
  readonly serviceAccountName?: string | undefined;
  /** For networks and service meshes. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

export const scratchOf = ({ scratch }: PopulateSettings): PodVolume => {
  if (scratch === undefined) return { name: 'scratch', emptyDir: {} };
  const { storageClassName, size } = scratch;
  const spec = {
    accessModes: ['ReadWriteOnce'],
    storageClassName,
    resources: { requests: { storage: size } },
  } as const;
  return { name: 'scratch', ephemeral: { volumeClaimTemplate: { spec } } };
};

export const podSpecOf = (
  wishes: PodWishes = {},
  { transferServiceAccount, placement = {} }: PopulateSettings,
): Pick<PodSpec, 'priorityClassName' | 'serviceAccountName' | 'nodeSelector' | 'tolerations'> => {
  const account = wishes.serviceAccountName ?? transferServiceAccount;
  const priorityClassName = wishes.priorityClassName ?? placement.priorityClassName;
  const { nodeSelector, tolerations } = placement;
  return {
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    ...(tolerations === undefined ? {} : { tolerations }),
    ...(priorityClassName === undefined ? {} : { priorityClassName }),
    ...(account === undefined ? {} : { serviceAccountName: account }),
  };
};
