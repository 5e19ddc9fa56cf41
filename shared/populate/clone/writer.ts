// Who may be writing to a volume: what is read meanwhile would be no disk of any moment.
import { type Pod, pods } from '#shared/api/foreign/core.ts';
import type { ObjectKey } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

/** A running pod that has the claim and may write to it. */
export const findWriter = async (kube: KubeClient, key: ObjectKey): Promise<Pod | undefined> => {
  for await (const pod of writersOf(kube, key)) if (isRunning(pod)) return pod;
  return undefined;
};

/** Every pod that is there and may write to the claim, or may have before it ended. */
export async function* writersOf(kube: KubeClient, key: ObjectKey): AsyncIterable<Pod> {
  for await (const pod of kube.listAll(pods, { namespace: key.namespace })) if (mayWrite(pod, key.name)) yield pod;
}

/** Milliseconds since the epoch; `undefined` where the pod has not begun, or nobody says when it ended. */
export const spanOf = (pod: Pod): { readonly begin: number; readonly end: number } | undefined => {
  const begin = Date.parse(pod.status?.startTime ?? '');
  if (Number.isNaN(begin)) return undefined;
  if (isRunning(pod)) return { begin, end: Infinity };
  const ends = (pod.status?.containerStatuses ?? []).map(({ state }) =>
    Date.parse(state?.terminated?.finishedAt ?? ''),
  );
  const known = ends.filter((end) => !Number.isNaN(end));
  return known.length === 0 ? undefined : { begin, end: Math.max(...known) };
};

const isRunning = ({ status }: Pod): boolean => status?.phase !== 'Succeeded' && status?.phase !== 'Failed';

const mayWrite = ({ spec }: Pod, claimName: string): boolean =>
  spec.volumes?.some(({ name, persistentVolumeClaim: use }) => {
    if (use?.claimName !== claimName || use.readOnly === true) return false;
    const mounts = spec.containers.flatMap(({ volumeMounts = [] }) => volumeMounts.filter((it) => it.name === name));
    return mounts.length === 0 || mounts.some(({ readOnly }) => readOnly !== true);
  }) ?? false;
