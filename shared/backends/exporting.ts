// A claim that an image is being made from says so, and is not deleted until that has come to its end: `protected/exported.ts` keeps it.
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { type Action, patch } from '#shared/backends/actions.ts';
import type { Image } from '#shared/backends/image.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

/** The claim of an image that is exported from one; `undefined` where there is none, or it goes already. */
export const readExported = async (kube: KubeClient, { source }: Image): Promise<PersistentVolumeClaim | undefined> => {
  if (source?.type !== 'export-from-volume') return undefined;
  const claim = await kube.get(persistentVolumeClaims, { namespace: source.namespace, name: source.claimName });
  return claim?.metadata.deletionTimestamp === undefined ? claim : undefined;
};

/** Nothing where it is marked already. Of two images that are made from one claim, the later one counts. */
export const markExported = (claim: PersistentVolumeClaim | undefined, { ref }: Image): readonly Action[] => {
  if (claim === undefined || claim.metadata.labels?.[labels.exporting] === ref.uid) return [];
  const metadata = {
    labels: { [labels.exporting]: ref.uid },
    annotations: { [annotations.exporting]: `${ref.namespace ?? ''}/${ref.name}` },
  };
  return [patch(persistentVolumeClaims, claim, { metadata })];
};
