// A claim that an image is exported from is marked, and not deleted until the export has ended (`protected/rules.ts`).
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { type Action, patch } from '#shared/populate/actions.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { Image } from './backend.ts';

/** The claim that an image is exported from; `undefined` if there is none, or if it is being deleted. */
export const readExported = async (kube: KubeClient, { source }: Image): Promise<PersistentVolumeClaim | undefined> => {
  if (source?.type !== 'export-from-volume') return undefined;
  const claim = await kube.get(persistentVolumeClaims, { namespace: source.namespace, name: source.claimName });
  return claim?.metadata.deletionTimestamp === undefined ? claim : undefined;
};

/** No action if it is marked already. Of two images exported from one claim, the later one counts. */
export const markExported = (claim: PersistentVolumeClaim | undefined, { ref }: Image): readonly Action[] => {
  if (claim === undefined || claim.metadata.labels?.[labels.exporting] === ref.uid) return [];
  const metadata = {
    labels: { [labels.exporting]: ref.uid },
    annotations: { [annotations.exporting]: `${ref.namespace ?? ''}/${ref.name}` },
  };
  return [patch(persistentVolumeClaims, claim, { metadata })];
};

// The golden claim of an image, for a plain copy of it.

export type Cloned =
  | { readonly is: 'ready'; readonly namespace: string; readonly name: string; readonly snapshot?: string | undefined }
  | { readonly is: 'waiting'; readonly message: string };

/** Only images of the same kind can be cloned, with any backend that stores them in a claim. */
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
  return { is: 'waiting', message: `${what} is not stored in a claim: only its own backend can clone it` };
};
