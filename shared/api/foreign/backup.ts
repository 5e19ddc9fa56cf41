// Kinds of Harvester and Longhorn that backups use: only the fields we read.
import type { Condition, KubeObject, ResourceType } from '#shared/api/object.ts';

// Kinds of harvesterhci.io that are read but not served.

export const templateVersions: ResourceType<KubeObject> = {
  group: 'harvesterhci.io',
  version: 'v1beta1',
  kind: 'VirtualMachineTemplateVersion',
  plural: 'virtualmachinetemplateversions',
  namespaced: true,
};

/** One of Harvester's settings. Not namespaced. */
interface HarvesterSetting extends KubeObject {
  readonly value?: string;
  readonly default?: string;
}

export const harvesterSettings: ResourceType<HarvesterSetting> = {
  group: 'harvesterhci.io',
  version: 'v1beta1',
  kind: 'Setting',
  plural: 'settings',
  namespaced: false,
};

export interface VirtualMachineBackup extends KubeObject {
  readonly status?: {
    readonly readyToUse?: boolean;
    readonly conditions?: readonly Condition[];
    readonly volumeBackups?: readonly {
      readonly volumeName?: string;
      readonly persistentVolumeClaim?: {
        readonly metadata?: {
          readonly namespace?: string;
          readonly annotations?: Readonly<Record<string, string>>;
        };
        readonly spec?: { readonly storageClassName?: string };
      };
    }[];
  };
}

export const virtualMachineBackups: ResourceType<VirtualMachineBackup> = {
  group: 'harvesterhci.io',
  version: 'v1beta1',
  kind: 'VirtualMachineBackup',
  plural: 'virtualmachinebackups',
  namespaced: true,
};

/** The data of a backing image in Longhorn's own backup store. */
export interface BackupBackingImage extends KubeObject {
  readonly status?: {
    readonly state?: string;
    readonly backingImage?: string;
    readonly url?: string;
    readonly checksum?: string;
    readonly size?: number;
    readonly progress?: number;
    readonly error?: string;
  };
}

export const backupBackingImages: ResourceType<BackupBackingImage> = {
  group: 'longhorn.io',
  version: 'v1beta2',
  kind: 'BackupBackingImage',
  plural: 'backupbackingimages',
  namespaced: true,
};
