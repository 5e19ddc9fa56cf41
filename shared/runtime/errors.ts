// The errors the library throws. An unexpected failure is an exception; an expected result is an Outcome.

export interface AppErrorOptions {
  readonly cause?: unknown;
  /** Seconds to wait, as the server requested (Retry-After). */
  readonly retryAfterSeconds?: number;
}

/** Base of all our errors. `code` is stable and may be compared; the message may change. */
export abstract class AppError extends Error {
  abstract readonly code: string;
  /** Whether a retry can succeed. */
  abstract readonly retryable: boolean;
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Codes of failures, and whether a retry can succeed. */
export type FaultTable<Code extends string> = Readonly<Record<Code, { readonly retryable: boolean }>>;

/** An error whose code comes from a table that also states whether a retry can succeed. */
export abstract class TableError<Code extends string> extends AppError {
  override readonly code: Code;
  override readonly retryable: boolean;

  constructor(table: FaultTable<Code>, code: Code, message: string, options: AppErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.retryable = table[code].retryable;
  }
}

/** The caller's input is invalid; `faults` lists every fault with its field path. */
export class InvalidInput extends AppError {
  override readonly code = 'InvalidInput' as const;
  override readonly retryable = false;
  readonly faults: readonly Fault[];

  constructor(message: string, faults: readonly Fault[] = [], options: AppErrorOptions = {}) {
    super(message, options);
    this.faults = faults;
  }
}

/** One thing wrong with one field. `field` is a Kubernetes field path such as `spec.source.http`. */
export interface Fault {
  readonly field: string;
  readonly message: string;
}

export class NotFound extends AppError {
  override readonly code = 'NotFound' as const;
  override readonly retryable = false;
}

/** The object was changed or created by another writer: read it again and decide again. */
export class Conflict extends AppError {
  override readonly code = 'Conflict' as const;
  override readonly retryable = true;
}

/** The server is down, slow or overloaded. */
export class Unavailable extends AppError {
  override readonly code = 'Unavailable' as const;
  override readonly retryable = true;
}

export class Denied extends AppError {
  override readonly code = 'Denied' as const;
  override readonly retryable = false;
}

export const isNotFound = (error: unknown): error is NotFound => error instanceof NotFound;
export const isConflict = (error: unknown): error is Conflict => error instanceof Conflict;
/** What is wrong with one object, or has changed on it: work on others continues. */
export const isOfOneObject = (error: unknown): error is AppError =>
  error instanceof AppError && (!error.retryable || isConflict(error));
export const isRetryable = (error: unknown): boolean => error instanceof AppError && error.retryable;

/** The message of any thrown value, for logs and conditions. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A Kubernetes `Status` object: the body of an error response as kubectl, virtctl and client-go read it. */
export const statusBody = (code: number, reason: string, message: string): string =>
  JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason, message, code });
