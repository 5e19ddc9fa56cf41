// What is noted on a version in use, on its volume and its snapshot: one write for each, since the second of two would find the object changed by the first.
// Pure; called by using.ts.
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { type Action, patch } from '#shared/backends/actions.ts';
import type { ObservedVersion } from '#shared/resources/data-import-cron/observed.ts';
import { restoreSizeMark } from '#shared/resources/data-import-cron/snapshot.ts';
import type { SourceFormat } from '#shared/resources/data-import-cron/subject.ts';
import { askedMark } from '#shared/resources/data-import-cron/verified.ts';
import type { Work } from '#shared/resources/data-import-cron/work.ts';

type Texts = Readonly<Record<string, string>>;

interface Marks {
  readonly labels?: Texts;
  readonly annotations?: Texts;
}

const lacks = (found: Texts = {}, wanted: Texts = {}): boolean =>
  Object.entries(wanted).some(([name, value]) => found[name] !== value);

const mark = <T extends KubeObject>(type: ResourceType<T>, object: T | undefined, marks: Marks): readonly Action[] => {
  if (object === undefined) return [];
  const { labels, annotations } = object.metadata;
  return lacks(labels, marks.labels) || lacks(annotations, marks.annotations)
    ? [patch(type, object, { metadata: marks })]
    : [];
};

/** When it was last what the cron offered, in milliseconds, so that successive versions stay in order. `now`: milliseconds since the epoch. */
const useMark = (now: number): Texts => ({ [cdiAnnotations.lastUseTime]: new Date(now).toISOString() });

export const markLastUse = (
  { volume, snapshot }: ObservedVersion,
  format: SourceFormat,
  now: number,
): readonly Action[] =>
  format === 'snapshot'
    ? mark(volumeSnapshots, snapshot, { annotations: useMark(now) })
    : mark(persistentVolumeClaims, volume, { annotations: useMark(now) });

/** `isNew`: it comes into use now. */
export const markUsed = (
  { cron, observed, version, context }: Work,
  format: SourceFormat,
  isNew: boolean,
): readonly Action[] => {
  const labels = askedMark(cron, observed, version);
  const used = (form: SourceFormat): Texts => (isNew && form === format ? useMark(context.now) : {});
  const size = format === 'snapshot' ? restoreSizeMark(cron, version) : {};
  return [
    ...mark(persistentVolumeClaims, version.volume, { labels, annotations: used('pvc') }),
    ...mark(volumeSnapshots, version.snapshot, { labels, annotations: { ...used('snapshot'), ...size } }),
  ];
};
