// How far one version has come, and what name the next one has. Pure.
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { labels } from '#shared/api/names.ts';
import { groupKindOf, ownerOf } from '#shared/api/object.ts';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { isValidator, placedName, shortDigest, versionName } from '#shared/golden/version.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { populationOf } from '#shared/populate/population.ts';
import type { CronResource, ObservedCron, ObservedVersion } from '#shared/resources/data-import-cron/cron.ts';
import { snapshotClassFor } from '#shared/resources/data-import-cron/snapshot.ts';
import { classNameOf } from '#shared/resources/data-import-cron/template.ts';

const isThere = (object: { readonly metadata: { readonly deletionTimestamp?: string } } | undefined): boolean =>
  object !== undefined && object.metadata.deletionTimestamp === undefined;

/** What is left of an import that was removed goes with it, and may hold half an image. */
const isLeftOver = ({ metadata }: PersistentVolumeClaim): boolean =>
  metadata.ownerReferences?.some(({ kind }) => kind === dataVolumes.kind) ?? false;

/** Nothing but the volume of an import that was removed: the garbage collector takes it. */
export const isGoing = ({ dataVolume, volume, snapshot }: ObservedVersion): boolean =>
  dataVolume === undefined && snapshot === undefined && volume !== undefined && isLeftOver(volume);

/** A volume without an import was imported before, or put there by somebody who labelled it. */
const isFilled = (volume: PersistentVolumeClaim): boolean => {
  const isOurs = volume.metadata.labels?.[labels.ownerUid] !== undefined;
  return volume.status?.phase === 'Bound' && !isLeftOver(volume) && (!isOurs || populationOf(volume) !== undefined);
};

/** Its volume holds the image. */
export const hasVolume = ({ dataVolume, volume }: ObservedVersion): boolean => {
  if (volume === undefined || !isThere(volume) || volume.status?.phase === 'Lost') return false;
  return dataVolume === undefined ? isFilled(volume) : dataVolume.status?.phase === 'Succeeded';
};

export const hasSnapshot = ({ snapshot }: ObservedVersion): boolean =>
  isThere(snapshot) && snapshot?.status?.readyToUse === true;

/** It can be offered in one form or the other. */
export const isUsable = (version: ObservedVersion): boolean => hasVolume(version) || hasSnapshot(version);

/** Provisioned size of what holds the bytes. */
export const bytesOf = ({ volume, snapshot }: ObservedVersion): number =>
  (parseQuantity(volume?.status?.capacity?.['storage'] ?? '') ?? 0) +
  (volume === undefined ? (parseQuantity(snapshot?.status?.restoreSize ?? '') ?? 0) : 0);

/** When it was last what the cron offered; `undefined`: it never was, or nobody noted it. */
export const notedUse = ({ volume, snapshot, dataVolume }: ObservedVersion): string | undefined =>
  [volume, snapshot, dataVolume]
    .map((form) => form?.metadata.annotations?.[cdiAnnotations.lastUseTime])
    .find((time) => time !== undefined);

/** The cron was done with it at some time. What is on its way to a name of its own never was. */
export const hasArrived = ({ state }: CronResource, name: string, version: ObservedVersion): boolean =>
  isUsable(version) && (state.offered === name || notedUse(version) !== undefined);

export const classOf = ({ volume, dataVolume }: ObservedVersion): string | undefined => {
  if (volume !== undefined) return volume.spec.storageClassName;
  const asked = (dataVolume?.spec.storage ?? dataVolume?.spec.pvc)?.['storageClassName'];
  return typeof asked === 'string' ? asked : undefined;
};

/** Where a version lies: its volume says so, or the cron noted it for the one in use. */
const placeOf = (cron: CronResource, name: string, version: ObservedVersion): string | undefined =>
  classOf(version) ??
  (cron.state.offered === name ? cron.object.metadata.annotations?.[cdiAnnotations.storageClass] : undefined);

interface Places {
  /** Whether a version of this name is usable, and lies somewhere else than it should. */
  readonly isElsewhere: (name: string) => boolean;
  /** The name it has where its plain one is taken by the same bytes elsewhere. */
  readonly placed: (name: string) => string;
}

const placesFor = (cron: CronResource, observed: ObservedCron): Places => {
  const wanted = classNameOf(cron) === undefined ? observed.storageClass?.metadata.name : undefined;
  const snapshotClass = snapshotClassFor(observed);
  const isElsewhere = (name: string): boolean => {
    const version = observed.versions.get(name);
    if (version === undefined || !isUsable(version)) return false;
    return isOther(placeOf(cron, name, version), wanted) || isOther(snapshotClassOf(version), snapshotClass);
  };
  const place = [wanted ?? observed.storageClass?.metadata.name, snapshotClass].filter((name) => name !== undefined);
  return { isElsewhere, placed: (name) => (isElsewhere(name) ? placedName(name, place.join(' ')) : name) };
};

/**
 * The name of the version to have. A usable version in another class than the default one, or of another snapshot class, keeps its name and
 * its users until the same bytes are ready where they belong, under a name of their own.
 */
export const targetName = (cron: CronResource, observed: ObservedCron): string => {
  const plain = cron.targets.at(-1) ?? '';
  const present = cron.targets[0] ?? plain;
  const { isElsewhere, placed } = placesFor(cron, observed);
  if (!isValidator(cron.digest)) return isElsewhere(present) ? placed(plain) : present;
  // Until the file was fetched it has a provisional name, and then that of its digest.
  if (present !== plain && observed.versions.has(present) && !isElsewhere(present)) return present;
  const verified = isElsewhere(plain) ? undefined : verifiedDigest(observed.versions.get(plain));
  return placed(verified === undefined ? plain : versionOf(cron, verified));
};

/** What the bytes turned out to be; `undefined` while they are not there, or where nobody counted them. */
export const verifiedDigest = (version: ObservedVersion | undefined): string | undefined => {
  if (version === undefined || !isUsable(version)) return undefined;
  const sha256 = populationOf(version.volume ?? version.snapshot)?.digests['sha256'];
  return sha256 === undefined ? undefined : `sha256:${sha256}`;
};

/** Images of a registry are imported by the digest of their manifest, which is not that of the disk. */
export const pinnedDigest = ({ dataVolume }: ObservedVersion): string | undefined =>
  /@(sha256:[0-9a-f]{64})$/.exec(dataVolume?.spec.source?.registry?.url ?? '')?.[1];

/** Who is not the cron, and made what is there. */
const strangerIn = ({ ref }: CronResource, version: ObservedVersion): string | undefined => {
  const { dataVolume, snapshot } = version;
  const volume = hasVolume(version) ? version.volume : undefined;
  const made = dataVolume ?? volume ?? snapshot;
  if (made === undefined) return undefined;
  const owner = ownerOf(made);
  // A volume belongs to its import; without that, nobody knows what it was made from.
  const isOwn = made !== volume && owner?.groupKind === groupKindOf(ref) && owner.name === ref.name;
  if (!isOwn) return `${made.kind} ${made.metadata.name} was not made by DataImportCron ${ref.name}`;
  return volume === undefined || populationOf(volume) !== undefined
    ? undefined
    : `PersistentVolumeClaim ${volume.metadata.name} was not filled by DataVolume ${made.metadata.name}`;
};

/**
 * What shows that a version was not imported by its cron, or holds something else than `digest`; `undefined`: nothing. Whoever may write volumes in the
 * namespace can make one of that name with the label of the cron; marks of ours they cannot write.
 */
export const impostorIn = (cron: CronResource, version: ObservedVersion, digest: string): string | undefined => {
  const stranger = strangerIn(cron, version);
  if (stranger !== undefined || !digest.startsWith('sha256:')) return stranger;
  const held = pinnedDigest(version) ?? (cron.source?.type === 'registry' ? undefined : verifiedDigest(version));
  return held === undefined || held === digest ? undefined : `it holds ${held}, not ${digest}`;
};

/** Every name that the version asked for may come to have, as far as that is known. */
export const possibleNames = (cron: CronResource, versions: ObservedCron['versions']): readonly string[] => {
  const verified = isValidator(cron.digest) ? verifiedDigest(versions.get(cron.targets.at(-1) ?? '')) : undefined;
  return verified === undefined ? cron.targets : [...cron.targets, versionOf(cron, verified)];
};

const versionOf = ({ dataSource, targets }: CronResource, digest: string): string => {
  const short = shortDigest(digest);
  return 'value' in short ? versionName(dataSource, short.value) : (targets.at(-1) ?? '');
};

const isOther = (place: string | undefined, wanted: string | undefined): boolean =>
  wanted !== undefined && place !== undefined && place !== '' && place !== wanted;

/** Of a version that is a snapshot and nothing else: one with a volume can be snapshotted anew. */
const snapshotClassOf = (version: ObservedVersion): string | undefined =>
  hasVolume(version) ? undefined : version.snapshot?.spec.volumeSnapshotClassName;
