// Which disks were made from an image, a golden image or a volume, and which machines use them. Pure; the lists are read by the command line.
import type { DataSource } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { type VirtualMachine, claimNamesOf } from '#shared/api/foreign/kubevirt.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { harvesterAnnotations, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { type VirtualMachineVolumeExport, volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import { labels } from '#shared/api/names.ts';
import {
  apiVersionOf,
  groupKindOf,
  type KubeObject,
  type Owner,
  ownerOf,
  refOf,
  type ResourceType,
} from '#shared/api/object.ts';
import { offeredBy } from '#shared/access/offers.ts';
import type { Filled } from '#shared/populate/filled.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import { type Population, populationOf } from '#shared/populate/population.ts';
import { isPrimed } from '#shared/populate/volume/prime.ts';
import { dataSourceGroupKind } from '#shared/resources/data-volume/source.ts';
import { contentGroupKind } from '#shared/resources/fillable.ts';
import { reconcilerOf } from '#shared/resources/registry.ts';

/** What there is, as far as its reader may see it. */
export interface Inventory {
  /** Objects of every kind that Bullion serves. */
  readonly objects: readonly KubeObject[];
  readonly claims: readonly PersistentVolumeClaim[];
  readonly snapshots: readonly VolumeSnapshot[];
  readonly machines: readonly VirtualMachine[];
}

export interface Consumer {
  readonly object: KubeObject;
  /** What it says that it was made from. */
  readonly from: ObjectPlace;
  /** Virtual machines of its namespace that use it. */
  readonly machines: readonly string[];
}

export type ObjectPlace = Omit<Owner, 'uid'>;

const groupKindOfType = (type: Pick<ResourceType, 'group' | 'version' | 'kind'>): string =>
  groupKindOf({ apiVersion: apiVersionOf(type), kind: type.kind });

const claimKind = groupKindOfType(persistentVolumeClaims);
const snapshotKind = groupKindOfType(volumeSnapshots);
const classKind = groupKindOfType(storageClasses);
const harvesterKind = groupKindOfType(harvesterImageKind.type);

export const keyOf = ({ groupKind, namespace, name }: ObjectPlace): string => `${groupKind} ${namespace}/${name}`;
export const placeOf = (object: KubeObject): ObjectPlace => {
  const { namespace = '', name } = refOf(object);
  return { groupKind: groupKindOf(object), namespace, name };
};
export const isDataSource = (object: KubeObject): object is DataSource => groupKindOf(object) === dataSourceGroupKind;

/** The claim, snapshot or DataSource that a DataSource points to. */
export const pointedTo = ({ metadata, spec: { source } }: DataSource): readonly ObjectPlace[] => {
  const { namespace: own = '' } = metadata;
  const kinds = [
    [claimKind, source.pvc],
    [snapshotKind, source.snapshot],
    [dataSourceGroupKind, source.dataSource],
  ] as const;
  return kinds.flatMap(([groupKind, named]) =>
    named === undefined ? [] : [{ groupKind, namespace: named.namespace ?? own, name: named.name }],
  );
};

/** What an object of a kind that we serve was made from, by its own spec. */
const sourcesOf = (object: KubeObject): readonly ObjectPlace[] => {
  if (isDataSource(object)) return pointedTo(object);
  const reconciler = reconcilerOf(object);
  const source = reconciler?.links?.sourceOf(reconciler.read(object));
  // Objects with the same content are made from the same server, not from each other.
  return [...(source === undefined || source.groupKind === contentGroupKind ? [] : [source]), ...imageNamedBy(object)];
};

/** Harvester's clients name the image of a disk in an annotation. */
const imageNamedBy = ({ metadata }: KubeObject): readonly ObjectPlace[] => {
  const [namespace, name] = (metadata.annotations?.[harvesterAnnotations.imageId] ?? '').split('/');
  return namespace === undefined || name === undefined ? [] : [{ groupKind: harvesterKind, namespace, name }];
};

export const sourcesOfClaim = (claim: PersistentVolumeClaim): readonly ObjectPlace[] => {
  const { namespace = '' } = claim.metadata;
  const { dataSource, dataSourceRef, storageClassName } = claim.spec;
  const sources = isPrimed(claim) ? [] : [dataSource, dataSourceRef];
  const copied = recordOf(claim)?.from;
  return [
    ...sources.flatMap((source) =>
      source === undefined
        ? []
        : [{ namespace, ...source, groupKind: [source.kind, ...(source.apiGroup ? [source.apiGroup] : [])].join('.') }],
    ),
    ...(copied === undefined ? [] : [{ groupKind: claimKind, namespace, name: copied.name }]),
    ...(storageClassName === undefined ? [] : [{ groupKind: classKind, namespace: '', name: storageClassName }]),
    ...imageNamedBy(claim),
  ];
};

/** Every place that holds the bytes of `target`: a disk that is made from one of them is made from it. */
const placesOf = (target: KubeObject, { objects, claims, snapshots }: Inventory): readonly ObjectPlace[] => {
  const own = placeOf(target);
  const cron = isDataSource(target) ? (target.metadata.labels?.[cdiLabels.cron] ?? '') : target.metadata.name;
  const isVersion = ({ metadata }: KubeObject): boolean =>
    cron !== '' && metadata.namespace === own.namespace && metadata.labels?.[cdiLabels.cron] === cron;
  return [
    ...ownPlaces(target),
    ...(isDataSource(target) ? pointedTo(target) : []),
    ...[...objects, ...claims, ...snapshots].filter(isVersion).map(placeOf),
  ];
};

/** The object itself, what it offers, and where it keeps its disk. */
export const ownPlaces = (target: KubeObject): readonly ObjectPlace[] => {
  const own = placeOf(target);
  const reconciler = reconcilerOf(target);
  const resource = reconciler?.read(target);
  const offered = resource === undefined ? [] : (reconciler?.links?.offersOf(resource) ?? []);
  return [
    own,
    ...offered.filter(({ groupKind }) => groupKind !== contentGroupKind),
    ...childPlaces(own.namespace, (resource as Partial<Filled> | undefined)?.state?.children),
  ];
};

/** Where an image keeps its disk. */
const childPlaces = (namespace: string, children: Filled['state']['children'] = {}): readonly ObjectPlace[] =>
  (
    [
      [claimKind, namespace, children.volume],
      [snapshotKind, namespace, children.snapshot],
      [classKind, '', children.storageClass],
    ] as const
  ).flatMap(([groupKind, where, name]) => (name === undefined ? [] : [{ groupKind, namespace: where, name }]));

/** A DataSource that Bullion keeps in a namespace that another one is offered to. */
const isOffered = ({ object }: Consumer): boolean => isDataSource(object) && offeredBy(object) !== undefined;

/** An export that has ended reads nothing any more. */
const isEndedExport = ({ object }: Consumer): boolean => {
  const { kind, group } = volumeExportKind.type;
  if (groupKindOf(object) !== `${kind}.${group}`) return false;
  const { state } = (object as VirtualMachineVolumeExport).status ?? {};
  return state === 'Completed' || state === 'Error';
};

/** Disks made from `target`, whatever name of it they use, exports that read it, and DataSources that somebody made of it. */
export const consumersOf = (target: KubeObject, inventory: Inventory): readonly Consumer[] =>
  allMadeFrom(target, inventory).filter((one) => !isOffered(one) && !isEndedExport(one));

/** Namespaces that it is offered to. */
export const offeredTo = (target: KubeObject, inventory: Inventory): readonly string[] =>
  allMadeFrom(target, inventory)
    .filter(isOffered)
    .map(({ object }) => object.metadata.namespace ?? '');

const allMadeFrom = (target: KubeObject, inventory: Inventory): readonly Consumer[] => {
  const places = placesOf(target, inventory);
  const direct = madeFrom(places, inventory);
  // A disk that names a DataSource is made from what that points to.
  const pointers = direct.filter(({ object }) => isDataSource(object)).map(({ object }) => placeOf(object));
  const indirect = madeFrom(pointers, inventory).filter(({ object }) => holdsSame(target, object, inventory));
  const all = new Map([...indirect, ...direct].map((consumer) => [keyOf(placeOf(consumer.object)), consumer]));
  // What stores the image itself is no disk of anybody.
  const isPart = ({ object }: Consumer): boolean =>
    target.metadata.uid !== undefined && ownerOf(object)?.uid === target.metadata.uid;
  return [...all.values()]
    .filter((one) => !isPart(one))
    .toSorted((a, b) => keyOf(placeOf(a.object)).localeCompare(keyOf(placeOf(b.object))));
};

/** A golden copy is nobody's disk. */
const isCopy = ({ metadata }: KubeObject): boolean => metadata.labels?.[labels.copyOf] !== undefined;

export interface Made {
  readonly object: KubeObject;
  /** What it says that it was made from. */
  readonly sources: readonly ObjectPlace[];
}

/** Every disk and DataSource; one that was made from nothing has no sources. */
export const madeIn = ({ objects, claims }: Pick<Inventory, 'objects' | 'claims'>): readonly Made[] => {
  const owners = new Set(objects.map(({ metadata }) => metadata.uid));
  // A claim of an object that is listed is that object's.
  const isOwned = (claim: KubeObject): boolean =>
    owners.has(ownerOf(claim)?.uid) || (claim.metadata.ownerReferences ?? []).some(({ uid }) => owners.has(uid));
  return [
    ...objects.filter((object) => !isCopy(object)).map((object) => ({ object, sources: sourcesOf(object) })),
    ...claims.filter((claim) => !isOwned(claim)).map((object) => ({ object, sources: sourcesOfClaim(object) })),
  ];
};

const madeFrom = (places: readonly ObjectPlace[], inventory: Inventory): readonly Consumer[] => {
  const keys = new Set(places.map(keyOf));
  const isPart = (object: KubeObject): boolean => keys.has(keyOf(placeOf(object)));
  return madeIn(inventory).flatMap(({ object, sources }) => {
    const from = sources.find((source) => keys.has(keyOf(source)));
    return from === undefined || isPart(object)
      ? []
      : [{ object, from, machines: machinesOf(object, inventory.machines) }];
  });
};

/** The claim that a machine mounts of an object: of its own name, or the one its status names. */
export const claimNameOf = (object: KubeObject): string =>
  (object as { readonly status?: { readonly claimName?: string } }).status?.claimName ?? object.metadata.name;

const machinesOf = (object: KubeObject, machines: readonly VirtualMachine[]): readonly string[] =>
  machines
    .filter(
      ({ metadata, ...machine }) =>
        metadata.namespace === object.metadata.namespace &&
        claimNamesOf({ metadata, ...machine }).includes(claimNameOf(object)),
    )
    .map(({ metadata }) => metadata.name);

/** What identifies the bytes that an object was filled with; `undefined` where nothing recorded it, as of disks that storage or another program made. */
export const contentOf = (
  { groupKind, namespace, name }: ObjectPlace,
  { claims, snapshots }: Inventory,
): string | undefined => {
  const isIt = ({ metadata }: KubeObject): boolean => metadata.namespace === namespace && metadata.name === name;
  return digestIn(filledWith(groupKind === snapshotKind ? snapshots.find(isIt) : claims.find(isIt)));
};

/** What is recorded of the bytes of a claim or snapshot. */
export const filledWith = (form: PersistentVolumeClaim | VolumeSnapshot | undefined): Population | undefined =>
  populationOf(form) ??
  (form === undefined || groupKindOf(form) === snapshotKind
    ? undefined
    : recordOf(form as PersistentVolumeClaim)?.population);

export const digestIn = ({ digests = {} }: Partial<Pick<Population, 'digests'>> = {}): string | undefined =>
  digests['sha256'] ?? Object.values(digests)[0];

export const contentOfDisk = (object: KubeObject, inventory: Inventory): string | undefined =>
  contentOf({ groupKind: claimKind, namespace: object.metadata.namespace ?? '', name: claimNameOf(object) }, inventory);

/** A DataSource moves on: what was made from it before holds an earlier version. */
const holdsSame = (target: KubeObject, object: KubeObject, inventory: Inventory): boolean => {
  const [one, other] = [contentOfDisk(target, inventory), contentOfDisk(object, inventory)];
  return one === undefined || other === undefined || one === other;
};
