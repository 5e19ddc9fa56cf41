// What kind of volume a storage class can make, where the user did not say, and how its volumes are cloned. Called when a volume is planned.
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { StorageProfile, StorageProfileSpec } from '#shared/api/cdi/storage-profile.ts';
import type { AccessMode, PersistentVolume, StorageClass, VolumeMode } from '#shared/api/foreign/core.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { type ClaimSet, capabilitiesOf } from '#shared/populate/storage/capabilities.ts';
import { classAnnotationOf } from '#shared/populate/storage/class-annotations.ts';
import type { CloneStrategy } from '#shared/populate/clone/strategy.ts';

export interface ClaimProfile {
  readonly volumeMode: VolumeMode;
  readonly accessModes: readonly AccessMode[];
}

const annotatedSets = (storageClass: StorageClass): readonly ClaimSet[] | undefined => {
  try {
    const modes: unknown = JSON.parse(classAnnotationOf(storageClass, 'modes') ?? 'null');
    const sets = Object.entries((modes ?? {}) as Record<VolumeMode, readonly AccessMode[]>)
      .filter(([mode, accessModes]) => (mode === 'Block' || mode === 'Filesystem') && Array.isArray(accessModes))
      .map(([volumeMode, accessModes]) => ({
        volumeMode: volumeMode as VolumeMode,
        accessModes: accessModes.length === 0 ? (['ReadWriteOnce'] as const) : accessModes,
      }));
    return sets.length === 0 ? undefined : sets;
  } catch {
    return undefined;
  }
};

/**
 * What a class can be asked for, in order of preference: an administrator's word, then what is known of its driver, then what its profile found in
 * its volumes. Empty: nobody knows.
 */
export const claimSetsOf = (
  storageClass: StorageClass | undefined,
  { spec = {}, status = {} }: Pick<StorageProfile, 'spec' | 'status'> = {},
): readonly ClaimSet[] => {
  if (spec.claimPropertySets !== undefined && spec.claimPropertySets.length > 0) return spec.claimPropertySets;
  if (storageClass === undefined) return [];
  const found = isMadeByHand(storageClass) ? status.claimPropertySets : undefined;
  return annotatedSets(storageClass) ?? capabilitiesOf(storageClass)?.sets ?? found ?? [];
};

/** Nobody makes volumes of such a class: it has those that an administrator made. */
export const isMadeByHand = ({ provisioner }: StorageClass): boolean => provisioner === 'kubernetes.io/no-provisioner';

/** What the volumes of such a class offer, each once. */
export const setsOfVolumes = (className: string, volumes: readonly PersistentVolume[]): readonly ClaimSet[] => {
  const sets = volumes
    .filter(({ spec }) => spec.storageClassName === className)
    .flatMap(({ spec: { accessModes, volumeMode = 'Filesystem' } }) =>
      accessModes.map((mode): ClaimSet => ({ accessModes: [mode], volumeMode })),
    );
  const named = new Map(sets.map((set) => [`${set.volumeMode}/${set.accessModes[0]}`, set]));
  return [...named.keys()].toSorted().flatMap((name) => named.get(name) ?? []);
};

/** A golden volume is written once by one pod: the narrowest mode a class offers is enough. */
const oneOf = (modes: readonly AccessMode[]): readonly AccessMode[] =>
  modes.includes('ReadWriteOnce') ? ['ReadWriteOnce'] : modes.slice(0, 1);

/** What to ask of a class for a golden volume: its preferred mode, written by one node where an administrator does not say otherwise. */
export const claimProfileOf = (
  storageClass: StorageClass | undefined,
  asked: StorageProfileSpec = {},
): ClaimProfile => {
  const isReported =
    (asked.claimPropertySets ?? []).length > 0 || (storageClass && annotatedSets(storageClass)) !== undefined;
  const [first] = claimSetsOf(storageClass, { spec: asked });
  return {
    volumeMode: first?.volumeMode ?? 'Block',
    accessModes: isReported ? oneOf(first?.accessModes ?? []) : ['ReadWriteOnce'],
  };
};

/** Bytes of the least volume that a class makes, as its profile says, else as it is known of the driver. What is no quantity says nothing. */
export const leastBytesOf = (storageClass: StorageClass | undefined, profile?: StorageProfile): number => {
  const { least } = (storageClass && capabilitiesOf(storageClass)) ?? {};
  return parseQuantity(profile?.metadata.annotations?.[cdiAnnotations.leastSize]) ?? parseQuantity(least) ?? 0;
};

/** The class of snapshots that a profile has found to fit its driver; `undefined`: it was not looked for yet, or there is none. */
export const namedSnapshotClass = ({ spec = {}, status = {} }: Partial<StorageProfile> = {}): string | undefined =>
  spec.snapshotClass === undefined || spec.snapshotClass === status.snapshotClass ? status.snapshotClass : undefined;

/**
 * The modes of somebody's own disk, completed from what the class prefers. `undefined`: it says no access modes, and the class offers none. A driver of
 * block devices makes file systems on them, for one node.
 */
export const completeClaim = (sets: readonly ClaimSet[], asked: Partial<ClaimProfile>): ClaimProfile | undefined => {
  const { volumeMode, accessModes } = asked;
  if (accessModes !== undefined) {
    const fitting = sets.find((set) => set.accessModes.some((mode) => accessModes.includes(mode)));
    return { volumeMode: volumeMode ?? fitting?.volumeMode ?? 'Filesystem', accessModes };
  }
  const found = volumeMode === undefined ? sets[0] : sets.find((set) => set.volumeMode === volumeMode);
  if (found !== undefined) return found;
  return volumeMode === 'Filesystem' && sets.length > 0 ? { volumeMode, accessModes: ['ReadWriteOnce'] } : undefined;
};

/** Why a claim that leaves its modes open cannot be completed, in CDI's words, and what to do. */
export const noModesMessage = ({ metadata: { name } }: StorageClass, volumeMode: VolumeMode | undefined): string => {
  const what = volumeMode === undefined ? 'accessMode and volumeMode, ' : 'accessMode and ';
  const asked = volumeMode === undefined ? '' : ` for volumeMode ${volumeMode}`;
  return `Spec is missing ${what}cannot get access mode from StorageProfile ${name}${asked}: write accessModes, or fill in spec.claimPropertySets of that profile`;
};

/** An administrator's word on a class, as CDI has it. */
const strategyAnnotation = 'cdi.kubevirt.io/clone-strategy';

const isStrategy = (text: string | undefined): text is CloneStrategy =>
  text === 'copy' || text === 'snapshot' || text === 'csi-clone';

/** How an administrator wants volumes of a class cloned. */
export const askedStrategyOf = (storageClass: StorageClass, asked: StorageProfileSpec): CloneStrategy | undefined =>
  [
    asked.cloneStrategy,
    storageClass.metadata.annotations?.[strategyAnnotation],
    classAnnotationOf(storageClass, 'cloneStrategy'),
  ].find(isStrategy);

/** How volumes of a class are to be cloned; `undefined`: by a snapshot, where there can be one. */
export const cloneStrategyOf = (
  storageClass: StorageClass,
  asked: StorageProfileSpec = {},
): CloneStrategy | undefined => askedStrategyOf(storageClass, asked) ?? capabilitiesOf(storageClass)?.clone;

const defaultMarks = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

/** Preferred for the disks of virtual machines, above the cluster's default. */
const virtDefaultMark = 'storageclass.kubevirt.io/is-default-virt-class';

const isMarked = (object: StorageClass, mark: string): boolean => object.metadata.annotations?.[mark] === 'true';

export const isDefaultClass = (storageClass: StorageClass): boolean =>
  defaultMarks.some((mark) => isMarked(storageClass, mark));
export const isVirtDefaultClass = (storageClass: StorageClass): boolean => isMarked(storageClass, virtDefaultMark);

/**
 * The class used where none is named: newest of those marked, as Kubernetes picks it. Where `forDisks` is false, the mark for disks of virtual
 * machines does not count.
 */
export const defaultClassOf = (classes: readonly StorageClass[], forDisks = true): StorageClass | undefined => {
  const forVirt = forDisks ? classes.filter(isVirtDefaultClass) : [];
  const marked = classes.filter(isDefaultClass);
  const candidates = forVirt.length > 0 ? forVirt : marked;
  return [...candidates].sort(newestFirst)[0];
};

const newestFirst = (a: StorageClass, b: StorageClass): number =>
  (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? '') ||
  a.metadata.name.localeCompare(b.metadata.name);
