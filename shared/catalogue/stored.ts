// What is stored of images: each version, image and copy once, with its size, its disks, and what keeps it. Pure; read by inventory.ts.
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import type { PersistentVolumeClaim, StorageClass } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import { deletedOwner, labels } from '#shared/api/names.ts';
import { type KubeObject, ownerOf } from '#shared/api/object.ts';
import { createFindDisks, type Disks, type FindDisks, ofType, spotOf } from '#shared/catalogue/disks.ts';
import { groupOf, imageTypes } from '#shared/catalogue/image.ts';
import { createJudge, type JudgedVersion } from '#shared/catalogue/judged.ts';
import type { PolicyRetention } from '#shared/golden/rollout/policies.ts';
import type { Filled } from '#shared/populate/filled.ts';
import { copyRecordOf, lastUseOfCopy } from '#shared/populate/volume/golden-copy.ts';
import { digestIn, filledWith, type Inventory, ownPlaces, placeOf } from '#shared/resources/consumers.ts';
import { bytesOf, classOf } from '#shared/resources/data-import-cron/version.ts';
import { imageOfHolder } from '#shared/resources/deleted-images/record.ts';
import { planCopies } from '#shared/resources/golden-copies/plan.ts';
import { reconcilerOf } from '#shared/resources/registry.ts';

/** What a thing is stored for. */
export interface StoredFor {
  readonly namespace: string;
  /** As `bullion why` takes it: `datasource/fedora`, `harvester/jammy`. */
  readonly image: string;
}

export interface StoredThing {
  /** What takes the room: two with the same key are the same bytes on the same volume. */
  readonly key: string;
  readonly kind: 'image' | 'version' | 'copy' | 'deleted';
  readonly name: string;
  readonly storedFor: readonly StoredFor[];
  readonly className: string | undefined;
  /** Provisioned size. */
  readonly bytes: number;
  readonly disks: Disks;
  /** RFC 3339; empty when unknown. */
  readonly lastUse: string;
  /** `undefined`: retention keeps it no longer. */
  readonly keptBy: string | undefined;
  /** Retention alone would let it go: something that needs it keeps it. */
  readonly isHeld: boolean;
  /** Milliseconds since the epoch: when the bytes of what goes are freed; `undefined`: at once. */
  readonly until?: number | undefined;
  /** The file it was filled from, as its source publishes it. */
  readonly file: { readonly content: string; readonly bytes: number } | undefined;
}

export interface Stores {
  readonly inventory: Inventory;
  /** `undefined`: they could not be listed. */
  readonly classes: readonly StorageClass[] | undefined;
  /** What holds the bytes of deleted images elsewhere than in their namespaces. */
  readonly holders: readonly KubeObject[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const claimKey = (namespace: string, name: string): string => `claim ${namespace}/${name}`;
const newest = (first: string, disks: Disks): string =>
  [...disks.values()].reduce((last, time) => (time > last ? time : last), first);

type File = StoredThing['file'];
const fileOf = ({ inspection, digests }: Partial<Pick<Filled['state'], 'inspection' | 'digests'>> = {}): File => {
  const content = digestIn(digests === undefined ? {} : { digests });
  return content === undefined || inspection?.size === undefined ? undefined : { content, bytes: inspection.size };
};

const versionThing = ({ cron, name, version, ...judged }: JudgedVersion, find: FindDisks): StoredThing => {
  const { volume, snapshot, dataVolume } = version;
  const { namespace } = cron;
  const forms = [dataVolume, volume, snapshot].filter((form) => form !== undefined);
  const isSnapshotOnly = volume === undefined && dataVolume === undefined;
  return {
    key: isSnapshotOnly ? `snapshot ${namespace}/${name}` : claimKey(namespace, name),
    kind: 'version',
    name,
    storedFor: [{ namespace, image: cron.image }],
    className: classOf(version) ?? snapshot?.spec.volumeSnapshotClassName,
    bytes: bytesOf(version),
    disks: find(forms.map(placeOf)),
    lastUse: judged.lastUse,
    keptBy: judged.keptBy,
    isHeld: judged.isHeld,
    until: judged.until,
    file: fileOf(filledWith(volume ?? snapshot)),
  };
};

type Claims = ReadonlyMap<string, PersistentVolumeClaim>;
type Shots = ReadonlyMap<string, VolumeSnapshot>;
/** Where an image keeps its disk; `undefined`: nowhere yet. */
const roomOf = (
  { children: { volume, snapshot, backingImage } = {}, inspection, storageClassName }: Partial<Filled['state']>,
  namespace: string,
  { claims, shots }: { readonly claims: Claims; readonly shots: Shots },
): Pick<StoredThing, 'key' | 'bytes' | 'className'> | undefined => {
  const className = storageClassName;
  if (backingImage !== undefined)
    return { key: `backing image ${backingImage}`, bytes: inspection?.virtualSize ?? 0, className };
  const claim = claims.get(`${namespace}/${volume}`);
  const bytes = bytesOf({ volume: claim, snapshot: shots.get(`${namespace}/${snapshot}`) });
  const name = volume ?? snapshot;
  if (name === undefined) return undefined;
  const key = volume === undefined ? `snapshot ${namespace}/${name}` : claimKey(namespace, name);
  return { key, bytes, className: claim?.spec.storageClassName ?? className };
};

const imageThings = ({ objects, snapshots }: Inventory, claims: Claims, find: FindDisks): readonly StoredThing[] => {
  const shots: Shots = new Map(snapshots.map((snapshot) => [spotOf(snapshot), snapshot]));
  return Object.values(imageTypes).flatMap((type) =>
    ofType(objects, type).flatMap((image): readonly StoredThing[] => {
      const { namespace = '', name, uid, creationTimestamp = '' } = image.metadata;
      const { state = {} } = (reconcilerOf(image)?.read(image) ?? {}) as Partial<Pick<Filled, 'state'>>;
      const room = roomOf(state, namespace, { claims, shots });
      if (room === undefined) return [];
      const disks = find(ownPlaces(image), uid);
      const wanted = `${groupOf({ type, image })}/${name}`;
      return [
        {
          ...room,
          kind: 'image',
          name: wanted,
          storedFor: [{ namespace, image: wanted }],
          disks,
          lastUse: newest(creationTimestamp, disks),
          keptBy: 'it is an image: bullion delete removes it',
          isHeld: false,
          file: fileOf(state),
        },
      ];
    }),
  );
};

/** By UID: the claim or snapshot of each version. */
const byForm = (versions: readonly JudgedVersion[]): ReadonlyMap<string, JudgedVersion> =>
  new Map(
    versions.flatMap((one) =>
      [one.version.volume, one.version.snapshot].flatMap((form): readonly (readonly [string, JudgedVersion])[] =>
        form?.metadata.uid === undefined ? [] : [[form.metadata.uid, one]],
      ),
    ),
  );

const copyThings = (
  { inventory, classes, now }: Stores,
  { versions, claims, find }: { versions: readonly JudgedVersion[]; claims: Claims; find: FindDisks },
): readonly StoredThing[] => {
  const { objects } = inventory;
  const copies = ofType(objects, dataVolumes).filter(({ metadata }) => metadata.labels?.[labels.copyOf] !== undefined);
  if (copies.length === 0) return [];
  const crons = ofType(objects, dataImportCronKind.type);
  const listed = { copies, crons, policies: ofType(objects, goldenImagePolicyKind.type) };
  const { unwanted } = planCopies(listed, { classes: classes ?? [], now });
  const going = new Set(classes === undefined ? [] : unwanted.map(({ copy }) => copy));
  const originals = byForm(versions);
  return copies.map((copy): StoredThing => {
    const { namespace = '', name, labels: found = {} } = copy.metadata;
    const claim = claims.get(`${namespace}/${copy.status?.claimName ?? name}`);
    return {
      ...fateOfCopy(copy, originals.get(found[labels.copyOf] ?? ''), going),
      key: claimKey(namespace, claim?.metadata.name ?? name),
      kind: 'copy',
      name,
      className: copy.spec.storage?.storageClassName ?? claim?.spec.storageClassName,
      bytes: bytesOf({ volume: claim }),
      disks: find([placeOf(copy), ...(claim === undefined ? [] : [placeOf(claim)])], copy.metadata.uid),
      lastUse: lastUseOfCopy(copy),
      file: undefined,
    };
  });
};

/** It goes when no disk needs it, and with its version. */
const fateOfCopy = (
  copy: DataVolume,
  original: JudgedVersion | undefined,
  going: ReadonlySet<DataVolume>,
): Pick<StoredThing, 'storedFor' | 'keptBy' | 'isHeld' | 'until'> => {
  const { namespace = '' } = copy.metadata;
  const image = original?.cron.image ?? `dataimportcron/${copyRecordOf(copy)?.cron ?? ''}`;
  const storedFor = [{ namespace, image }];
  if (going.has(copy)) return { storedFor, keptBy: undefined, isHeld: false };
  if (original === undefined) return { storedFor, keptBy: 'disks may be made from it', isHeld: false };
  const { name, keptBy, isHeld, until } = original;
  return { storedFor, keptBy: keptBy && `it is a copy of ${name}, which stays`, isHeld, until };
};

const goneThing = (thing: Pick<StoredThing, 'key' | 'name' | 'storedFor' | 'bytes'>, time: string, until: string) => ({
  ...thing,
  kind: 'deleted' as const,
  className: undefined,
  disks: new Map(),
  lastUse: time,
  keptBy: `it was deleted, and can be brought back until ${until}`,
  isHeld: false,
  file: undefined,
});

/** Versions that were deleted by hand: their claims are gone, their storage is not. */
const deletedVersions = (crons: readonly DataImportCron[]): readonly StoredThing[] =>
  crons.flatMap(({ metadata: { namespace = '' }, spec, status }) =>
    (status?.deleted ?? []).map(({ name, time, until, bytes = 0 }) => {
      const storedFor = [{ namespace, image: `datasource/${spec.managedDataSource}` }];
      return goneThing({ key: claimKey(namespace, name), name, storedFor, bytes }, time, until);
    }),
  );

const deletedImages = (holders: readonly KubeObject[], claims: Claims): readonly StoredThing[] =>
  holders.flatMap((holder) => {
    const kept = ownerOf(holder)?.uid === deletedOwner ? imageOfHolder(holder) : undefined;
    if (kept === undefined) return [];
    const { namespace, name, record } = kept;
    const type = Object.values(imageTypes).find(({ group }) => kept.groupKind.endsWith(`.${group}`));
    const image = type === undefined ? name : `${groupOf({ type, image: holder })}/${name}`;
    const { name: held, namespace: where = '' } = holder.metadata;
    const key = record.child === 'volume' ? claimKey(where, held) : `backing image ${held}`;
    const bytes = bytesOf({ volume: claims.get(`${where}/${held}`) }) || (record.bytes ?? 0);
    return [goneThing({ key, name: image, storedFor: [{ namespace, image }], bytes }, record.deleted, record.until)];
  });

/** Of the same room: for all that it is stored for, and kept as long as one of them keeps it. */
const shared = (one: StoredThing, other: StoredThing): StoredThing => {
  const kept = one.keptBy === undefined ? other : one;
  const images = new Map(
    [...one.storedFor, ...other.storedFor].map((each) => [`${each.namespace}/${each.image}`, each]),
  );
  return {
    ...one,
    storedFor: [...images.values()],
    bytes: Math.max(one.bytes, other.bytes),
    disks: new Map([...one.disks, ...other.disks]),
    lastUse: one.lastUse > other.lastUse ? one.lastUse : other.lastUse,
    keptBy: kept.keptBy,
    isHeld: one.isHeld && other.isHeld,
    file: one.file ?? other.file,
  };
};

/** Each thing once. */
export const distinct = (things: readonly StoredThing[]): readonly StoredThing[] => {
  const byKey = new Map<string, StoredThing>();
  for (const thing of things) {
    const there = byKey.get(thing.key);
    byKey.set(thing.key, there === undefined ? thing : shared(there, thing));
  }
  return [...byKey.values()];
};

/** Judged by their policies and crons; or, with a retention, as if each of them had that one. */
export const createStored = (stores: Stores): ((simulated?: PolicyRetention) => readonly StoredThing[]) => {
  const { inventory, holders, now } = stores;
  const claims: Claims = new Map(inventory.claims.map((claim) => [spotOf(claim), claim]));
  const find = createFindDisks(inventory);
  const judge = createJudge(inventory, now);
  const images = imageThings(inventory, claims, find);
  const crons = ofType(inventory.objects, dataImportCronKind.type);
  const left = [
    ...deletedVersions(crons),
    ...deletedImages([...inventory.claims, ...ofType(inventory.objects, dataVolumes), ...holders], claims),
  ];
  return (simulated) => {
    const versions = judge(simulated);
    const own = versions.map((one) => versionThing(one, find));
    const there = distinct([...images, ...own, ...copyThings(stores, { versions, claims, find })]);
    const keys = new Set(there.map(({ key }) => key));
    return [...there, ...distinct(left.filter(({ key }) => !keys.has(key)))];
  };
};
