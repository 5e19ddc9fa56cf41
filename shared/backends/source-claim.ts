// A claim that an image is being made from says so, and is not deleted until that has come to its end: `protected/exported.ts` keeps it.
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { type Action, patch } from '#shared/populate/actions.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { Image } from '#shared/backends/image.ts';

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

// The golden claim of an image that another one is to be a plain copy of.

export type Cloned =
  | { readonly is: 'ready'; readonly namespace: string; readonly name: string; readonly snapshot?: string | undefined }
  | { readonly is: 'waiting'; readonly message: string };

/** Clones are of images of the same kind, whatever backend keeps them in a claim. */
export const readCloned = async (
  kube: KubeClient,
  { namespace, imageName }: { readonly namespace: string; readonly imageName: string },
): Promise<Cloned> => {
  const what = `image ${namespace}/${imageName}`;
  const source = await kube.get(harvesterImageKind.type, { namespace, name: imageName });
  if (source === undefined) return { is: 'waiting', message: `${what} does not exist` };
  const { phase, children } = source.status ?? {};
  if (phase !== 'Imported') return { is: 'waiting', message: `${what} is not ready` };
  if (children?.volume !== undefined)
    return { is: 'ready', namespace, name: children.volume, snapshot: children.snapshot };
  return { is: 'waiting', message: `${what} is not kept in a claim: its backend has to clone it` };
};
