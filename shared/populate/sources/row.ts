// What is known of a type of source: the columns of the table in populate/source.ts.
import type { Container, PodVolume } from '#shared/api/foreign/core.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import type { TransferSource } from '#shared/transfer/spec.ts';

/** For whom a Job runs, and how this installation is set up. */
export interface JobContext {
  readonly owner: Pick<ObjectRef, 'uid'>;
  readonly settings: PopulateSettings;
}

/** What a pod has mounted beside its target. */
export interface SourceMounts {
  readonly volumes: readonly PodVolume[];
  readonly mounts: NonNullable<Container['volumeMounts']>;
  readonly devices: NonNullable<Container['volumeDevices']>;
}

export const noMounts: SourceMounts = { volumes: [], mounts: [], devices: [] };

/** What an image does while its storage brings the bytes by itself. */
interface Moving {
  readonly phase: 'Cloning' | 'Downloading';
  readonly doing: string;
}

export const downloading: Moving = { phase: 'Downloading', doing: 'downloading' };

export interface SourceRow<S> {
  /** For people. */
  readonly name: string;
  /** A server that shows a certificate: further authorities, proxies and changed credentials concern it. */
  readonly isServer: boolean;
  /** One file, which a checksum vouches for. What people send is taken from them, whoever else has it. */
  readonly isFile: boolean;
  /** What it holds, where it names that by itself; `undefined` where that can change. */
  pinOf?(source: S): string | undefined;
  readonly moving: Moving;
}

/** A Job fetches it, or is sent it. */
export interface JobRow<S> extends SourceRow<S> {
  /** What is fetched can be inspected first; what is sent is described by its sender. */
  readonly arrives: 'fetched' | 'sent';
  /** Its credentials are names of mounted files: of what is written here, `transfer/sealed.ts` seals all texts that it does not know to be open. */
  spec(source: S, context: JobContext): TransferSource;
  mounts(source: S, context: JobContext): SourceMounts;
}

/** A volume of the cluster that is copied by snapshot, by its storage, or by a Job that reads it as a claim. */
export interface CopiedRow<S> extends SourceRow<S> {
  readonly arrives: 'copied';
}

/** Its storage brings it without us. */
export interface RestoredRow<S> extends SourceRow<S> {
  readonly arrives: 'restored';
}
