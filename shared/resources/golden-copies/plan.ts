// Which golden copies are to be made ahead, and which go. Pure; called by sync.ts with what the listings of a tick came across.
import type { GoldenImagePolicy } from '#shared/api/bullion/golden-image-policy.ts';
import type { DataImportCronStatus } from '#shared/api/cdi/data-import-cron.ts';
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import type { StorageClass } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type CopyRule, copyRuleOf, leastUnusedFor, usualUnusedFor } from '#shared/golden/copies.ts';
import { copyRecordOf, isStuck, lastUseOfCopy } from '#shared/populate/volume/golden-copy.ts';
import { isLocked } from '#shared/resources/protected/golden.ts';

/** What matters of a cron: a tick comes across all of them before it knows their policies. */
export interface ListedCron extends KubeObject {
  readonly status?: Pick<DataImportCronStatus, 'lastImportedPVC' | 'lastImportTimestamp'> | undefined;
}

export interface ListedCopies {
  readonly copies: readonly DataVolume[];
  readonly crons: readonly ListedCron[];
  readonly policies: readonly GoldenImagePolicy[];
}

interface Around {
  readonly classes: readonly StorageClass[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface WantedCopy {
  readonly cron: ListedCron;
  readonly version: string;
  readonly storageClass: StorageClass | undefined;
  readonly className: string;
}

export interface UnwantedCopy {
  readonly copy: DataVolume;
  readonly why: string;
}

const versionOf = ({ spec: { source } }: DataVolume): string => (source?.pvc ?? source?.snapshot)?.name ?? '';
const classNameOf = ({ spec: { storage } }: DataVolume): string => storage?.storageClassName ?? '';

interface Ruled {
  readonly cron: ListedCron;
  readonly rule: CopyRule;
  /** Versions that disks are or will be made from. */
  readonly versions: readonly string[];
}

/** The newest one, also while its policy still checks it: it is there before a channel takes it. */
const versionsFor = (
  { metadata, status }: ListedCron,
  rule: CopyRule,
  policies: readonly GoldenImagePolicy[],
): readonly string[] => {
  const known = policies
    .flatMap((policy) => policy.status?.versions ?? [])
    .filter(({ name, cron }) => cron === metadata.name && rule.isInChannel(name));
  const names = [status?.lastImportedPVC?.name, ...known.map(({ name }) => name)];
  return [...new Set(names)].filter((name) => name !== undefined && !rule.isBad(name)) as readonly string[];
};

const ruledOf = ({ crons, policies }: ListedCopies): ReadonlyMap<string, Ruled> => {
  const byNamespace = Map.groupBy(policies, ({ metadata }) => metadata.namespace);
  return new Map(
    crons.map((cron) => {
      const own = byNamespace.get(cron.metadata.namespace) ?? [];
      const rule = copyRuleOf(cron, own);
      return [keyOf(cron.metadata), { cron, rule, versions: versionsFor(cron, rule, own) }];
    }),
  );
};

const keyOf = ({ namespace, name }: { readonly namespace?: string | undefined; readonly name: string }): string =>
  `${namespace}/${name}`;

/** Whether disks are expected that no disk has been made for yet. */
const isPrewarmed = (copy: DataVolume, { rule, versions }: Ruled): boolean =>
  versions.includes(versionOf(copy)) && rule.prewarm.includes(classNameOf(copy));

/** What is wrong with a copy, whoever uses it. */
const faultOf = (copy: DataVolume, { rule }: Partial<Ruled>, { classes, now }: Around): string | undefined => {
  const { classUid } = copyRecordOf(copy) ?? {};
  if (!classes.some(({ metadata }) => metadata.uid === classUid)) return `class ${classNameOf(copy)} is gone`;
  if (rule?.isBad(versionOf(copy)) === true) return `${versionOf(copy)} is marked as bad`;
  return isStuck(copy, now) ? 'it could not be made, and is made again when it is needed' : undefined;
};

/** Why a copy goes; `undefined`: it stays. Its cron may be gone. */
const removalReason = (copy: DataVolume, ruled: Ruled | undefined, around: Around): string | undefined => {
  const unusedFor = around.now - Date.parse(lastUseOfCopy(copy));
  // A disk may be on its way from it.
  if (copyRecordOf(copy) === undefined || isLocked(copy) || unusedFor < leastUnusedFor) return undefined;
  const fault = faultOf(copy, ruled ?? {}, around);
  if (fault !== undefined || (ruled !== undefined && isPrewarmed(copy, ruled))) return fault;
  return unusedFor < (ruled?.rule.unusedFor ?? usualUnusedFor) ? undefined : 'no disk was made from it for long enough';
};

const minute = 60_000;
const freshMs = 15 * minute;

/** A copy that is missing is looked at each minute after an import, and every ten minutes later: it may be useless, which takes requests to find out. */
const isTurn = ({ status }: ListedCron, now: number): boolean =>
  !(now - Date.parse(status?.lastImportTimestamp ?? '') > freshMs) || Math.floor(now / minute) % 10 === 0;

export const planCopies = (
  listed: ListedCopies,
  around: Around,
): { readonly wanted: readonly WantedCopy[]; readonly unwanted: readonly UnwantedCopy[] } => {
  const { classes, now } = around;
  const ruled = ruledOf(listed);
  const live = listed.copies.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const there = new Set(
    listed.copies.map((copy) => `${copy.metadata.namespace}/${versionOf(copy)} ${classNameOf(copy)}`),
  );
  const due = [...ruled.values()].filter(({ cron }) => isTurn(cron, now));
  const wanted = due.flatMap(({ cron, rule, versions }) =>
    versions.flatMap((version) =>
      rule.prewarm
        .filter((className) => !there.has(`${cron.metadata.namespace}/${version} ${className}`))
        .map((className) => ({
          cron,
          version,
          className,
          storageClass: classes.find(({ metadata }) => metadata.name === className),
        })),
    ),
  );
  const unwanted = live.flatMap((copy) => {
    const { namespace } = copy.metadata;
    const why = removalReason(copy, ruled.get(`${namespace}/${copyRecordOf(copy)?.cron}`), around);
    return why === undefined ? [] : [{ copy, why }];
  });
  return { wanted, unwanted };
};
