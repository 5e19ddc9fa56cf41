// Golden copies: where the storage cannot clone a version of a golden image into the class of a disk, the version is copied into that class once, by a
// DataVolume beside it, and disks are cloned from the copy. Its name follows from the version, the class and the volume mode, so that it is found again and
// several disks make one. A disk waits for a copy that is on its way; one that cannot be made holds up nobody: the disk is then copied by a Job of its
// own. Pure: the copy itself; golden-copy-use.ts decides whether it is used, and golden-copy-observed.ts reads it.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import type { StorageProfile } from '#shared/api/cdi/storage-profile.ts';
import {
  type PersistentVolumeClaim,
  type StorageClass,
  type VolumeMode,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import { annotations, labels, unguardedNamespaces } from '#shared/api/names.ts';
import { apiVersionOf, type Owner, refOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';
import type { ReadyOrigin } from '#shared/populate/clone/origin.ts';
import { holderOf } from '#shared/populate/singleflight/singleflight.ts';
import { isoTime } from '#shared/populate/state.ts';
import { claimProfileOf, claimSetsOf, completeClaim } from '#shared/populate/storage/profile.ts';

/** The claim or snapshot of a version, which owns its copies. */
export type Original = PersistentVolumeClaim | VolumeSnapshot;

/** `make`: a copy may be made and used; `use`: an existing one may be used; `never`: not even that, as of a version that is marked as bad. */
export type CopyRight = 'make' | 'use' | 'never';

/** What the owners of a golden image allow, for a version and the name of a class. */
export type ReadCopyRight = (kube: KubeClient, original: Original, className: string) => Promise<CopyRight>;

export interface ObservedCopy {
  readonly original: Original;
  readonly right: CopyRight;
  /** The copy, complete or not. */
  readonly dataVolume?: DataVolume | undefined;
  /** The copy as a source, once it can be cloned. */
  readonly origin?: ReadyOrigin | undefined;
  readonly snapshotClass?: string | undefined;
}

/**
 * Only versions of crons are copied: nothing writes to them, and their rules are known. A claim that somebody else filled and labelled may be written to.
 * Marks are trusted only where admission guards them.
 */
export const originalOf = ({ claim, restored, clone, population }: ReadyOrigin): Original | undefined => {
  const original = claim ?? restored;
  const { labels: found = {}, namespace = '' } = original?.metadata ?? {};
  const isOurs = claim === undefined || population !== undefined;
  const isVersion = isOurs && found[cdiLabels.cron] !== undefined && clone.holdsFiles !== true;
  return isVersion && !(unguardedNamespaces as readonly string[]).includes(namespace) ? original : undefined;
};

/** Where a copy is or would be. */
export interface CopyPlace {
  readonly storageClass: StorageClass;
  readonly volumeMode: VolumeMode;
}

/** Includes the UIDs: a class or a version that was created again under its name is another one. */
export const copyNameOf = ({ metadata }: Original, { storageClass, volumeMode }: CopyPlace): string => {
  const text = `${metadata.uid} ${storageClass.metadata.name} ${storageClass.metadata.uid} ${volumeMode}`;
  return `${metadata.name.slice(0, 50)}-${createHash('sha256').update(text).digest('hex').slice(0, 12)}`;
};

const CopyRecord = z.object({
  cron: z.string(),
  classUid: z.string(),
  /** What the first disk was made from: disks with that source are reconciled once the copy is complete. */
  wakes: z.object({ groupKind: z.string(), namespace: z.string(), name: z.string() }).optional(),
});
export type CopyRecord = z.infer<typeof CopyRecord>;

/** `undefined`: it is no golden copy. */
export const copyRecordOf = ({ metadata }: Pick<DataVolume, 'metadata'>): CopyRecord | undefined => {
  if (metadata.labels?.[labels.copyOf] === undefined) return undefined;
  return parseJsonAs(CopyRecord, metadata.annotations?.[annotations.goldenCopy]);
};

/** The volume mode of a copy that no disk asked for: that of the version if the class has it, as disks of the class have it. */
export const usualModeOf = (
  { clone }: ReadyOrigin,
  { storageClass, profile }: { readonly storageClass: StorageClass; readonly profile: StorageProfile | undefined },
): VolumeMode =>
  completeClaim(claimSetsOf(storageClass, profile), { volumeMode: clone.volumeMode })?.volumeMode ??
  claimProfileOf(storageClass, profile?.spec).volumeMode;

export interface Copying extends CopyPlace {
  readonly profile: StorageProfile | undefined;
  readonly wakes?: Omit<Owner, 'uid'> | undefined;
}

/** Owned by the version: it goes with it, and is not the version's cron's. */
export const buildCopy = (original: Original, { storageClass, profile, volumeMode, wakes }: Copying): DataVolume => {
  const { namespace = '', name, labels: found = {} } = original.metadata;
  const { uid: classUid = '', name: storageClassName } = storageClass.metadata;
  const record: CopyRecord = { cron: found[cdiLabels.cron] ?? '', classUid, ...(wakes && { wakes }) };
  const isClaim = original.kind === persistentVolumeClaims.kind;
  return {
    apiVersion: apiVersionOf(dataVolumes),
    kind: dataVolumes.kind,
    metadata: {
      namespace,
      name: copyNameOf(original, { storageClass, volumeMode }),
      labels: { 'app.kubernetes.io/managed-by': 'bullion', [labels.copyOf]: original.metadata.uid ?? '' },
      annotations: {
        [annotations.goldenCopy]: JSON.stringify(record),
        // Nobody consumes it.
        [cdiAnnotations.immediateBinding]: 'true',
      },
      ownerReferences: [holderOf(refOf(original))],
    },
    spec: {
      source: { [isClaim ? 'pvc' : 'snapshot']: { namespace, name } },
      storage: {
        storageClassName,
        volumeMode,
        accessModes: [...claimProfileOf(storageClass, profile?.spec).accessModes],
      },
    },
  };
};

const notStartedMs = 120_000;

/** It holds no bytes and will have none: refused by a quota or a limit, or failed. */
export const isStuck = ({ metadata, status = {} }: DataVolume, now: number): boolean =>
  status.phase === 'Failed' ||
  (status.claimName === undefined && now - Date.parse(metadata.creationTimestamp ?? '') > notStartedMs);

/** RFC 3339: when a disk was made from it, at least to the hour. */
export const lastUseOfCopy = ({ metadata }: DataVolume): string =>
  metadata.annotations?.[cdiAnnotations.lastUseTime] ?? metadata.creationTimestamp ?? isoTime(0);
