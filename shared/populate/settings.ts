// How an operator shapes the work that fills volumes. One place, filled from the functions' configuration and passed to every plan.
import type { Toleration } from '#shared/api/foreign/core.ts';
import { release } from '#shared/api/names.ts';
import type { Proxies } from '#shared/clients/http/proxy.ts';

export interface PopulateSettings {
  /** OCI image of transfer-job. */
  readonly transferImage: string;
  /** Command of the container: where transfer-job starts in that image. */
  readonly transferCommand: readonly string[];
  /** Left out: the namespace's default account, whose token is never mounted. */
  readonly transferServiceAccount?: string | undefined;
  /** Requests and limits of the container, as a Pod has them. */
  readonly transferResources: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Jobs that open a block device run as root, which owns it, without any capability; else as the user of guests. */
  readonly devicesAsRoot: boolean;
  /** Where and how urgently pods run, as an operator says; what an owner asks for itself counts more. */
  readonly placement?: Placement | undefined;
  /** Where files lie that cannot be worked on as they arrive; left out: on the disk of the node. */
  readonly scratch?: ScratchVolume | undefined;
  /** CIDRs sources may point to although they are loopback, link-local or metadata addresses. */
  readonly allowedAddresses: readonly string[];
  /** Registries, as `host[:port]`, that are reached without TLS. */
  readonly plainRegistries: readonly string[];
  /** Left out: sources are reached directly. */
  readonly proxies?: Proxies | undefined;
  /** PEM certificates that an administrator of Harvester trusts, for who fetches in our place; `proxies.ca` has them as well. */
  readonly additionalCa?: string | undefined;
  /** Left out: images from an object store are refused. */
  readonly objectStore?: ObjectStoreSettings | undefined;
  /** URL of the transfer function, where upload Jobs fetch the keys of its tokens; left out: uploads are refused. */
  readonly transferUrl?: string | undefined;
  /** Seconds an upload may send nothing before it is given up. */
  readonly uploadIdleSeconds: number;
  /** Where transfer-job posts progress; left out: it posts none. */
  readonly eventSink?: string | undefined;
  /** Audience of the token it shows there; left out: it has none. */
  readonly eventAudience?: string | undefined;
  /** Where transfer-job sends its traces; left out: it makes none. */
  readonly traceEndpoint?: string | undefined;
  /** A source that sends fewer bytes than this within `slowestSeconds` has stalled. */
  readonly slowestBytes: number;
  readonly slowestSeconds: number;
  /** Seconds one attempt may take. */
  readonly attemptSeconds: number;
  /** Seconds a child may take to become usable (bound, running, ready) before the image says it is stuck and fails. */
  readonly childSeconds: number;
  /** Share of a volume that a file system keeps for itself. */
  readonly filesystemOverhead: number;
  /** The same for single classes, by their names; left out: none differs. */
  readonly classOverheads?: Readonly<Record<string, number>> | undefined;
}

/** Fields of a pod. Volumes that only some nodes reach need none of this: the scheduler goes by where they are. */
export interface Placement {
  readonly nodeSelector?: Readonly<Record<string, string>> | undefined;
  readonly tolerations?: readonly Toleration[] | undefined;
  readonly priorityClassName?: string | undefined;
}

/** A claim of the pod's own, which comes and goes with it and counts on the quota of its namespace. */
export interface ScratchVolume {
  readonly storageClassName: string;
  /** Quantity. */
  readonly size: string;
}

/** The store that images name objects of without saying where it is. */
export interface ObjectStoreSettings {
  /** URL of the store. */
  readonly endpoint: string;
  readonly region: string;
  /** `endpoint/bucket/key`, or else `bucket.endpoint/key`. */
  readonly pathStyle: boolean;
  /** Secret with its credentials in the namespace of each image. Left out: nothing is signed. */
  readonly secretName?: string | undefined;
}

export const defaultSettings: PopulateSettings = {
  transferImage: `bullion/transfer-job:${release}`,
  transferCommand: ['node', 'functions/transfer-job/index.ts'],
  transferResources: {
    requests: { cpu: '100m', memory: '128Mi' },
    limits: { cpu: '2', memory: '512Mi' },
  },
  devicesAsRoot: false,
  allowedAddresses: [],
  plainRegistries: [],
  uploadIdleSeconds: 3600,
  // 1 KiB a second: a disk of 100 MiB would take a day.
  slowestBytes: 120 * 1024,
  slowestSeconds: 120,
  attemptSeconds: 6 * 3600,
  childSeconds: 600,
  filesystemOverhead: 0.06,
};
