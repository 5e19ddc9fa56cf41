// Volume mode and access modes of a storage class if the user requests none, and how its volumes are cloned. Called when a volume is planned.
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { StorageProfile, StorageProfileSpec } from '#shared/api/cdi/storage-profile.ts';
import type { AccessMode, PersistentVolume, StorageClass, VolumeMode } from '#shared/api/foreign/core.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import type { CloneStrategy } from '#shared/populate/clone/strategy.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { capabilitiesOf, type ClaimSet } from './capabilities.ts';

// Settings of an administrator for a storage class, as annotations that Harvester writes on the class itself. The StorageProfile of the class
// takes precedence. Pure.

/** Their common prefix. */
export const classPrefix = 'cdi.harvesterhci.io/';

export const classAnnotations = {
  /** Share of a volume that the file system uses for itself. */
  overhead: `${classPrefix}filesystemOverhead`,
  cloneStrategy: `${classPrefix}storageProfileCloneStrategy`,
  snapshotClass: `${classPrefix}storageProfileVolumeSnapshotClass`,
  /** JSON of the form `{"Block":["ReadWriteOnce"]}`, in order of preference. */
  modes: `${classPrefix}storageProfileVolumeModeAccessModes`,
} as const;

export const classAnnotationOf = (
  storageClass: StorageClass | undefined,
  which: keyof typeof classAnnotations,
): string | undefined => storageClass?.metadata.annotations?.[classAnnotations[which]];

/** CDI's format of a share: 0 to 1, three digits at most. */
export const isShare = (text: string): boolean => /^(?:0(?:\.\d{1,3})?|1)$/.test(text);

/** Share that the file systems of a class use for themselves: from the class, else from the settings, else the default. */
export const overheadOf = (
  storageClass: StorageClass | undefined,
  { filesystemOverhead, classOverheads = {} }: Pick<PopulateSettings, 'filesystemOverhead' | 'classOverheads'>,
): number => {
  const text = classAnnotationOf(storageClass, 'overhead') ?? '';
  return isShare(text) ? Number(text) : (classOverheads[storageClass?.metadata.name ?? ''] ?? filesystemOverhead);
};

/** The context of a plan whose volume has that class. */
export const inClass = <C extends { readonly settings: PopulateSettings }>(
  context: C,
  storageClass: StorageClass | undefined,
): C => {
  const { settings } = context;
  return {
    ...context,
    settings: { ...settings, filesystemOverhead: overheadOf(storageClass, settings) },
  };
};

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
 * Claim property sets of a class, in order of preference: set by an administrator, else known of its driver, else found in its volumes by its
 * profile. Empty: unknown.
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

/** A class without dynamic provisioning: an administrator creates its volumes. */
export const isMadeByHand = ({ provisioner }: StorageClass): boolean => provisioner === 'kubernetes.io/no-provisioner';

/** The modes of the volumes of such a class, without duplicates. */
export const setsOfVolumes = (className: string, volumes: readonly PersistentVolume[]): readonly ClaimSet[] => {
  const sets = volumes
    .filter(({ spec }) => spec.storageClassName === className)
    .flatMap(({ spec: { accessModes, volumeMode = 'Filesystem' } }) =>
      accessModes.map((mode): ClaimSet => ({ accessModes: [mode], volumeMode })),
    );
  const named = new Map(sets.map((set) => [`${set.volumeMode}/${set.accessModes[0]}`, set]));
  return [...named.keys()].toSorted().flatMap((name) => named.get(name) ?? []);
};

/** A golden volume is written once by one pod: the narrowest mode of a class is enough. */
const oneOf = (modes: readonly AccessMode[]): readonly AccessMode[] =>
  modes.includes('ReadWriteOnce') ? ['ReadWriteOnce'] : modes.slice(0, 1);

/** The modes of a golden volume of a class: the preferred volume mode, written by one node unless an administrator set another access mode. */
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

/** Size of the smallest volume of a class, from its profile, else from what is known of the driver. An invalid quantity is ignored. */
export const leastBytesOf = (storageClass: StorageClass | undefined, profile?: StorageProfile): number => {
  const { least } = (storageClass && capabilitiesOf(storageClass)) ?? {};
  return parseQuantity(profile?.metadata.annotations?.[cdiAnnotations.leastSize]) ?? parseQuantity(least) ?? 0;
};

/** The snapshot class that a profile recorded for its driver; `undefined`: not determined yet, or there is none. */
export const namedSnapshotClass = ({ spec = {}, status = {} }: Partial<StorageProfile> = {}): string | undefined =>
  spec.snapshotClass === undefined || spec.snapshotClass === status.snapshotClass ? status.snapshotClass : undefined;

/**
 * The modes of a user's disk, completed from the preferences of the class. `undefined`: the disk has no access modes, and the class offers
 * none. A driver of block devices offers file systems on them for one node.
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

/** Why a claim without modes cannot be completed, in CDI's words, and what to do. */
export const noModesMessage = ({ metadata: { name } }: StorageClass, volumeMode: VolumeMode | undefined): string => {
  const what = volumeMode === undefined ? 'accessMode and volumeMode, ' : 'accessMode and ';
  const asked = volumeMode === undefined ? '' : ` for volumeMode ${volumeMode}`;
  return `Spec is missing ${what}cannot get access mode from StorageProfile ${name}${asked}: write accessModes, or fill in spec.claimPropertySets of that profile`;
};

/** Set by an administrator on a class, as in CDI. */
const strategyAnnotation = 'cdi.kubevirt.io/clone-strategy';

const isStrategy = (text: string | undefined): text is CloneStrategy =>
  text === 'copy' || text === 'snapshot' || text === 'csi-clone';

/** The clone strategy of a class that an administrator set. */
export const askedStrategyOf = (storageClass: StorageClass, asked: StorageProfileSpec): CloneStrategy | undefined =>
  [
    asked.cloneStrategy,
    storageClass.metadata.annotations?.[strategyAnnotation],
    classAnnotationOf(storageClass, 'cloneStrategy'),
  ].find(isStrategy);

/** The clone strategy of a class; `undefined`: by snapshot, if supported. */
export const cloneStrategyOf = (
  storageClass: StorageClass,
  asked: StorageProfileSpec = {},
): CloneStrategy | undefined => askedStrategyOf(storageClass, asked) ?? capabilitiesOf(storageClass)?.clone;

const defaultMarks = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

/** Preferred for the disks of virtual machines, before the default of the cluster. */
const virtDefaultMark = 'storageclass.kubevirt.io/is-default-virt-class';

const isMarked = (object: StorageClass, mark: string): boolean => object.metadata.annotations?.[mark] === 'true';

export const isDefaultClass = (storageClass: StorageClass): boolean =>
  defaultMarks.some((mark) => isMarked(storageClass, mark));
export const isVirtDefaultClass = (storageClass: StorageClass): boolean => isMarked(storageClass, virtDefaultMark);

/** The default class: the newest of those marked, as in Kubernetes. If `forDisks` is false, the mark for disks of virtual machines is ignored. */
export const defaultClassOf = (classes: readonly StorageClass[], forDisks = true): StorageClass | undefined => {
  const forVirt = forDisks ? classes.filter(isVirtDefaultClass) : [];
  const marked = classes.filter(isDefaultClass);
  const candidates = forVirt.length > 0 ? forVirt : marked;
  return [...candidates].sort(newestFirst)[0];
};

const newestFirst = (a: StorageClass, b: StorageClass): number =>
  (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? '') ||
  a.metadata.name.localeCompare(b.metadata.name);
