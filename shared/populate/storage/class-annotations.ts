// Settings of an administrator for a storage class, as annotations that Harvester writes on the class itself. The StorageProfile of the class
// takes precedence. Pure.
import type { StorageClass } from '#shared/api/foreign/core.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';

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
