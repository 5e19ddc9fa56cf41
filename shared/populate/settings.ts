// Settings of the operator for work that fills volumes. Read in one place from the configuration of the functions and passed to every plan.
import type { CloudEndpoints } from '#shared/clients/cloud/endpoints.ts';
import type { ServerReach } from '#shared/clients/http/reach.ts';
import type { MirrorAccess } from '#shared/clients/http/mirrors.ts';
import type { Toleration } from '#shared/api/foreign/core.ts';
import { release } from '#shared/api/names.ts';
import type { RegistryAccess } from '#shared/clients/registry/mirrors.ts';
import type { Proxies } from '#shared/clients/http/proxy.ts';

export interface PopulateSettings extends RegistryAccess, MirrorAccess {
  readonly transferImage: string;
  /** Command of the container: starts transfer-job in that image. */
  readonly transferCommand: readonly string[];
  /** OCI image of boot-job, which boots versions of golden images by QEMU. */
  readonly bootImage: string;
  /** What a pod requests to be given /dev/kvm. Default: nothing; a guest is emulated where its pod has no such device. */
  readonly kvmResource?: string | undefined;
  /** Default: the default account of the namespace. Its token is never mounted. */
  readonly transferServiceAccount?: string | undefined;
  /** Requests and limits of the container, as in a Pod. */
  readonly transferResources: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Jobs that open a block device run as root, which owns it, without any capability; else as the user of guests. */
  readonly devicesAsRoot: boolean;
  /** Scheduling and priority of pods, set by the operator; requests of an owner take precedence. */
  readonly placement?: Placement | undefined;
  /** Storage for files that cannot be processed as a stream. Default: the disk of the node. */
  readonly scratch?: ScratchVolume | undefined;
  /** CIDRs of loopback, link-local or metadata addresses that sources may use nevertheless. */
  readonly allowedAddresses: readonly string[];
  /** Servers that may be asked for the object, as limits of its namespace have it. Default: every server. */
  readonly reach?: ServerReach | undefined;
  /** Default: no proxy. */
  readonly proxies?: Proxies | undefined;
  /** Stores and token services of the clouds. Default: the public ones. */
  readonly clouds?: CloudEndpoints | undefined;
  /** PEM certificates that an administrator of Harvester trusts, for storage that fetches by itself; `proxies.ca` includes them. */
  readonly additionalCa?: string | undefined;
  /** Default: images from an object store are rejected. */
  readonly objectStore?: ObjectStoreSettings | undefined;
  /** URL of the transfer function, where upload Jobs fetch the keys of its tokens. Default: uploads are rejected. */
  readonly transferUrl?: string | undefined;
  /** Seconds to wait for the first data of an upload. */
  readonly uploadIdleSeconds: number;
  /** Seconds that the data of an unfinished upload is kept after its Job has ended for want of more. */
  readonly uploadKeepSeconds: number;
  /** URL for progress events of transfer-job. Default: none are sent. */
  readonly eventSink?: string | undefined;
  /** Audience of the token for that URL. Default: no token. */
  readonly eventAudience?: string | undefined;
  /** URL for traces of transfer-job. Default: no tracing. */
  readonly traceEndpoint?: string | undefined;
  /** A source that sends fewer bytes than this within `slowestSeconds` has stalled. */
  readonly slowestBytes: number;
  readonly slowestSeconds: number;
  /** Timeout of one attempt, in seconds. */
  readonly attemptSeconds: number;
  /** Seconds for a child to become usable (bound, running, ready) before the image is stuck and fails. */
  readonly childSeconds: number;
  /** Share of a volume that the file system uses for itself. */
  readonly filesystemOverhead: number;
  /** The same for single classes, by name. Default: no exceptions. */
  readonly classOverheads?: Readonly<Record<string, number>> | undefined;
}

/** Fields of a pod. Volumes that only some nodes reach need none of this: the scheduler considers their topology. */
export interface Placement {
  readonly nodeSelector?: Readonly<Record<string, string>> | undefined;
  readonly tolerations?: readonly Toleration[] | undefined;
  readonly priorityClassName?: string | undefined;
}

/** An ephemeral claim of the pod, which counts towards the quota of its namespace. */
export interface ScratchVolume {
  readonly storageClassName: string;
  /** Quantity. */
  readonly size: string;
}

/** The store of images that name an object but no store. */
export interface ObjectStoreSettings {
  /** URL of the store. */
  readonly endpoint: string;
  readonly region: string;
  /** `endpoint/bucket/key`, or else `bucket.endpoint/key`. */
  readonly pathStyle: boolean;
  /** Secret with its credentials in the namespace of each image. Default: requests are not signed. */
  readonly secretName?: string | undefined;
}

export const defaultSettings: PopulateSettings = {
  transferImage: `bullion/transfer-job:${release}`,
  transferCommand: ['node', 'functions/transfer-job/index.ts'],
  bootImage: `bullion/boot-job:${release}`,
  transferResources: {
    requests: { cpu: '100m', memory: '128Mi' },
    limits: { cpu: '2', memory: '512Mi' },
  },
  devicesAsRoot: false,
  allowedAddresses: [],
  plainRegistries: [],
  uploadIdleSeconds: 3600,
  uploadKeepSeconds: 24 * 3600,
  // 1 KiB a second: a disk of 100 MiB would take a day.
  slowestBytes: 120 * 1024,
  slowestSeconds: 120,
  attemptSeconds: 6 * 3600,
  childSeconds: 600,
  filesystemOverhead: 0.06,
};
