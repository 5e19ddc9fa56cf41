// harvesterhci.io VirtualMachineImageDownloader: a request to download an image. Created by Harvester's clients, with the name of the image.
import { z } from 'zod';
import { ConditionSchema } from '#shared/api/image-status.ts';
import { ObjectName, Int64, fixedField, type ServedKind, withRules } from '#shared/api/kind.ts';
import type { KubeObject } from '#shared/api/object.ts';

const DownloaderSpec = z
  .object({
    imageName: ObjectName.min(1).describe('image of the same namespace'),
    compressType: z.enum(['qcow2']).default('qcow2').describe('what the file is'),
  })
  .meta(withRules(fixedField('imageName')));
type DownloaderSpec = z.input<typeof DownloaderSpec>;

const DownloaderStatus = z.object({
  status: z
    .enum(['Progressing', 'Ready'])
    .default('Progressing')
    .optional()
    .describe('Ready: the image can be downloaded'),
  downloadUrl: z.string().optional().describe('where; requests need a token of the cluster'),
  observedGeneration: Int64.optional().describe('the generation of spec this status was decided for'),
  conditions: z.array(ConditionSchema).optional(),
});
export type DownloaderStatus = z.infer<typeof DownloaderStatus>;

export interface Downloader extends KubeObject {
  readonly spec: DownloaderSpec;
  readonly status?: DownloaderStatus;
}

export const downloaderKind: ServedKind<Downloader> = {
  type: {
    group: 'harvesterhci.io',
    version: 'v1beta1',
    kind: 'VirtualMachineImageDownloader',
    plural: 'virtualmachineimagedownloaders',
    namespaced: true,
  },
  singular: 'virtualmachineimagedownloader',
  shortNames: ['vmimagedownloader', 'vmimagedownloaders'],
  categories: [],
  description: 'Shows when and where an image can be downloaded. It is removed with the download, or after a day.',
  spec: DownloaderSpec,
  status: DownloaderStatus,
  columns: [
    { name: 'VMImage', type: 'string', jsonPath: '.spec.imageName' },
    { name: 'CompressType', type: 'string', jsonPath: '.spec.compressType' },
    { name: 'Status', type: 'string', jsonPath: '.status.status' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};
