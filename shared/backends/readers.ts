// Jobs that read what an image is kept in: for a download, or into a backup target. While they are there its volume does not go, and whoever throws it
// away takes them along. Called where an image is removed or started over.
import { type Job, jobs } from '#shared/api/foreign/core.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import { readOwn } from '#shared/backends/reading.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { transferJobName } from '#shared/populate/transfer-job.ts';

const modes = ['serve', 'backup'] as const;

export const readReaders = async (kube: KubeClient, owner: ObjectRef): Promise<readonly Job[]> => {
  const found = await Promise.all(modes.map((mode) => readOwn(kube, jobs, owner, transferJobName(mode, owner))));
  return found.flatMap(({ own }) => own ?? []);
};
