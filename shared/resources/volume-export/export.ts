// An export as its plan sees it, whichever shape the user wrote: a claim that is read, and a place the file is put.
import type { StoredResult } from '#shared/transfer/report.ts';
import type { Filled, ImageState } from '#shared/populate/filled.ts';
import type { Source } from '#shared/populate/source.ts';

export interface VolumeExport extends Filled {
  readonly source: ExportSource;
  /** `undefined` only where `faults` says why. */
  readonly destination: ExportDestination | undefined;
  readonly state: ExportState;
}

export type ExportSource =
  | { readonly is: 'claim'; readonly name: string }
  /** A VirtualMachineVolume, and the claim it is or will be. */
  | { readonly is: 'volume'; readonly name: string; readonly claimName: string };

export type ExportDestination =
  | { readonly is: 'store'; readonly object: Source<'object' | 's3'> }
  | { readonly is: 'local'; readonly claimName: string; readonly podName: string };

export interface ExportState extends ImageState {
  /** What the Job reads: a snapshot, or the claim itself. */
  readonly from?: 'snapshot' | 'claim' | undefined;
  readonly object?: StoredResult | undefined;
  /** Why it fails, while what it began in the store is still there. */
  readonly failing?: { readonly reason: string; readonly message: string } | undefined;
}

/** Where an object is, for messages and status: without anything secret. */
export const locationOf = ({ object }: Extract<ExportDestination, { is: 'store' }>): string => {
  if (object.type === 'object') return `s3://${object.bucket}/${object.key}`;
  return `${object.endpoint.replace(/\/+$/, '')}/${object.bucket}/${object.key}`;
};
