// How a registry refuses. The text is the registry's own, redacted, with what to do about it.
import { type AppErrorOptions, TableError } from '#shared/runtime/errors.ts';

/** Kinds of failure, and whether asking again can help. */
export const registryFaults = {
  /** Credentials are missing or not accepted. */
  Unauthorized: { retryable: false },
  /** No such repository, tag, digest or blob. */
  ImageNotFound: { retryable: false },
  /** The index has nothing for this platform. */
  PlatformAbsent: { retryable: false },
  /** What arrived is not what its digest says. */
  DigestMismatch: { retryable: true },
  /** Not an image, or one we do not understand. */
  InvalidImage: { retryable: false },
  /** 429 or 503: the registry wants to be left alone, and may say for how long. */
  RateLimited: { retryable: true },
  /** Another 5xx, or an answer that makes no sense. */
  RegistryFailed: { retryable: true },
} as const;
export type RegistryFault = keyof typeof registryFaults;

export class RegistryFailure extends TableError<RegistryFault> {
  constructor(code: RegistryFault, message: string, options: AppErrorOptions = {}) {
    super(registryFaults, code, message, options);
  }
}
