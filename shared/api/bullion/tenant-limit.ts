// bullion.dev TenantLimit: what namespaces may have of images and volumes, and where they may fetch them from. Written by administrators of the cluster.
import { z } from 'zod';
import { SignatureRule } from '#shared/api/bullion/verify.ts';
import { ConditionSchema } from '#shared/api/image-status.ts';
import { Int64, ObjectName, QuantityValue, type ServedKind, exactlyOne, withRules } from '#shared/api/kind.ts';
import { LabelSelector } from '#shared/api/label-selector.ts';
import type { KubeObject } from '#shared/api/object.ts';

const Message = z.string().min(1).max(1024);
const Count = z.int().min(0);
const ClassName = ObjectName.min(1).describe('name of a StorageClass');

const amounts = {
  images: Count.optional().describe('how many VirtualMachineImages, of both groups'),
  volumes: Count.optional().describe(
    'how many DataVolumes, VirtualMachineVolumes and VirtualMachinePvcs, versions of golden images included',
  ),
  storage: QuantityValue.optional().describe('size of all their claims together, such as 500Gi'),
} as const;

const ClassQuota = z.object({ name: ClassName, ...amounts });

const Quota = z
  .object({
    ...amounts,
    storageClasses: z.array(ClassQuota).min(1).max(64).optional().describe('limits on what is in single classes'),
  })
  .describe('how much each of the namespaces may have; what is left out is not limited');
export type Quota = z.infer<typeof Quota>;

const placeShape = {
  host: z
    .string()
    .min(1)
    .max(300)
    .optional()
    .describe('host name or address, with a port or for any port; *.example.com: every name below it'),
  registry: z
    .string()
    .min(1)
    .max(512)
    .optional()
    .describe('registry, or a repository in it with everything below: quay.io/containerdisks'),
  bucket: z.string().min(1).max(255).optional().describe('bucket of an object store'),
  store: z
    .string()
    .min(1)
    .max(300)
    .optional()
    .describe('host of the object store of bucket; left out: the object store of this installation'),
} as const;

const storeRule = { rule: '!has(self.store) || has(self.bucket)', message: 'store needs bucket' } as const;

const AllowedPlace = z
  .object({
    ...placeShape,
    redirects: z
      .enum(['Listed', 'Any'])
      .optional()
      .describe(
        'Any: a source of this place may redirect to any server that is not denied; left out, Listed: to places in this list',
      ),
  })
  .meta(
    withRules(
      {
        rule: exactlyOne('host', 'registry', 'bucket'),
        message: 'exactly one of host, registry and bucket must be set',
      },
      storeRule,
    ),
  );
export type AllowedPlace = z.infer<typeof AllowedPlace>;

const DeniedPlace = z
  .object({
    ...placeShape,
    addresses: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe('range of addresses, such as 10.0.0.0/8, under whatever name: compared with what a name resolves to'),
    message: Message.optional().describe('what users are told, such as where else the image is'),
  })
  .meta(
    withRules(
      {
        rule: exactlyOne('host', 'registry', 'bucket', 'addresses'),
        message: 'exactly one of host, registry, bucket and addresses must be set',
      },
      storeRule,
    ),
  );
export type DeniedPlace = z.infer<typeof DeniedPlace>;

const SignedPlace = z
  .object({
    ...placeShape,
    signature: SignatureRule.describe(
      'who must have signed it: exactly one of the fields. ConfigMaps with keys are in the namespace of Bullion',
    ),
  })
  .meta(
    withRules(
      {
        rule: `${['host', 'registry', 'bucket'].map((field) => `(has(self.${field}) ? 1 : 0)`).join(' + ')} <= 1`,
        message: 'only one of host, registry and bucket may be set',
      },
      storeRule,
    ),
  );
export type SignedPlace = z.infer<typeof SignedPlace>;

const Sources = z
  .object({
    allow: z
      .array(AllowedPlace)
      .max(256)
      .optional()
      .describe('the only places that bytes are fetched from; left out: every place that is not denied'),
    deny: z.array(DeniedPlace).max(256).optional().describe('places that nothing is fetched from, even if allowed'),
    signed: z
      .array(SignedPlace)
      .min(1)
      .max(32)
      .optional()
      .describe(
        'places whose images must be signed, and name their digest or checksum; the first one that a source is at decides, and one without host, registry and bucket is every place',
      ),
    uploads: z.enum(['Allow', 'Deny']).optional().describe('whether users may upload images; left out: Allow'),
    message: Message.optional().describe('what users are told whose source is not allowed'),
  })
  .describe('where images and volumes are fetched from');
export type Sources = z.infer<typeof Sources>;

export const TenantLimitSpec = z
  .object({
    namespaceSelector: LabelSelector.describe('labels of the namespaces it applies to; {}: every namespace'),
    quota: Quota.optional(),
    storageClasses: z
      .object({
        allow: z.array(ClassName).max(64).describe('the only classes that may be used'),
        message: Message.optional().describe('what users are told who use another one'),
      })
      .optional()
      .describe('which storage classes may be used; left out: all'),
    sources: Sources.optional(),
    message: Message.optional().describe('added to what users are told, such as whom to ask for more'),
  })
  .describe('which namespaces, and what each of them may have');
export type TenantLimitSpec = z.infer<typeof TenantLimitSpec>;

const used = {
  images: z.int().describe('how many images there are'),
  volumes: z.int().describe('how many volumes there are'),
  storage: z.string().describe('size of their claims'),
} as const;

const NamespaceUsage = z.object({
  namespace: z.string().describe('name of the namespace'),
  ...used,
  storageClasses: z
    .array(z.object({ name: z.string().describe('name of the class'), ...used }))
    .optional()
    .describe('of the classes that have a limit of their own'),
  reached: z
    .array(z.string())
    .optional()
    .describe('limits that leave no room, such as images or storage of class fast'),
});
export type NamespaceUsage = z.infer<typeof NamespaceUsage>;

export const TenantLimitStatus = z.object({
  observedGeneration: Int64.optional().describe('the generation of spec this status was decided for'),
  namespaceCount: z.int().optional().describe('how many namespaces it applies to'),
  reachedCount: z.int().optional().describe('how many of them have reached a limit'),
  namespaces: z
    .array(NamespaceUsage)
    .optional()
    .describe('what they use, once a minute; of more than 200 namespaces, those that have reached a limit first'),
  conditions: z.array(ConditionSchema).optional(),
});
export type TenantLimitStatus = z.infer<typeof TenantLimitStatus>;

export interface TenantLimit extends KubeObject {
  readonly spec: TenantLimitSpec;
  readonly status?: TenantLimitStatus;
}

export const tenantLimitKind: ServedKind<TenantLimit> = {
  type: {
    group: 'bullion.dev',
    version: 'v1alpha1',
    kind: 'TenantLimit',
    plural: 'tenantlimits',
    namespaced: false,
  },
  singular: 'tenantlimit',
  shortNames: [],
  categories: [],
  description:
    'Limits what namespaces may have of images and volumes, and where they fetch them from. All limits that select a namespace apply to it.',
  spec: TenantLimitSpec,
  status: TenantLimitStatus,
  columns: [
    {
      name: 'Images',
      type: 'integer',
      jsonPath: '.spec.quota.images',
      description: 'Images that a namespace may have',
    },
    { name: 'Volumes', type: 'integer', jsonPath: '.spec.quota.volumes', description: 'Volumes that it may have' },
    { name: 'Storage', type: 'string', jsonPath: '.spec.quota.storage', description: 'Size of all of them' },
    { name: 'Namespaces', type: 'integer', jsonPath: '.status.namespaceCount' },
    { name: 'Reached', type: 'integer', jsonPath: '.status.reachedCount', description: 'Namespaces without room' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};
