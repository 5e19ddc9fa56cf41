// Imports one image into a local cluster and watches it until the end. Called by the demo and flow tests.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '#infra/local/cluster.ts';
import { isOurDriver } from '#local-cluster/controllers/volumes/classes.ts';
import { driverOf, handleOf, volumeModeOf } from '#local-cluster/controllers/volumes/facts.ts';
import { persistentVolumeClaims, persistentVolumes } from '#shared/api/foreign/core.ts';
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { CommonImageStatus } from '#shared/api/image-status.ts';
import type { ObjectKey } from '#shared/api/object.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { Unavailable } from '#shared/runtime/errors.ts';

// Formats an image's status as one line of progress, and displays it.

type ShownStatus = CommonImageStatus & { readonly phase?: string | undefined };

/** Characters of the bar. */
const barWidth = 28;

export const formatSeconds = (seconds: number): string => {
  const whole = Math.ceil(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
};

const barOf = (percent: number): string => {
  const filled = Math.round((percent / 100) * barWidth);
  return `[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}]`;
};

/** Phase, bar, percent, speed and time left, if known. */
export const progressLine = (status: ShownStatus): string => {
  const { phase = 'Pending', progress = 0, transfer } = status;
  const parts = [`${phase.padEnd(12)} ${barOf(progress)} ${String(progress).padStart(3)} %`];
  if (transfer !== undefined && progress < 100) {
    const { receivedBytes, totalBytes, bytesPerSecond, etaSeconds } = transfer;
    parts.push(
      totalBytes === undefined
        ? formatBytes(receivedBytes)
        : `${formatBytes(receivedBytes)} of ${formatBytes(totalBytes)}`,
    );
    if (bytesPerSecond !== undefined) parts.push(`${formatBytes(Math.round(bytesPerSecond))}/s`);
    if (etaSeconds !== undefined) parts.push(`${formatSeconds(etaSeconds)} left`);
  }
  return parts.join('  ');
};

/** Displays progress. */
export interface Screen {
  /** Replaces the line of progress. */
  readonly progress: (line: string) => void;
  /** Prints a permanent line. */
  readonly say: (line: string) => void;
}

export interface DemoTerminal {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

/** On a terminal the line is overwritten; otherwise each change is a new line, at most one per 10 percent. */
export const createScreen = (terminal: DemoTerminal): Screen => {
  let shown = '';
  let step = '';
  const isLive = terminal.isTTY === true;
  return {
    progress: (line) => {
      if (line === shown) return;
      shown = line;
      if (isLive) {
        terminal.write(`\r\x1b[K${line.slice(0, (terminal.columns ?? 80) - 1)}`);
        return;
      }
      const now = stepOf(line);
      if (now !== step) terminal.write(`${line}\n`);
      step = now;
    },
    say: (line) => {
      const end = isLive && shown !== '' ? '\n' : '';
      shown = '';
      terminal.write(`${end}${line}\n`);
    },
  };
};

/** Phase and tens of percent. */
const stepOf = (line: string): string =>
  `${line.split(' ', 1)[0]} ${Math.floor(Number(/(\d+) %/.exec(line)?.[1] ?? 0) / 10)}`;

export const buildDemoImage = (url: string): HyperCloudImage => ({
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachineImage',
  metadata: { name: 'demo', namespace: 'default' },
  spec: { storageClassName: 'local', source: { http: url } },
});

export const readyOf = (status: CommonImageStatus | undefined) =>
  status?.conditions?.find(({ type }) => type === 'Ready');

/** Calls `onStatus` with every observed status; resolves when the image is usable or failed. Throws Unavailable if it is deleted. */
export const followImage = async (
  { kube }: Pick<Cluster, 'kube'>,
  key: ObjectKey,
  onStatus: (status: NonNullable<HyperCloudImage['status']>) => void,
): Promise<NonNullable<HyperCloudImage['status']>> => {
  for (;;) {
    const image = await kube.get(hyperCloudImageKind.type, key);
    if (image === undefined) throw new Unavailable(`image ${key.name} is gone`);
    if (image.status !== undefined) onStatus(image.status);
    const { state } = image.status ?? {};
    if (image.status !== undefined && (state === 'Available' || state === 'Error')) return image.status;
    await sleep(200);
  }
};

/** Path of the disk in a claim's volume on the host. */
export const diskOf = async ({ kube, controllers }: Cluster, claim: ObjectKey): Promise<string> => {
  const { spec } = (await kube.get(persistentVolumeClaims, claim)) ?? {};
  const volume = await kube.get(persistentVolumes, { name: spec?.volumeName ?? 'none' });
  if (volume === undefined || !isOurDriver(driverOf(volume)))
    throw new Unavailable(`claim ${claim.name} has no local volume`);
  const path = controllers.directory.pathOf(handleOf(volume), volumeModeOf(volume.spec));
  return volumeModeOf(volume.spec) === 'Block' ? path : `${path}/disk.img`;
};
