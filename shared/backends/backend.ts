// The interface of storage backends: one folder each, and one row in registry.ts. Backend names are compared only in their own folders.
import type { Grant } from '#shared/access/permissions.ts';
import type { AccessMode, StorageClass, VolumeMode } from '#shared/api/foreign/core.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { tolerate } from '#shared/clients/kube/tolerant.ts';
import type { Plan, PlanContext } from '#shared/populate/actions.ts';
import type { Filled, ImageState } from '#shared/populate/filled.ts';
import type { Source, SourceType } from '#shared/populate/source.ts';
import type { Credential } from '#shared/populate/sources/row.ts';
import type { WatchedChild } from '#shared/populate/watched-child.ts';
import { type Fault, isNotFound } from '#shared/runtime/errors.ts';
import type { LookAtFile } from '#shared/transfer/file-look.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { Checksum } from '#shared/transfer/spec.ts';

// The internal model of an image, for every kind that the user may create. The dialect of a kind translates to and from this.

/** The requested state. */
export interface Image extends Filled {
  /** Name in the registry. */
  readonly backend: string;
  readonly displayName: string;
  /** `undefined` only if `faults` explains why. */
  readonly source: ImageSource | undefined;
  readonly checksum?: Checksum | undefined;
  /** For an upload: the announced file. */
  readonly offered?: Inspection | undefined;
  readonly storage: ImageStorage;
  /** What its author may use in other namespaces. Default: nothing. */
  readonly grants?: readonly Grant[] | undefined;
  /** Names of children that clients of this kind read. */
  readonly childNames: { readonly volume: string; readonly snapshot: string };
  /** Annotations of the golden volume that clients of this kind read: while it is being filled, and when it is filled. */
  readonly volumeMarks: { readonly filling: Annotations; readonly filled: Annotations };
}

type Annotations = Readonly<Record<string, string>>;

/** The source of an image. The types that a backend supports are one of its capabilities. */
export type ImageSource = Source<Exclude<SourceType, 'claim'>>;
export type ImageCloneSource = Source<'clone'>;

export interface ImageStorage {
  /** Default: the default class of the cluster. */
  readonly className?: string | undefined;
  readonly volumeMode?: VolumeMode | undefined;
  readonly accessModes?: readonly AccessMode[] | undefined;
  /** Bytes the user requested. Default: determined from the image. */
  readonly capacityBytes?: number | undefined;
  /** Default: the class of the volume's driver, if there is one. */
  readonly snapshotClassName?: string | undefined;
  /** Parameters of the storage class that a backend creates for the image. */
  readonly classParameters?: Readonly<Record<string, string>> | undefined;
}

/**
 * `Observed` is what the backend has read: its children and everything else a decision depends on. Reads and decisions are separate: `check`
 * reads from the cluster and decides nothing, the other methods decide and are pure. Every method must be safe to repeat; the next pass repairs
 * a crash between any two actions.
 */
export interface Backend<Observed = unknown> {
  readonly capabilities: BackendCapabilities;
  /** A product required in the cluster besides a storage driver. Default: none. */
  readonly needs?: Need | undefined;
  /**
   * Reads only what the next step of this image depends on. `look` is set if a file on a web server can be inspected. Throws only AppErrors of
   * the client.
   */
  check(kube: KubeClient, image: Image, look?: LookAtFile): Promise<Observed>;
  /** The next step from the observed state towards a usable golden image, or the reason why there is none. */
  initialize(image: Image, observed: Observed, context: PlanContext): Plan;
  /**
   * The state with the sizes that the children report, if the state of a usable image lacks them; else `undefined`. Required: the contract asks
   * for it with an empty state, and a backend that always answers `undefined` fails.
   */
  updateVirtualSize(image: Image, observed: Observed): ImageState | undefined;
  /** The next step of removal. `removed`: nothing of the image is left. */
  delete(image: Image, observed: Observed, context: PlanContext): Plan & { readonly removed: boolean };
  /** The initial content of a disk made from a usable image. */
  rootDiskOf(image: Image): RootDisk;
  /** Kinds of children whose changes reconcile an image. Triggers, sources and RBAC are generated from this. */
  readonly watchedChildren: readonly WatchedChild[];
  /** Kinds that are read but not watched. RBAC is generated from this. */
  readonly reads: readonly ResourceType[];
  readonly validator: BackendValidator;
  readonly mutator: BackendMutator;
}

export interface BackendCapabilities {
  /** Supported types of sources. */
  readonly sources: readonly ImageSource['type'][];
  /** Clones may be encrypted or decrypted. Default: plain copies only. */
  readonly encrypts?: true;
  /** Credentials of a source that reach what fetches it. Default: none. */
  readonly passes?: readonly Credential[];
  /** An upload is one request. Default: an upload is sent in parts, and an interrupted one resumes. */
  readonly uploadsWhole?: true;
  /** The source of a copy must be in the namespace of the image. Default: any namespace. */
  readonly copiesNearby?: true;
}

/** A product is installed if its kind is served. */
export interface Need {
  readonly type: ResourceType;
  /** Namespace in which the kind is listed. */
  readonly namespace: string;
  /** What a user should do if it is not installed. */
  readonly because: string;
}

/** How a disk is created from an image. */
export type RootDisk =
  /** An empty claim of this class: the storage fills it. */
  | { readonly is: 'class'; readonly className: string }
  /** A copy of the golden volume, in the image's namespace. */
  | { readonly is: 'copy'; readonly volume: string; readonly snapshot?: string | undefined };

/**
 * Rules in addition to those of the kind and to `image.faults`. Each method returns all faults at once, none if the request is valid. Look-ups
 * are bounded: one object, or one page.
 */
export interface BackendValidator {
  create(image: Image, kube: KubeClient): readonly Fault[] | Promise<readonly Fault[]>;
  update(before: Image, after: Image): readonly Fault[];
  delete(image: Image): readonly Fault[];
}

export interface BackendMutator {
  /**
   * Parameters of the storage class that the backend creates for an image, decided once at creation: those of its template class, else those
   * `asked` for. `undefined` if the backend creates no class.
   */
  classParameters(
    asked: Readonly<Record<string, string>> | undefined,
    template: StorageClass | undefined,
  ): Readonly<Record<string, string>> | undefined;
}

/** Whether the product that a backend requires is installed. */
export const isInstalled = async (kube: KubeClient, { type, namespace }: Need): Promise<boolean> =>
  (await tolerate(kube.list(type, { namespace, limit: 1 }), isNotFound)) !== undefined;
