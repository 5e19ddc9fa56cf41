// Which disks were made from what holds the bytes of an image or a version: one pass over all of them, for those who ask for many. Pure.
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { virtualMachinePvcKind, virtualMachineVolumeKind } from '#shared/api/hypercloud/volume.ts';
import type { DataSource } from '#shared/api/cdi/data-source.ts';
import { type KubeObject, ownerOf, type ResourceType, isOfType } from '#shared/api/object.ts';
import {
  claimNameOf,
  digestIn,
  filledWith,
  type Inventory,
  isDataSource,
  keyOf,
  madeIn,
  type ObjectPlace,
  placeOf,
  pointedTo,
  sourcesOfClaim,
} from '#shared/resources/consumers.ts';
import { isNoCheck } from '#shared/resources/golden-image-policy/disk-counts.ts';

/** When each disk was made (RFC 3339), by what tells disks apart. */
export type Disks = ReadonlyMap<string, string>;

export const ofType = <T extends KubeObject>(objects: readonly KubeObject[], type: ResourceType<T>): readonly T[] =>
  objects.filter((object) => isOfType(object, type));

interface Disk {
  readonly key: string;
  readonly created: string;
  readonly owner: string | undefined;
}

/** `ns/name`, of whatever lies in a namespace. */
export const spotOf = ({ metadata }: KubeObject): string => `${metadata.namespace ?? ''}/${metadata.name}`;

const cronSpotOf = ({ metadata }: KubeObject): string =>
  `${metadata.namespace ?? ''}/${metadata.labels?.[cdiLabels.cron] ?? ''}`;

/** DataSources may lead to others. */
const mostSteps = 8;

/**
 * What a disk that names a DataSource was made from. It may have offered another version then: the one with the bytes of the disk. Where nothing tells
 * these, it is the version that is offered now.
 */
const createResolve = ({ objects, claims, snapshots }: Inventory) => {
  const sources = new Map(objects.filter(isDataSource).map((source) => [keyOf(placeOf(source)), source]));
  const forms = [...claims, ...snapshots].filter(({ metadata }) => metadata.labels?.[cdiLabels.cron] !== undefined);
  const versions = forms.map((form) => ({
    cron: cronSpotOf(form),
    place: placeOf(form),
    content: digestIn(filledWith(form)),
  }));
  const byCron = Map.groupBy(versions, ({ cron }) => cron);
  const follow = (source: DataSource, steps: number): readonly ObjectPlace[] =>
    pointedTo(source).flatMap((place) => {
      const next = sources.get(keyOf(place));
      return next === undefined ? [place] : steps === 0 ? [] : follow(next, steps - 1);
    });
  return (place: ObjectPlace, content: string | undefined): readonly ObjectPlace[] => {
    const source = sources.get(keyOf(place));
    if (source === undefined) return [place];
    const now = follow(source, mostSteps);
    const own = byCron.get(cronSpotOf(source));
    if (content === undefined || own === undefined) return now;
    const same = own.filter((one) => one.content === content).map((one) => one.place);
    const isOffered = ({ name }: ObjectPlace): boolean => now.some((one) => one.name === name);
    const name = (same.find(isOffered) ?? same[0])?.name;
    return same.filter((one) => one.name === name);
  };
};

const diskKinds = [
  persistentVolumeClaims,
  dataVolumeKind.type,
  virtualMachinePvcKind.type,
  virtualMachineVolumeKind.type,
];

/** No export, no image, no version of a golden image, and no clone that only checks one. */
const isDisk = (object: KubeObject): boolean =>
  diskKinds.some((type) => isOfType<KubeObject>(object, type)) &&
  object.metadata.labels?.[cdiLabels.cron] === undefined &&
  isNoCheck(object);

/** Asked with every place that holds the same bytes. `uid`: of what is stored there; its own parts are no disks. */
export type FindDisks = (places: readonly ObjectPlace[], uid?: string) => Disks;

export const createFindDisks = (inventory: Inventory): FindDisks => {
  const resolve = createResolve(inventory);
  const claims = new Map(inventory.claims.map((claim) => [spotOf(claim), claim]));
  const disks = new Map<string, Disk[]>();
  for (const { object, sources } of madeIn(inventory)) {
    if (!isDisk(object)) continue;
    const { namespace = '', creationTimestamp: created = '' } = object.metadata;
    const claim = claims.get(`${namespace}/${claimNameOf(object)}`);
    const content = digestIn(filledWith(claim));
    const all = claim === undefined ? sources : [...sources, ...sourcesOfClaim(claim)];
    const disk = { key: keyOf(placeOf(object)), created, owner: ownerOf(object)?.uid };
    const keys = new Set(all.flatMap((source) => resolve(source, content)).map(keyOf));
    for (const key of keys) {
      const others = disks.get(key);
      if (others === undefined) disks.set(key, [disk]);
      else others.push(disk);
    }
  }
  return (places, uid) => {
    const own = new Set(places.map(keyOf));
    const found = [...own].flatMap((key) => disks.get(key) ?? []);
    const isPart = ({ key, owner }: Disk): boolean => own.has(key) || (uid !== undefined && owner === uid);
    return new Map(found.filter((disk) => !isPart(disk)).map(({ key, created }) => [key, created]));
  };
};
