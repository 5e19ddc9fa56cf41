// An image that is made from what a claim of its namespace holds: of another image, or of a disk that is exported. Read and planned like bytes that are
// there already (sharing.ts).
import { readCloned } from '#shared/backends/source-claim.ts';
import { type Origin, readClaimOrigin, waitFor } from '#shared/populate/clone/origin.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { CopiedSource } from '#shared/populate/source.ts';

/** Its author was asked at admission (`use-image`, `export-claim`), and nothing else lies in the namespace that is the image's own. */
const mayUse = () => true;

export const readCopied = async (kube: KubeClient, source: CopiedSource): Promise<Origin> => {
  const { namespace } = source;
  if (source.type === 'export-from-volume') return readExport(kube, namespace, source.claimName);
  const cloned = await readCloned(kube, source);
  if (cloned.is === 'waiting') return waitFor('SourceNotReady', cloned.message);
  const { name, snapshot } = cloned;
  return readClaimOrigin(
    kube,
    { namespace, name },
    { what: `image ${namespace}/${source.imageName}`, snapshot, mayUse },
  );
};

/** What a guest wrote has no digest, and is no longer the file that it began as. */
const readExport = async (kube: KubeClient, namespace: string, name: string): Promise<Origin> => {
  const what = `PersistentVolumeClaim ${namespace}/${name}`;
  const origin = await readClaimOrigin(kube, { namespace, name }, { what, mayUse });
  return origin.is === 'ready' ? { ...origin, population: undefined } : origin;
};
