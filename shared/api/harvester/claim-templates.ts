// The disks of a virtual machine as Harvester writes them on it: which are to be made, and which go with it.
import { z } from 'zod';
import { harvesterAnnotations } from '#shared/api/harvester/image.ts';
import type { KubeObject } from '#shared/api/object.ts';

/** A claim as it would be created, but for its `storageClassName` where `imageId` names the image it begins as. */
const ClaimTemplate = z.looseObject({
  metadata: z
    .looseObject({
      name: z.string().optional(),
      labels: z.record(z.string(), z.string()).optional(),
      annotations: z.record(z.string(), z.string()).optional(),
    })
    .optional(),
  spec: z
    .looseObject({
      storageClassName: z.string().optional(),
      resources: z.looseObject({ requests: z.record(z.string(), z.string()).optional() }).optional(),
    })
    .optional(),
});
export type ClaimTemplate = z.infer<typeof ClaimTemplate>;

const Templates = z.array(ClaimTemplate);

/** None where the annotation cannot be read. */
export const claimTemplatesOf = (machine: KubeObject | undefined): readonly ClaimTemplate[] => {
  try {
    return Templates.parse(JSON.parse(machine?.metadata.annotations?.[harvesterAnnotations.claimTemplates] ?? '[]'));
  } catch {
    return [];
  }
};

/** Names of the claims that are deleted with their machine. */
export const removedClaimsOf = ({ metadata }: KubeObject): readonly string[] =>
  (metadata.annotations?.[harvesterAnnotations.removedClaims] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** `<namespace>/<name>` of the image that a disk begins as; empty where it begins empty. */
export const imageIdOf = ({ metadata }: ClaimTemplate): string =>
  metadata?.annotations?.[harvesterAnnotations.imageId] ?? '';
