// All faults of a transfer, and the one error of the data plane: a stable reason, whether to retry, and a message for users. Separate from
// report.ts, so that workers do not load the schema library.
import { AppError, type AppErrorOptions, messageOf } from '#shared/runtime/errors.ts';

// All faults of a transfer. Separate from report.ts, so that workers do not load the schema library.

/** Stable codes of all faults of a transfer, and whether another attempt can help. They become the reason of the image's Ready condition. */
export const transferFaults = {
  SourceNotFound: { retryable: false },
  SourceForbidden: { retryable: false },
  SourceAddressRefused: { retryable: false },
  SourceNotAllowed: { retryable: false },
  SourceRefused: { retryable: false },
  NotADiskImage: { retryable: false },
  UnsupportedFormat: { retryable: false },
  ImageEncrypted: { retryable: false },
  ImageCorrupt: { retryable: false },
  ImageTruncated: { retryable: false },
  ExternalReference: { retryable: false },
  ImageTooLarge: { retryable: false },
  ChecksumMismatch: { retryable: false },
  UploadExpired: { retryable: false },
  UploadPaused: { retryable: true },
  DeviceForbidden: { retryable: false },
  InvalidSpec: { retryable: false },
  SourceUnreachable: { retryable: true },
  SourceUnavailable: { retryable: true },
  SourceInterrupted: { retryable: true },
  SourceStalled: { retryable: true },
  SourceChanged: { retryable: true },
  TargetFull: { retryable: true },
  TargetFailed: { retryable: true },
  DeadlineExceeded: { retryable: true },
  Cancelled: { retryable: true },
  InternalFault: { retryable: true },
} as const satisfies Record<string, { readonly retryable: boolean }>;

export type TransferFault = keyof typeof transferFaults;

/** A Job that ends for want of bytes: its client starts the next one, not the Job controller. */
export const uploadPaused = 'UploadPaused' satisfies TransferFault;

const ofFiles: ReadonlySet<TransferFault> = new Set([
  'NotADiskImage',
  'UnsupportedFormat',
  'ImageEncrypted',
  'ImageCorrupt',
  'ImageTruncated',
  'ExternalReference',
  'ImageTooLarge',
  'ChecksumMismatch',
]);

/** Whether another file may succeed. */
export const isFileFault = (error: unknown): error is TransferError =>
  isTransferError(error) && ofFiles.has(error.code);

export interface TransferErrorOptions extends AppErrorOptions {
  /** The pass cannot resume, but a new one from the first byte may succeed. */
  readonly startOver?: boolean;
  /** Overrides the default of the reason. */
  readonly retryable?: boolean;
  /** Of an export: nothing was begun at its destination, which therefore has no parts of it. */
  readonly sentNothing?: boolean;
}

export class TransferError extends AppError {
  override readonly code: TransferFault;
  override readonly retryable: boolean;
  readonly startOver: boolean;
  readonly sentNothing: boolean;

  constructor(code: TransferFault, message: string, options: TransferErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.retryable = options.retryable ?? transferFaults[code].retryable;
    this.startOver = options.startOver ?? false;
    this.sentNothing = options.sentNothing ?? false;
  }
}

export const isTransferError = (error: unknown): error is TransferError => error instanceof TransferError;

const noSpaceCodes = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

const systemCodeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' && /^E[A-Z0-9]+$/.test(error.code)
    ? error.code
    : undefined;

/** Pods do not run as root, and by default container runtimes pass devices that only root may open. */
const refusalCodes = new Set(['EACCES', 'EPERM']);

/**
 * Maps an error of opening a volume if the node denies access to a block device. Another attempt would fail on every node with the same
 * configuration. `undefined` for other errors: a file without permission is another problem.
 */
export const toDeviceFault = (error: unknown, path: string, isDevice: boolean): TransferError | undefined => {
  const code = systemCodeOf(error);
  if (!isDevice || code === undefined || !refusalCodes.has(code)) return undefined;
  const message = `the node does not let user ${process.getuid?.() ?? 'of this pod'} open the block device ${path} (${code}): set device_ownership_from_security_context = true in the CRI plugin of containerd, or in [crio.runtime] of CRI-O, on every node (https://kubernetes.io/blog/2021/11/09/non-root-containers-and-devices/), then retry. Without it: set BLOCK_DEVICES_AS_ROOT=true on the functions, or ask for volumeMode Filesystem`;
  return new TransferError('DeviceForbidden', message, { cause: error });
};

/** The volume or its storage: disks that are larger than the volume were refused before. */
export const targetFull = (where: string, cause?: unknown): TransferError => {
  const code = systemCodeOf(cause);
  const message = `no space left at ${where}${code === undefined ? '' : ` (${code})`}: the volume, or the storage behind it, is full; free space there, or use a larger volume`;
  return new TransferError('TargetFull', message, { cause });
};

/** Maps an error of a write to the target or to scratch space. `where` is the path. Other errors are returned unchanged. */
export const toWriteFault = (error: unknown, where: string): unknown => {
  const code = systemCodeOf(error);
  if (code === undefined || isTransferError(error)) return error;
  if (noSpaceCodes.has(code)) return targetFull(where, error);
  return new TransferError('TargetFailed', `cannot write to ${where}: ${messageOf(error)}`, { cause: error });
};

/** Runs work whose system errors are faults of the target. */
export const writing = async <T>(where: string, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    throw toWriteFault(error, where);
  }
};
