// Why an object is where it is: pure, from what was read of the cluster. The command line prints it, the console shows it.
import type { Found } from '#shared/catalogue/image.ts';
import { isImage, readyOf } from '#shared/catalogue/image.ts';
import type { GoldenImagePolicyStatus } from '#shared/api/bullion/golden-image-policy.ts';
import type { DataImportCronStatus } from '#shared/api/cdi/data-import-cron.ts';
import { type StatusCondition, findCondition } from '#shared/api/conditions.ts';
import type { KubeEvent } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { deprecationOfImage, sentenceOf } from '#shared/golden/rollout/deprecation.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { toAge, toSpan } from '#shared/runtime/age.ts';
import { lookup } from '#shared/runtime/lookup.ts';

export interface Story {
  readonly found: Found;
  readonly children: readonly KubeObject[];
  /** Of the image and of its children. */
  readonly events: readonly KubeEvent[];
}

/** Events shown, the newest. */
const shownEvents = 12;

export type Row = readonly [string, string | undefined];

const inOrAgo = (time: string, now: Date): string => {
  const span = Date.parse(time) - now.getTime();
  return span > 0 ? `in ${toSpan(span)}` : `${toSpan(-span)} ago`;
};

const sinceOf = (found: Found, now: Date): string => {
  const ready = readyOf(found);
  const time = ready === undefined ? undefined : findCondition(found.image.status?.conditions, 'Ready')?.lastUpdateTime;
  return time === undefined ? '' : `, for ${toAge(time, now)}`;
};

const attemptsOf = ({ image: { status = {} } }: Found): string | undefined => {
  const { attempts, attemptsAllowed, attemptsFailed = 0 } = status;
  if (attempts === undefined || attemptsAllowed === undefined) return undefined;
  return `${attempts} of ${attemptsAllowed} begun, ${attemptsFailed} failed`;
};

/** How far the running transfer is, how fast, and when it ends. */
export const paceOf = ({ image: { status = {} } }: Found): string | undefined => {
  const { transfer } = status;
  if (transfer === undefined) return undefined;
  const total = transfer.totalBytes === undefined ? '' : ` of ${formatBytes(transfer.totalBytes)}`;
  const speed = transfer.bytesPerSecond === undefined ? '' : `, ${formatBytes(transfer.bytesPerSecond)}/s`;
  const left = transfer.etaSeconds === undefined ? '' : `, ${toSpan(transfer.etaSeconds * 1000)} left`;
  return `${formatBytes(transfer.receivedBytes)}${total}${speed}${left}`;
};

const transferOf = (found: Found, now: Date): string | undefined => {
  const { transfer } = found.image.status ?? {};
  if (transfer === undefined) return undefined;
  return `${transfer.phase} ${Math.floor(transfer.percent)}%, ${paceOf(found)}, reported ${toAge(transfer.reportedAt, now)} ago`;
};

const sizesOf = ({ image: { status = {} } }: Found): string | undefined => {
  const { size, virtualSize, format, compression } = status;
  if (virtualSize === undefined) return undefined;
  const packed = compression === undefined || compression === 'none' ? '' : ` in ${compression}`;
  const file = size === undefined ? '' : `, ${formatBytes(size)} as published`;
  return `${formatBytes(virtualSize)} disk, ${format ?? 'unknown format'}${packed}${file}`;
};

const spec = 'delete this object and create it again, since its spec cannot be changed';

/** What has to be put right first, by the reason of the failure. Sources, sizes and checksums stay as they were written. */
const remedies: Readonly<Record<string, string>> = {
  ChecksumMismatch: `publish the file that has this checksum (if the checksum is wrong: ${spec})`,
  SourceNotFound: `put the file where the source says (if the source is wrong: ${spec})`,
  ImageTooLarge: `its volume is too small and cannot be enlarged: ${spec}, with a larger size`,
  TargetTooSmall: `its volume is too small and cannot be enlarged: ${spec}, with a larger size`,
  TargetFull: `its volume is too small and cannot be enlarged: ${spec}, with a larger size`,
  NotADiskImage: 'publish a disk image at its source',
  ImageCorrupt: 'publish a good file at its source',
  ImageTruncated: 'publish a good file at its source',
  UnsupportedFormat: 'publish a file in another format at its source',
  SourceForbidden: 'allow access to its source, by credentials or at its server',
  ExternalReference: 'publish a file at its source that refers to no other file',
  VolumeLost: 'find out from Events and from the storage why its volume was lost, or it may be lost again',
};

/** What has to be put right before a retry; `undefined`: it depends on the cause. */
export const remedyFor = (reason: string): string | undefined => lookup(remedies, reason);

/** A claim is reconciled by nobody: what fills it is. */
const isReconciled = ({ type }: Found): boolean => type.kind !== 'PersistentVolumeClaim';

const retryOf = ({ type, image: { metadata } }: Found): string =>
  isImage(type)
    ? `bullion retry ${metadata.name} -n ${metadata.namespace}`
    : `kubectl annotate ${type.plural}.${type.group} ${metadata.name} -n ${metadata.namespace} --overwrite bullion.dev/retry=$(date +%s)`;

const isUploaded = ({ spec = {} }: Found['image']): boolean =>
  ('sourceType' in spec && spec.sourceType === 'upload') ||
  ('source' in spec && Object.hasOwn(spec.source ?? {}, 'upload'));

/** What the user can do next, if anything. */
const adviceOf = (found: Found): string | undefined => {
  const { image } = found;
  if (image.metadata.deletionTimestamp !== undefined) return 'it is being deleted; its children are deleted first';
  const [owner] = image.metadata.ownerReferences ?? [];
  if (!isReconciled(found))
    return owner === undefined
      ? undefined
      : `the object that fills it has more: bullion why ${owner.name} -n ${image.metadata.namespace}`;
  if (image.status === undefined)
    return 'no function has observed it yet: is Bullion running in this cluster (kubectl get pods -n bullion-system)?';
  return image.status.phase === 'Failed' ? remedyOf(found) : undefined;
};

const remedyOf = (found: Found): string => {
  const { image } = found;
  if (isUploaded(image))
    return `upload a file again, which starts it again (bullion upload ${image.metadata.name} <file> -n ${image.metadata.namespace}${isImage(found.type) ? '' : ' --kind datavolume'})`;
  const reason = readyOf(found)?.reason ?? '';
  return `${remedyFor(reason) ?? `fix the cause of ${reason || 'the failure'}, above`}; then: ${retryOf(found)}`;
};

/** Of a backup, of content that changed, of a cron: what Ready does not say. The original's summaries say it in other words. */
const reportedConditions = [
  'MetadataReady',
  'DataReady',
  'RestoreConflict',
  'ContentChanged',
  'UpToDate',
  'Progressing',
  'Deprecated',
];

const otherConditions = (found: Found): readonly Row[] => {
  const shown = readyOf(found)?.message ?? '';
  const tells = ({ type, message = '' }: StatusCondition): boolean =>
    reportedConditions.includes(type) && message !== '' && message !== shown;
  return (found.image.status?.conditions ?? [])
    .filter(tells)
    .map(({ type, status, reason, message }): Row => [type, `${status}, ${reason}: ${message}`]);
};

/** Of a policy: what each channel has, and why not the next version; which versions are at their end. */
const channelsOf = ({ image: { status } }: Found): readonly Row[] => {
  const { channels = [], versions = [] } = (status ?? {}) as GoldenImagePolicyStatus;
  const ends = versions.flatMap(({ name, state, deprecation }): readonly Row[] =>
    deprecation === undefined || state === 'Gone' ? [] : [[`Version ${name}`, sentenceOf(deprecation)]],
  );
  return [
    ...channels.map(({ name, version, reason, message, deprecation }): Row => [
      `Channel ${name}`,
      `${version ?? 'nothing'}, ${reason}: ${message}${deprecation === undefined ? '' : `; the channel is ${sentenceOf(deprecation)}`}`,
    ]),
    ...ends,
  ];
};

/** Of a cron: versions that somebody deleted, and that can be brought back. */
const deletedOf = ({ image: { metadata, status } }: Found, now: Date): readonly Row[] => {
  const { deleted = [] } = (status ?? {}) as DataImportCronStatus;
  return deleted.map(({ name, time, until, bytes = 0 }): Row => {
    const free = `its ${formatBytes(bytes)} are freed ${inOrAgo(until, now)}`;
    const text = `${name}, ${inOrAgo(time, now)}; ${free} (bullion undelete ${name} -n ${metadata.namespace})`;
    return ['Deleted', text];
  });
};

const stateOf = (found: Found, now: Date): string => {
  const { status } = found.image;
  const ready = readyOf(found)?.reason;
  // Kinds such as crons have conditions in place of a phase.
  const phase = status?.phase ?? (status === undefined || ready === undefined ? 'unobserved' : undefined);
  const reason = ready ?? (isReconciled(found) ? 'no reason yet' : '');
  const words = [phase, reason === '' || reason === phase ? undefined : reason];
  return `${words.filter((word) => word !== undefined).join(', ')}${sinceOf(found, now)}`;
};

/** Where Ready does not say it. */
const lastFaultOf = (found: Found): string | undefined => {
  const fault = found.image.status?.lastFailure;
  const isStated = readyOf(found)?.message?.includes(fault?.message ?? '') === true;
  return fault === undefined || isStated ? undefined : `${fault.reason}: ${fault.message}`;
};

/** Of what a policy has, conditions say it. */
const endOfImage = ({ type, image }: Found): string | undefined => {
  const deprecation = isImage(type) ? deprecationOfImage(image) : undefined;
  return deprecation && sentenceOf(deprecation, 'image');
};

export const summaryOf = (found: Found, now: Date): readonly Row[] => {
  const { image } = found;
  const { status = {} } = image;
  return [
    ['State', stateOf(found, now)],
    ['Says', readyOf(found)?.message],
    ['Disk', sizesOf(found)],
    ['Class', status.storageClassName],
    ['Served from', status.servedFrom],
    ['Attempts', attemptsOf(found)],
    ['Transfer', transferOf(found, now)],
    ['Last fault', lastFaultOf(found)],
    ['Next try', status.nextAttemptTime && inOrAgo(status.nextAttemptTime, now)],
    ['Gives up', status.deadline && `${inOrAgo(status.deadline, now)} (${status.deadline})`],
    ['Deprecated', endOfImage(found)],
    ...channelsOf(found),
    ...deletedOf(found, now),
    ...otherConditions(found),
    ['To do', adviceOf(found)],
  ];
};

/** As kubectl abbreviates them, so that a name made of a UID fits beside. */
const shortKinds: Readonly<Record<string, string>> = {
  PersistentVolumeClaim: 'pvc',
  DataVolume: 'dv',
  StorageClass: 'sc',
};

export const refOf = (kind = '', name = ''): string => `${lookup(shortKinds, kind) ?? kind.toLowerCase()}/${name}`;

export const childRow = (child: KubeObject, now: Date): readonly string[] => [
  refOf(child.kind, child.metadata.name),
  stateOfChild(child),
  toAge(child.metadata.creationTimestamp, now),
];

/** The word of its own status that says most. */
const stateOfChild = (child: KubeObject): string => {
  if (child.metadata.deletionTimestamp !== undefined) return 'Terminating';
  const { status } = child as KubeObject & { readonly status?: Readonly<Record<string, unknown>> };
  const { phase, readyToUse, diskFileStatusMap: copies } = status ?? {};
  if (typeof phase === 'string') return phase;
  if (copies !== undefined) return statesOfCopies(copies);
  if (typeof readyToUse === 'boolean') return readyToUse ? 'Ready' : 'NotReady';
  return child.kind === 'Job' ? stateOfJob(status ?? {}) : readinessOf(status ?? {});
};

/** Of kinds that have conditions in place of a phase. */
const readinessOf = ({ conditions }: { readonly conditions?: readonly StatusCondition[] }): string => {
  const ready = findCondition(conditions, 'Ready');
  if (ready === undefined) return '-';
  return ready.status === 'True' ? 'Ready' : (ready.reason ?? 'NotReady');
};

const stateOfJob = ({ succeeded, failed, active }: Readonly<Record<string, unknown>>): string => {
  if (succeeded === 1) return 'Succeeded';
  if (typeof active === 'number' && active > 0) return 'Running';
  return typeof failed === 'number' && failed > 0 ? `Failed ${failed}` : 'Pending';
};

/** Longhorn's, disk by disk. */
const statesOfCopies = (copies: unknown): string => {
  const each = Object.values((copies ?? {}) as Readonly<Record<string, { readonly state?: string } | null>>);
  return [...new Set(each.map((copy) => copy?.state ?? 'unknown'))].join(', ') || '-';
};

export const timeOf = ({ lastTimestamp, metadata }: KubeEvent): string =>
  lastTimestamp ?? metadata.creationTimestamp ?? '';

/** Of what is usable nobody asks why it was slow to start. */
export const shownOf = ({ found, events }: Story, hasAll: boolean): readonly KubeEvent[] => {
  const sorted = events.toSorted((a, b) => timeOf(a).localeCompare(timeOf(b)));
  if (hasAll) return sorted;
  const ready = readyOf(found);
  const since = ready?.status === 'True' ? (ready.lastTransitionTime ?? '') : '';
  return sorted.filter((event) => event.type !== 'Warning' || timeOf(event) >= since).slice(-shownEvents);
};

/** Whether somebody asked for a retry that no function has acted on yet. */
export const isRetryAsked = ({ image: { metadata, status } }: Found): boolean => {
  const asked = metadata.annotations?.[annotations.retry];
  return asked !== undefined && asked !== status?.retryHandled;
};
