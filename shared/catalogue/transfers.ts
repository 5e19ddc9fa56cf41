// Transfers as their Jobs tell of them: what moves where and for whom, and what waits for its turn. Pure except for the list.
import { type Job, jobs } from '#shared/api/foreign/core.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { type Found, imageTypes } from '#shared/catalogue/image.ts';
import { type Read, otherTypes, readAll, readOr, withDetail } from '#shared/catalogue/objects.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isFinished, isQueued } from '#shared/populate/job/attempts.ts';

export interface Transfer {
  readonly job: Job;
  readonly namespace: string;
  /** Of what it works for: `<Kind>.<group>`, name and UID. */
  readonly owner: { readonly groupKind: string; readonly name: string; readonly uid: string };
  /** `import`, `export`, or `keep`: a copy that others wait for. */
  readonly role: string;
  /** Host of the source or destination; empty where it has none. */
  readonly host: string;
  readonly isWaiting: boolean;
  /** In the queue, in words; empty if it is not known. */
  readonly place: string;
  /** RFC 3339: when it was started, or created. */
  readonly since: string | undefined;
}

const ownerIn = ({ metadata: { labels: marks = {}, annotations: notes = {} } }: Job): Transfer['owner'] => ({
  groupKind: marks[labels.ownerKind] ?? '',
  name: notes[annotations.ownerName] ?? '',
  uid: marks[labels.ownerUid] ?? '',
});

const readTransfer = (job: Job): Transfer => {
  const { name, namespace = '', annotations: notes = {}, creationTimestamp } = job.metadata;
  const [, role = ''] = /^([a-z]+)-/.exec(name) ?? [];
  return {
    job,
    namespace,
    owner: ownerIn(job),
    role,
    host: notes[annotations.sourceHost] ?? '',
    isWaiting: isQueued(job),
    place: notes[annotations.queuePlace] ?? '',
    since: job.status?.startTime ?? creationTimestamp,
  };
};

/** `after the first 10` comes behind `10 of 14`. */
const numberOf = (place: string): number => Number(/\d+/.exec(place)?.[0] ?? 0) + (place.startsWith('after') ? 0.5 : 0);

/** Those that run first, then by place, then by age. */
const inOrder = (a: Transfer, b: Transfer): number =>
  Number(a.isWaiting) - Number(b.isWaiting) ||
  numberOf(a.place) - numberOf(b.place) ||
  (a.job.metadata.creationTimestamp ?? '').localeCompare(b.job.metadata.creationTimestamp ?? '');

/** Of Jobs that look at a source, send a file to a client or keep a backup nobody asks here. */
const roles = ['import', 'export', 'keep'];

/** Imports (files that clients send among them) and exports, copies included, that run or wait. */
export const listTransfers = async (kube: KubeClient, namespace: string | undefined): Promise<Read<Transfer>> => {
  // Finished ones stay for a day, and may be thousands.
  const where = { namespace, labelSelector: labels.ownerKind, fieldSelector: 'status.successful!=1' };
  const read = await readAll(kube, jobs, where);
  if (read.is !== 'read') return read;
  const going = read.items.filter((job) => !isFinished(job)).map(readTransfer);
  return { is: 'read', items: going.filter(({ role }) => roles.includes(role)).toSorted(inOrder) };
};

/** What it works for; `undefined`: it may not be seen, or is gone. */
export const readOwner = async (
  kube: KubeClient,
  { namespace, owner }: Pick<Transfer, 'namespace' | 'owner'>,
): Promise<Found | undefined> => {
  const type = [...Object.values(imageTypes), ...otherTypes].find(
    ({ kind, group }) => `${kind}.${group}` === owner.groupKind,
  );
  if (type === undefined) return undefined;
  const read = await readOr(async () => [await kube.get(type, { namespace, name: owner.name })]);
  const [image] = read.is === 'read' ? read.items : [];
  return image?.metadata.uid === owner.uid ? { type, image: withDetail(image) } : undefined;
};
