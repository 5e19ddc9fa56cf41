// longhorn.io: only the fields we read or write.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

/** States of one copy of a backing image, as Longhorn names them. */
export const copyStates = [
  'pending',
  'starting',
  'in-progress',
  'ready-for-transfer',
  'ready',
  'failed',
  'failed-and-cleanup',
  'unknown',
] as const;
export type CopyState = (typeof copyStates)[number];

export interface BackingImageCopy {
  readonly state?: string;
  /** Percent. */
  readonly progress?: number;
  readonly message?: string;
  readonly lastStateTransitionTime?: string;
}

export interface BackingImage extends KubeObject {
  readonly spec: {
    readonly sourceType?: 'download' | 'upload' | 'export-from-volume' | 'restore' | 'clone';
    readonly sourceParameters?: Readonly<Record<string, string>>;
    /** SHA-512, hexadecimal. */
    readonly checksum?: string;
    readonly minNumberOfCopies?: number;
    readonly diskSelector?: readonly string[];
    readonly nodeSelector?: readonly string[];
    readonly dataEngine?: 'v1' | 'v2';
    readonly secret?: string;
    readonly secretNamespace?: string;
  };
  readonly status?: {
    readonly uuid?: string;
    readonly checksum?: string;
    /** Bytes of the file; 0 until known. */
    readonly size?: number;
    /** Bytes of the disk in it; 0 until known. */
    readonly virtualSize?: number;
    readonly realSize?: number;
    /** By disk UUID. */
    readonly diskFileStatusMap?: Readonly<Record<string, BackingImageCopy>> | null;
  };
}

/** Prepares the first copy of the backing image with the same name. */
export interface BackingImageDataSource extends KubeObject {
  readonly spec: {
    readonly sourceType?: BackingImage['spec']['sourceType'];
    readonly parameters?: Readonly<Record<string, string>>;
    readonly checksum?: string;
    readonly uuid?: string;
    readonly diskUUID?: string;
    readonly nodeID?: string;
    readonly fileTransferred?: boolean;
  };
  readonly status?: {
    readonly currentState?: string;
    readonly progress?: number;
    readonly size?: number;
    readonly checksum?: string;
    readonly message?: string;
  };
}

/** Namespace of Longhorn's own objects. */
export const longhornNamespace = 'longhorn-system';
/** TCP port of its HTTP API, of its Service and its pods. */
export const longhornApiPort = 9500;

/** Its CSI driver. */
export const longhornDriver = 'driver.longhorn.io';

const kind = <T extends KubeObject>(name: string, plural: string): ResourceType<T> => ({
  group: 'longhorn.io',
  version: 'v1beta2',
  kind: name,
  plural,
  namespaced: true,
});

export const backingImages = kind<BackingImage>('BackingImage', 'backingimages');
export const backingImageDataSources = kind<BackingImageDataSource>(
  'BackingImageDataSource',
  'backingimagedatasources',
);
