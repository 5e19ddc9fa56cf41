// The internal model of an export, for either form: a claim that is read, and a destination.
import type { StoredResult } from '#shared/transfer/report.ts';
import type { Filled, ImageState } from '#shared/populate/filled.ts';
import type { Source } from '#shared/populate/source.ts';

export interface VolumeExport extends Filled {
  readonly source: ExportSource;
  /** `undefined` only if `faults` explains why. */
  readonly destination: ExportDestination | undefined;
  readonly state: ExportState;
}

export type ExportSource =
  | { readonly is: 'claim'; readonly name: string }
  /** A VirtualMachineVolume, and its existing or future claim. */
  | { readonly is: 'volume'; readonly name: string; readonly claimName: string };

export type ExportDestination =
  | { readonly is: 'store'; readonly object: Source<'object' | 's3'> }
  | { readonly is: 'local'; readonly claimName: string; readonly podName: string };

export interface ExportState extends ImageState {
  /** The source of the Job: a snapshot, or the claim itself. */
  readonly from?: 'snapshot' | 'claim' | undefined;
  readonly object?: StoredResult | undefined;
  /** Why it fails, while its data in the store is not removed yet. */
  readonly failing?: { readonly reason: string; readonly message: string } | undefined;
}

/** Location of an object, for messages and status: without secrets. */
export const locationOf = ({ object }: Extract<ExportDestination, { is: 'store' }>): string => {
  if (object.type === 'object') return `s3://${object.bucket}/${object.key}`;
  return `${object.endpoint.replace(/\/+$/, '')}/${object.bucket}/${object.key}`;
};
