// How transfer Jobs are started, read from the environment of the function that starts them.
import { z } from 'zod';
import { type PopulateSettings, defaultSettings } from '#shared/populate/settings.ts';
import { setting, wholeNumber, jsonText } from '#shared/runtime/config.ts';
import { parseQuantity } from '#shared/api/quantity.ts';

// Where transfer Jobs run, with which priority, and which storage they use for temporary files: for dedicated nodes and quotas.

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

const quantity = z
  .string()
  .refine((text) => parseQuantity(text) !== undefined, 'is not a valid quantity such as 100Gi');

const placementSettings = {
  transferNodeSelector: setting(
    'TRANSFER_NODE_SELECTOR',
    'Labels of the nodes that transfers run on, as key=value, separated by commas.',
    pairs.optional(),
  ),
  transferTolerations: setting(
    'TRANSFER_TOLERATIONS',
    'Tolerations of transfers: a JSON list, as in a Pod.',
    jsonText(z.array(Toleration)).optional(),
  ),
  transferPriorityClass: setting(
    'TRANSFER_PRIORITY_CLASS',
    'Priority class of transfers whose object requests none.',
    z.string().min(1).optional(),
  ),
  transferDisk: setting(
    'TRANSFER_DISK',
    'Limit of ephemeral-storage of a transfer, if a quota requires one.',
    quantity.optional(),
  ),
  scratchStorageClass: setting(
    'SCRATCH_STORAGE_CLASS',
    'Storage class of an ephemeral claim for temporary files of a transfer, instead of the disk of its node; it is deleted with the pod.',
    z.string().min(1).optional(),
  ),
  scratchSize: setting('SCRATCH_SIZE', 'Size of that claim.', quantity.default('100Gi')),
} as const;

type PlacementConfig = z.output<z.ZodObject<typeof placementSettings>>;

const toPlacement = (config: PlacementConfig): NonNullable<PopulateSettings['placement']> => ({
  nodeSelector: config.transferNodeSelector,
  tolerations: config.transferTolerations,
  priorityClassName: config.transferPriorityClass,
});

const toScratch = ({ scratchStorageClass, scratchSize }: PlacementConfig): PopulateSettings['scratch'] =>
  scratchStorageClass === undefined ? undefined : { storageClassName: scratchStorageClass, size: scratchSize };

/** Resource limits of a container besides CPU and memory. */
const toDiskLimit = ({ transferDisk }: PlacementConfig): Readonly<Record<string, string>> =>
  transferDisk === undefined ? {} : { 'ephemeral-storage': transferDisk };

const argumentList = z.string().transform((text) => text.split(/\s+/).filter((word) => word !== ''));

export const jobSettings = {
  transferImage: setting(
    'TRANSFER_IMAGE',
    'OCI image of transfer-job.',
    z.string().default(defaultSettings.transferImage),
  ),
  transferCommand: setting(
    'TRANSFER_COMMAND',
    'Command that starts transfer-job in its image, arguments separated by spaces.',
    z.string().default(defaultSettings.transferCommand.join(' ')).pipe(argumentList),
  ),
  bootImage: setting(
    'BOOT_IMAGE',
    'OCI image of boot-job, which boots versions of golden images by QEMU.',
    z.string().default(defaultSettings.bootImage),
  ),
  kvmResource: setting(
    'KVM_RESOURCE',
    'Resource that gives /dev/kvm to the pod of such a boot, such as devices.kubevirt.io/kvm. Default: processors are emulated.',
    z.string().min(1).optional(),
  ),
  transferServiceAccount: setting(
    'TRANSFER_SERVICE_ACCOUNT',
    'Service account of transfer Jobs; it needs no permissions.',
    z.string().optional(),
  ),
  transferCpu: setting('TRANSFER_CPU', 'CPU limit of a transfer.', z.string().default('2')),
  transferMemory: setting('TRANSFER_MEMORY', 'Memory limit of a transfer.', z.string().default('512Mi')),
  devicesAsRoot: setting(
    'BLOCK_DEVICES_AS_ROOT',
    'Whether a transfer that opens a block device runs as root, without any capability: for nodes where only root may open devices.',
    z.stringbool().default(defaultSettings.devicesAsRoot),
  ),
  transferUrl: setting(
    'TRANSFER_URL',
    'URL of the transfer function inside the cluster. Default: uploads are rejected.',
    z.url().optional(),
  ),
  uploadIdleSeconds: setting(
    'UPLOAD_IDLE_SECONDS',
    'Seconds to wait for the first data of an upload, which is aborted afterwards. Once some has arrived, its Job waits five minutes for more, or less if this is less, and ends.',
    wholeNumber(1).default(defaultSettings.uploadIdleSeconds),
  ),
  uploadKeepSeconds: setting(
    'UPLOAD_KEEP_SECONDS',
    'Seconds that the data of an unfinished upload is kept after its Job has ended for want of more. The upload continues when its client returns.',
    wholeNumber(1).default(defaultSettings.uploadKeepSeconds),
  ),
  slowestBytes: setting(
    'SLOWEST_BYTES',
    'Bytes that a source must send within SLOWEST_SECONDS; otherwise it has stalled and the request is retried. 0: no minimum.',
    wholeNumber(0).default(defaultSettings.slowestBytes),
  ),
  slowestSeconds: setting(
    'SLOWEST_SECONDS',
    'Seconds over which the speed of a source is measured.',
    wholeNumber(1).default(defaultSettings.slowestSeconds),
  ),
  attemptSeconds: setting(
    'ATTEMPT_SECONDS',
    'Timeout of one attempt of a transfer, in seconds.',
    wholeNumber(1).default(defaultSettings.attemptSeconds),
  ),
  childSeconds: setting(
    'CHILD_SECONDS',
    'Seconds a pod, volume or snapshot may take to become usable before its image fails.',
    wholeNumber(1).default(defaultSettings.childSeconds),
  ),
  ...placementSettings,
} as const;

type JobConfig = z.output<z.ZodObject<typeof jobSettings>>;

export const toJobSettings = (config: JobConfig) =>
  ({
    transferImage: config.transferImage,
    transferCommand: config.transferCommand,
    bootImage: config.bootImage,
    kvmResource: config.kvmResource,
    transferServiceAccount: config.transferServiceAccount,
    transferResources: {
      requests: defaultSettings.transferResources['requests'] ?? {},
      limits: { cpu: config.transferCpu, memory: config.transferMemory, ...toDiskLimit(config) },
    },
    devicesAsRoot: config.devicesAsRoot,
    placement: toPlacement(config),
    scratch: toScratch(config),
    transferUrl: config.transferUrl,
    uploadIdleSeconds: config.uploadIdleSeconds,
    uploadKeepSeconds: config.uploadKeepSeconds,
    slowestBytes: config.slowestBytes,
    slowestSeconds: config.slowestSeconds,
    attemptSeconds: config.attemptSeconds,
    childSeconds: config.childSeconds,
  }) satisfies Partial<PopulateSettings>;
