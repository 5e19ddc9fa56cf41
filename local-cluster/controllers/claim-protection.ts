// Keeps a claim until no pod names it any more, as Kubernetes does: also one that has ended holds it until it is gone.
import { type Pod, type PersistentVolumeClaim, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type Controller, type ControllerContext, startController } from '#local-cluster/controllers/controller.ts';
import { dropFinalizers, holdFinalizer } from '#local-cluster/controllers/finalizers.ts';
import { keyOfText, textOf } from '#local-cluster/controllers/informer.ts';

const protection = 'kubernetes.io/pvc-protection';

export const startClaimProtection = (context: ControllerContext): Controller =>
  startController(
    {
      ...context,
      name: 'claim-protection',
      reconcile: async (key) => {
        const claim = await context.kube.get(persistentVolumeClaims, keyOfText(key));
        if (claim === undefined) return undefined;
        if (claim.metadata.deletionTimestamp === undefined) {
          await holdFinalizer(context.kube, persistentVolumeClaims, claim, protection);
        } else if (!(await isUsed(context.kube, claim))) {
          await dropFinalizers(context.kube, persistentVolumeClaims, claim, [protection]);
        }
        return undefined;
      },
    },
    ({ watch }) => {
      watch(persistentVolumeClaims, (claim) => [textOf(claim.metadata)]);
      watch(pods, (pod) => claimsOf(pod).map((name) => textOf({ namespace: pod.metadata.namespace, name })));
    },
  );

const claimsOf = (pod: Pod): readonly string[] =>
  (pod.spec.volumes ?? []).flatMap(({ persistentVolumeClaim: claim }) =>
    claim === undefined ? [] : [claim.claimName],
  );

/** Asked of the server and not of the copy here: a pod created a moment ago counts. */
const isUsed = async (kube: KubeClient, { metadata }: PersistentVolumeClaim): Promise<boolean> => {
  const { items } = await kube.list(pods, { namespace: metadata.namespace });
  return items.some((pod) => claimsOf(pod).includes(metadata.name));
};
