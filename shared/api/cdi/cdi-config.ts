// cdi.kubevirt.io CDIConfig: cluster-wide settings that clients read. There is one, named `config`: `virtctl image-upload` reads the upload
// URL, KubeVirt the file system overhead. Its status is reported, its spec is read by plans; it is not reconciled.
import { z } from 'zod';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import type { ServedKind } from '#shared/api/kind.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

/** 0 to 1, with at most three decimals. */
const Share = z.string().regex(/^(0(?:\.\d{1,3})?|1)$/);

const filesystemOverhead = z
  .looseObject({
    global: Share.optional().describe('of all classes'),
    storageClass: z.record(z.string(), Share).optional().describe('of single classes, by their names'),
  })
  .optional()
  .describe('share of a volume that its file system keeps for itself: 0 to 1, of at most three decimals');

const CdiConfigSpec = z
  .looseObject({
    filesystemOverhead,
    insecureRegistries: z
      .array(z.string())
      .optional()
      .describe(
        'registries, as host:port, that are accessed without TLS, in addition to those in the settings of the functions',
      ),
    uploadProxyURLOverride: z
      .string()
      .optional()
      .describe('URL that files are sent to, in place of the one in the settings of the functions'),
  })
  .describe('the fields that are used; everything else is configured by settings of the functions');

const CdiConfigStatus = z.looseObject({
  uploadProxyURL: z.string().optional().describe('URL that files are sent to'),
  filesystemOverhead,
  preallocation: z
    .boolean()
    .optional()
    .describe('whether volumes allocate all of their space in advance, if their author does not specify it'),
  scratchSpaceStorageClass: z.string().optional().describe('class of the claims that temporary files are kept on'),
  defaultPodResourceRequirements: z
    .looseObject({})
    .optional()
    .describe('requests and limits of the pods that fill volumes'),
});
export type CdiConfigStatus = z.infer<typeof CdiConfigStatus>;

export interface CdiConfig extends KubeObject {
  readonly spec: z.infer<typeof CdiConfigSpec>;
  readonly status?: CdiConfigStatus;
}

export const cdiConfigs: ResourceType<CdiConfig> = {
  group: cdiGroup,
  version: 'v1beta1',
  kind: 'CDIConfig',
  plural: 'cdiconfigs',
  namespaced: false,
};

/** The name that its clients use. */
export const cdiConfigName = 'config';

export const cdiConfigKind: ServedKind<CdiConfig> = {
  type: cdiConfigs,
  singular: 'cdiconfig',
  shortNames: [],
  categories: [],
  description: 'Settings of the cluster that clients read. There is one object, named config.',
  spec: CdiConfigSpec,
  status: CdiConfigStatus,
  columns: [
    { name: 'Upload', type: 'string', jsonPath: '.status.uploadProxyURL' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};
