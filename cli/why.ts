// One screen that answers "why is this image where it is": pure, from what was read of the cluster.
import type { Found } from '#cli/image.ts';
import { groupOf, readyOf } from '#cli/image.ts';
import { alignColumns, tableOf } from '#cli/output.ts';
import { findCondition } from '#shared/api/conditions.ts';
import type { KubeEvent } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { toAge, toSpan } from '#shared/runtime/age.ts';

export interface Story {
  readonly found: Found;
  readonly children: readonly KubeObject[];
  /** Of the image and of its children. */
  readonly events: readonly KubeEvent[];
}

/** Events shown, the newest. */
const shownEvents = 12;

type Row = readonly [string, string | undefined];

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

const transferOf = ({ image: { status = {} } }: Found, now: Date): string | undefined => {
  const { transfer } = status;
  if (transfer === undefined) return undefined;
  const total = transfer.totalBytes === undefined ? '' : ` of ${formatBytes(transfer.totalBytes)}`;
  const speed = transfer.bytesPerSecond === undefined ? '' : `, ${formatBytes(transfer.bytesPerSecond)}/s`;
  const left = transfer.etaSeconds === undefined ? '' : `, ${toSpan(transfer.etaSeconds * 1000)} left`;
  const told = `, told ${toAge(transfer.reportedAt, now)} ago`;
  return `${transfer.phase} ${Math.floor(transfer.percent)}%, ${formatBytes(transfer.receivedBytes)}${total}${speed}${left}${told}`;
};

const sizesOf = ({ image: { status = {} } }: Found): string | undefined => {
  const { size, virtualSize, format, compression } = status;
  if (virtualSize === undefined) return undefined;
  const packed = compression === undefined || compression === 'none' ? '' : ` in ${compression}`;
  const file = size === undefined ? '' : `, ${formatBytes(size)} as published`;
  return `${formatBytes(virtualSize)} disk, ${format ?? 'unknown format'}${packed}${file}`;
};

/** What the user can do next, if anything. */
const adviceOf = ({ image }: Found): string | undefined => {
  if (image.metadata.deletionTimestamp !== undefined) return 'it is being deleted; its children go first';
  if (image.status === undefined)
    return 'no function has observed it yet: is Bullion running in this cluster (kubectl get pods -n bullion-system)?';
  if (image.status.phase === 'Failed') return `remove the cause, then: bullion retry ${image.metadata.name}`;
  return undefined;
};

const summaryOf = (found: Found, now: Date): readonly Row[] => {
  const { image } = found;
  const { status = {} } = image;
  const failure = status.lastFailure;
  return [
    ['State', `${status.phase ?? 'unobserved'}, ${readyOf(found)?.reason ?? 'no reason yet'}${sinceOf(found, now)}`],
    ['Says', readyOf(found)?.message],
    ['Disk', sizesOf(found)],
    ['Class', status.storageClassName],
    ['Attempts', attemptsOf(found)],
    ['Transfer', transferOf(found, now)],
    ['Last fault', failure && `${failure.reason}: ${failure.message}`],
    ['Next try', status.nextAttemptTime && inOrAgo(status.nextAttemptTime, now)],
    ['Gives up', status.deadline && `${inOrAgo(status.deadline, now)} (${status.deadline})`],
    ['To do', adviceOf(found)],
  ];
};

const childRow = (child: KubeObject, now: Date): readonly string[] => [
  child.kind,
  child.metadata.name,
  stateOfChild(child),
  toAge(child.metadata.creationTimestamp, now),
];

/** The word of its own status that says most. */
const stateOfChild = (child: KubeObject): string => {
  if (child.metadata.deletionTimestamp !== undefined) return 'Terminating';
  const { status = {} } = child as KubeObject & { readonly status?: Readonly<Record<string, unknown>> };
  const { phase, readyToUse, succeeded, failed, active } = status;
  if (typeof phase === 'string') return phase;
  if (typeof readyToUse === 'boolean') return readyToUse ? 'Ready' : 'NotReady';
  if (succeeded === 1) return 'Succeeded';
  if (typeof active === 'number' && active > 0) return 'Running';
  return typeof failed === 'number' && failed > 0 ? `Failed ${failed}` : 'Pending';
};

const timeOf = ({ lastTimestamp, metadata }: KubeEvent): string => lastTimestamp ?? metadata.creationTimestamp ?? '';

const eventRows = (events: readonly KubeEvent[], now: Date, most: number) =>
  events
    .toSorted((a, b) => timeOf(a).localeCompare(timeOf(b)))
    .slice(-most)
    .map((event) => [
      `${toAge(timeOf(event), now)}${(event.count ?? 1) > 1 ? ` (x${event.count})` : ''}`,
      event.type ?? 'Normal',
      event.reason ?? '',
      `${event.involvedObject.kind?.toLowerCase()}/${event.involvedObject.name}`,
      event.message ?? '',
    ]);

export const tellStory = (
  { found, children, events }: Story,
  now: Date,
  { hasAllEvents = false }: { readonly hasAllEvents?: boolean } = {},
): string => {
  const most = hasAllEvents ? Number.POSITIVE_INFINITY : shownEvents;
  const { image } = found;
  const name = `${image.metadata.namespace}/${image.metadata.name}`;
  const heading = `Image ${name} (${groupOf(found)}), made ${toAge(image.metadata.creationTimestamp, now)} ago\n`;
  const rows = summaryOf(found, now).filter((row): row is [string, string] => (row[1] ?? '') !== '');
  const summary = alignColumns(rows.map(([word, text]) => [`  ${word}`, text]));
  const retried = image.metadata.annotations?.[annotations.retry];
  const unobserved = retried !== undefined && retried !== image.status?.retryHandled ? '  a retry was asked for\n' : '';
  const made = children.map((child) => childRow(child, now));
  return [
    heading,
    `${summary.join('\n')}\n`,
    unobserved,
    made.length === 0 ? '\nNothing was made for it yet.\n' : `\n${tableOf(['CHILD', 'NAME', 'STATE', 'AGE'], made)}`,
    events.length === 0
      ? '\nNo events in the last hour.\n'
      : `\n${tableOf(['EVENT', 'TYPE', 'REASON', 'OBJECT', 'MESSAGE'], eventRows(events, now, most))}`,
  ].join('');
};
