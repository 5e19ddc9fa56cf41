// What a policy does about versions and channels that are deprecated or obsolete: records it, and marks what admission reads. Pure; called by plan.ts.
import type { DeprecationStatus } from '#shared/api/bullion/lifecycle.ts';
import type { HistoryEntry, VersionStatus } from '#shared/api/bullion/golden-image-policy.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { deprecationOfChannel, sentenceOf, stricter, toMark } from '#shared/golden/rollout/deprecation.ts';
import { type Action, patch } from '#shared/populate/actions.ts';
import { hasArrived } from '#shared/resources/data-import-cron/version.ts';
import type { ObservedPolicy, PolicyResource } from '#shared/resources/golden-image-policy/policy.ts';

export const withDeprecation = <T extends { readonly deprecation?: DeprecationStatus | undefined }>(
  status: T,
  deprecation: DeprecationStatus | undefined,
): T => {
  if (deprecation !== undefined) return { ...status, deprecation };
  const { deprecation: _, ...rest } = status;
  return rest as T;
};

const statusOfVersion = (versions: readonly VersionStatus[], name: string): DeprecationStatus | undefined =>
  versions.find((version) => version.name === name)?.deprecation;

/** Of a channel as such, or of the version it has: what is stricter. */
export const channelMark = (
  { ref, object: { spec } }: PolicyResource,
  versions: readonly VersionStatus[],
  { name, version }: { readonly name: string; readonly version: string },
): string | undefined => {
  const own = deprecationOfChannel(spec, name);
  const status = stricter(own, statusOfVersion(versions, version));
  return toMark(ref.name, status === own ? undefined : version, status);
};

const mark = <T extends KubeObject>(
  type: ResourceType<T>,
  object: T | undefined,
  wanted: string | undefined,
): readonly Action[] => {
  const { deprecation } = annotations;
  if (object === undefined || object.metadata.annotations?.[deprecation] === wanted) return [];
  return [patch(type, object, { metadata: { annotations: { [deprecation]: wanted ?? null } } })];
};

/** On every form of each version: disks are made from those as well. */
export const markVersions = (
  { ref }: PolicyResource,
  { crons }: ObservedPolicy,
  statuses: readonly VersionStatus[],
): readonly Action[] =>
  crons.flatMap(({ cron, versions }) =>
    [...versions].flatMap(([name, version]) => {
      if (!hasArrived(cron, name, version)) return [];
      const wanted = toMark(ref.name, name, statusOfVersion(statuses, name));
      return [
        ...mark(persistentVolumeClaims, version.volume, wanted),
        ...mark(volumeSnapshots, version.snapshot, wanted),
      ];
    }),
  );

const entryOf = (
  before: DeprecationStatus | undefined,
  after: DeprecationStatus | undefined,
  about: Pick<HistoryEntry, 'time' | 'channel' | 'to'>,
): readonly HistoryEntry[] => {
  if (before?.state === after?.state) return [];
  if (after === undefined) return [{ ...about, reason: 'Restored', message: 'it is not deprecated any more' }];
  const { state, by } = after;
  const { by: _, ...deprecation } = after;
  return [{ ...about, reason: state, ...(by === undefined ? {} : { by }), message: sentenceOf(deprecation) }];
};

/** What is deprecated, obsolete, or neither any more since the status was written, for the record. */
export const endsOf = (
  { state, object: { spec } }: PolicyResource,
  versions: readonly VersionStatus[],
  time: string,
): readonly HistoryEntry[] => [
  ...versions.flatMap(({ name, deprecation }) =>
    entryOf(statusOfVersion(state.versions, name), deprecation, { time, to: name }),
  ),
  ...spec.channels.flatMap(({ name }) => {
    const before = state.channels.find((channel) => channel.name === name);
    const about = { time, channel: name, to: before?.version ?? 'no version' };
    return entryOf(before?.deprecation, deprecationOfChannel(spec, name), about);
  }),
];
