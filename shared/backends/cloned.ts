// The golden claim of an image that another one is to be a plain copy of. Called by backends that keep images in claims.
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

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
