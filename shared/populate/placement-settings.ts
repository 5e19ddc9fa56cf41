// Where an operator lets transfer Jobs run, how urgently, and on what they may keep files: for nodes that are set apart and for quotas.
import { z } from 'zod';
import { parseQuantity } from '#shared/api/quantity.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { jsonText, setting } from '#shared/runtime/config.ts';

const Toleration = z.strictObject({
  key: z.string().optional(),
  operator: z.enum(['Exists', 'Equal']).optional(),
  value: z.string().optional(),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional(),
  tolerationSeconds: z.number().int().optional(),
});

/** `disktype=ssd,zone=a`. */
const pairs = z.string().transform((text, context): Readonly<Record<string, string>> => {
  const entries = text.split(',').map((pair) => pair.trim().split('='));
  for (const [key = '', ...values] of entries)
    if (key === '' || values.length !== 1) context.addIssue('is not a list of key=value, separated by commas');
  return Object.fromEntries(entries.map(([key = '', value = '']) => [key, value]));
});

const quantity = z.string().refine((text) => parseQuantity(text) !== undefined, 'is no quantity such as 100Gi');

export const placementSettings = {
  transferNodeSelector: setting(
    'TRANSFER_NODE_SELECTOR',
    'Labels of the nodes that transfers run on, as key=value, separated by commas.',
    pairs.optional(),
  ),
  transferTolerations: setting(
    'TRANSFER_TOLERATIONS',
    'Taints that transfers may run beside: a JSON list of tolerations, as a Pod has them.',
    jsonText(z.array(Toleration)).optional(),
  ),
  transferPriorityClass: setting(
    'TRANSFER_PRIORITY_CLASS',
    'Priority class of transfers that ask for none themselves.',
    z.string().min(1).optional(),
  ),
  transferDisk: setting(
    'TRANSFER_DISK',
    'Limit of what a transfer keeps on the disk of its node (ephemeral-storage), where a quota asks for one.',
    quantity.optional(),
  ),
  scratchStorageClass: setting(
    'SCRATCH_STORAGE_CLASS',
    'Storage class of a claim that a transfer keeps temporary files on, in place of the disk of its node; it goes with the pod.',
    z.string().min(1).optional(),
  ),
  scratchSize: setting('SCRATCH_SIZE', 'Size of that claim.', quantity.default('100Gi')),
} as const;

type PlacementConfig = z.output<z.ZodObject<typeof placementSettings>>;

export const toPlacement = (config: PlacementConfig): NonNullable<PopulateSettings['placement']> => ({
  nodeSelector: config.transferNodeSelector,
  tolerations: config.transferTolerations,
  priorityClassName: config.transferPriorityClass,
});

export const toScratch = ({ scratchStorageClass, scratchSize }: PlacementConfig): PopulateSettings['scratch'] =>
  scratchStorageClass === undefined ? undefined : { storageClassName: scratchStorageClass, size: scratchSize };

/** What a container is let have beside processor and memory. */
export const toDiskLimit = ({ transferDisk }: PlacementConfig): Readonly<Record<string, string>> =>
  transferDisk === undefined ? {} : { 'ephemeral-storage': transferDisk };
