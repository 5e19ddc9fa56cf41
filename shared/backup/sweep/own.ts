// What this cluster has in a target, by what its images say: none of it goes in a sweep, whatever a listing says.
import { type ImageObject, imageTypes, readImage } from '#shared/backup/image.ts';
import type { OwnBackups } from '#shared/backup/sweep/look.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

const isOf = (of: { readonly target: string } | undefined, targetName: string): boolean => of?.target === targetName;

const keptOf = ({ metadata, status }: ImageObject, targetName: string) =>
  isOf(status?.backup, targetName) && metadata.deletionTimestamp === undefined ? status?.backup : undefined;

export const ownBackups = async (kube: KubeClient, targetName: string): Promise<OwnBackups> => {
  const keys = new Set<string | undefined>();
  const disks = new Set<string | undefined>();
  for (const type of imageTypes) {
    for await (const object of kube.listAll(type)) {
      const kept = keptOf(object, targetName);
      const restored = readImage(type, object)?.restored;
      const from = isOf(restored, targetName) ? restored?.from : undefined;
      keys.add(kept?.object);
      disks.add(kept?.disk).add(from?.key.split('/').at(-1));
    }
  }
  const known = (all: ReadonlySet<string | undefined>) => new Set([...all].filter((one) => one !== undefined));
  return { keys: known(keys), disks: known(disks) };
};
