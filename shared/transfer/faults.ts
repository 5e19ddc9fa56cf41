// Everything that can go wrong with a transfer. Apart from report.ts, so that workers need no schema library.

/**
 * Stable codes of everything that can go wrong with a transfer, and whether another attempt can help.
 * They become the reason of the image's Ready condition.
 */
export const transferFaults = {
  SourceNotFound: { retryable: false },
  SourceForbidden: { retryable: false },
  SourceAddressRefused: { retryable: false },
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
