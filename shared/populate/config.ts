// How the Jobs that move bytes are started, as the environment of whoever starts them says it.
import { z } from 'zod';
import { placementSettings, toDiskLimit, toPlacement, toScratch } from '#shared/populate/placement-settings.ts';
import { type PopulateSettings, defaultSettings } from '#shared/populate/settings.ts';
import { setting, wholeNumber } from '#shared/runtime/config.ts';

const words = z.string().transform((text) => text.split(/\s+/).filter((word) => word !== ''));

export const jobSettings = {
  transferImage: setting(
    'TRANSFER_IMAGE',
    'OCI image of transfer-job.',
    z.string().default(defaultSettings.transferImage),
  ),
  transferCommand: setting(
    'TRANSFER_COMMAND',
    'Command that starts transfer-job in its image, words separated by spaces.',
    z.string().default(defaultSettings.transferCommand.join(' ')).pipe(words),
  ),
  transferServiceAccount: setting(
    'TRANSFER_SERVICE_ACCOUNT',
    'Service account of transfer Jobs; it needs no rights.',
    z.string().optional(),
  ),
  transferCpu: setting('TRANSFER_CPU', 'CPU limit of a transfer.', z.string().default('2')),
  transferMemory: setting('TRANSFER_MEMORY', 'Memory limit of a transfer.', z.string().default('512Mi')),
  transferUrl: setting(
    'TRANSFER_URL',
    'URL of the transfer function inside the cluster; without it uploads are refused.',
    z.url().optional(),
  ),
  uploadIdleSeconds: setting(
    'UPLOAD_IDLE_SECONDS',
    'Seconds an upload may send nothing before it is given up.',
    wholeNumber(1).default(defaultSettings.uploadIdleSeconds),
  ),
  slowestBytes: setting(
    'SLOWEST_BYTES',
    'Bytes that a source must send within SLOWEST_SECONDS; one that sends fewer has stalled, and is asked again. 0: any trickle will do.',
    wholeNumber(0).default(defaultSettings.slowestBytes),
  ),
  slowestSeconds: setting(
    'SLOWEST_SECONDS',
    'Seconds over which the speed of a source is measured.',
    wholeNumber(1).default(defaultSettings.slowestSeconds),
  ),
  attemptSeconds: setting(
    'ATTEMPT_SECONDS',
    'Seconds one attempt of a transfer may take.',
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
    transferServiceAccount: config.transferServiceAccount,
    transferResources: {
      requests: defaultSettings.transferResources['requests'] ?? {},
      limits: { cpu: config.transferCpu, memory: config.transferMemory, ...toDiskLimit(config) },
    },
    placement: toPlacement(config),
    scratch: toScratch(config),
    transferUrl: config.transferUrl,
    uploadIdleSeconds: config.uploadIdleSeconds,
    slowestBytes: config.slowestBytes,
    slowestSeconds: config.slowestSeconds,
    attemptSeconds: config.attemptSeconds,
    childSeconds: config.childSeconds,
  }) satisfies Partial<PopulateSettings>;
