// The disks of a virtual machine, as Harvester records them in its annotations: claims to create, and claims to delete with it.
import { z } from 'zod';
import { harvesterAnnotations } from '#shared/api/harvester/image.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

/** A claim to create, except for its `storageClassName` if `imageId` refers to its image. */
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

/** Empty if the annotation is invalid. */
export const claimTemplatesOf = (machine: KubeObject | undefined): readonly ClaimTemplate[] =>
  parseJsonAs(Templates, machine?.metadata.annotations?.[harvesterAnnotations.claimTemplates]) ?? [];

/** Names of the claims that are deleted with their machine. */
export const removedClaimsOf = ({ metadata }: KubeObject): readonly string[] =>
  (metadata.annotations?.[harvesterAnnotations.removedClaims] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** `<namespace>/<name>` of the image of a disk; empty for an empty disk. */
export const imageIdOf = ({ metadata }: ClaimTemplate): string =>
  metadata?.annotations?.[harvesterAnnotations.imageId] ?? '';
