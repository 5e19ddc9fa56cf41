// What this cluster has in a target, by what its images say: none of it goes in a sweep, whatever a listing says.
import { imageTypes, readImage } from '#shared/backup/image.ts';
import type { OwnBackups } from '#shared/backup/sweep/look.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

export const ownBackups = async (kube: KubeClient, targetName: string): Promise<OwnBackups> => {
  const keys = new Set<string>();
  const disks = new Set<string>();
  for (const type of imageTypes) {
    for await (const object of kube.listAll(type)) {
      const { backup } = object.status ?? {};
      const restored = readImage(type, object)?.restored;
      const isKept = backup?.target === targetName && object.metadata.deletionTimestamp === undefined;
      if (isKept && backup.object !== undefined) keys.add(backup.object);
      const from = restored?.target === targetName ? restored.from?.key.split('/').at(-1) : undefined;
      for (const disk of [isKept ? backup.disk : undefined, from]) if (disk !== undefined) disks.add(disk);
    }
  }
  return { keys, disks };
};
