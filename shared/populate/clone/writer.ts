// Finds pods that may write to a volume: a copy taken meanwhile would be inconsistent.
import { type Pod, pods } from '#shared/api/foreign/core.ts';
import type { ObjectKey } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

/** A running pod that uses the claim and may write to it. */
export const findWriter = async (kube: KubeClient, key: ObjectKey): Promise<Pod | undefined> => {
  for await (const pod of writersOf(kube, key)) if (isRunning(pod)) return pod;
  return undefined;
};

/** Every existing pod that may write to the claim, or could before it ended. */
export async function* writersOf(kube: KubeClient, key: ObjectKey): AsyncIterable<Pod> {
  for await (const pod of kube.listAll(pods, { namespace: key.namespace })) if (mayWrite(pod, key.name)) yield pod;
}

/** Milliseconds since the epoch; `undefined` if the pod has not started, or its end was not recorded. */
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
