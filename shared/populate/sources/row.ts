// Columns of the table of source types in populate/source.ts.
import type { Container, PodVolume } from '#shared/api/foreign/core.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import type { TransferSource } from '#shared/transfer/spec.ts';

/** The owner of a Job and the settings of this installation. */
export interface JobContext {
  readonly owner: Pick<ObjectRef, 'uid'>;
  readonly settings: PopulateSettings;
}

/** Mounts of a pod besides its target. */
export interface SourceMounts {
  readonly volumes: readonly PodVolume[];
  readonly mounts: NonNullable<Container['volumeMounts']>;
  readonly devices: NonNullable<Container['volumeDevices']>;
}

export const noMounts: SourceMounts = { volumes: [], mounts: [], devices: [] };

/** State of an image while its storage restores the bytes by itself. */
interface Moving {
  readonly phase: 'Cloning' | 'Downloading';
  readonly doing: string;
}

export const downloading: Moving = { phase: 'Downloading', doing: 'downloading' };
export const receiving: Moving = { phase: 'Downloading', doing: 'receiving the upload' };

/** A server with a certificate: additional CAs, proxies, changed credentials and the limit of transfers per host apply. */
type ServerColumns<S> =
  | { readonly isServer: false; readonly hostOf?: never }
  | {
      readonly isServer: true;
      /** `host[:port]` that the bytes come from; `undefined`: the URL is not valid. */
      hostOf(source: S, context: JobContext): string | undefined;
    };

/** What an image may name for its source: a Secret, a ConfigMap with certificate authorities, an identity of its pod. */
export type Credential = 'secretRef' | 'certConfigMap' | 'workloadIdentity';

interface PlainColumns<S> {
  /** For messages. */
  readonly name: string;
  /** What it can be read with. */
  readonly takes: readonly Credential[];
  /** One file that a checksum can verify. An upload is always received, even if another volume has the content. */
  readonly isFile: boolean;
  /** Its content, if the source identifies it; `undefined` if it can change. */
  pinOf?(source: S): string | undefined;
  readonly moving: Moving;
}

export type SourceRow<S> = PlainColumns<S> & ServerColumns<S>;

/** Filled by a Job that fetches it or receives it. */
export type JobRow<S> = SourceRow<S> & {
  /** A fetched source can be inspected first; an upload is described by its sender. */
  readonly arrives: 'fetched' | 'sent';
  /** Its credentials are names of mounted files: of the returned spec, `transfer/sealed.ts` seals every text that is not known to be public. */
  spec(source: S, context: JobContext): TransferSource;
  mounts(source: S, context: JobContext): SourceMounts;
};

/** A volume of the cluster that is copied by snapshot, by its storage, or by a Job that reads it as a claim. */
export type CopiedRow<S> = SourceRow<S> & {
  readonly arrives: 'copied';
};

/** The storage restores it without a Job. */
export type RestoredRow<S> = SourceRow<S> & {
  readonly arrives: 'restored';
};
