// Who may be writing to a volume: what is read meanwhile would be no disk of any moment.
import { type Pod, pods } from '#shared/api/foreign/core.ts';
import type { ObjectKey } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

/** A running pod that has the claim and may write to it. */
export const findWriter = async (kube: KubeClient, key: ObjectKey): Promise<Pod | undefined> => {
  for await (const pod of kube.listAll(pods, { namespace: key.namespace })) {
    if (isRunning(pod) && mayWrite(pod, key.name)) return pod;
  }
  return undefined;
};

const isRunning = ({ status }: Pod): boolean => status?.phase !== 'Succeeded' && status?.phase !== 'Failed';

const mayWrite = ({ spec }: Pod, claimName: string): boolean =>
  spec.volumes?.some(({ name, persistentVolumeClaim: use }) => {
    if (use?.claimName !== claimName || use.readOnly === true) return false;
    const mounts = spec.containers.flatMap(({ volumeMounts = [] }) => volumeMounts.filter((it) => it.name === name));
    return mounts.length === 0 || mounts.some(({ readOnly }) => readOnly !== true);
  }) ?? false;
