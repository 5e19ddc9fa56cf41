// The errors the library throws. A surprise is a throw; an expected result is an Outcome.

export interface AppErrorOptions {
  readonly cause?: unknown;
  /** Seconds the other side asked us to wait (Retry-After). */
  readonly retryAfterSeconds?: number;
}

/** Base of all our errors. `code` is stable and may be matched; message text may not. */
export abstract class AppError extends Error {
  abstract readonly code: string;
  /** Whether doing the same again later can succeed. */
  abstract readonly retryable: boolean;
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Kinds of failure, and whether trying again can help. */
export type FaultTable<Code extends string> = Readonly<Record<Code, { readonly retryable: boolean }>>;

/** An error whose code is one of a table's, which also says whether trying again can help. */
export abstract class TableError<Code extends string> extends AppError {
  override readonly code: Code;
  override readonly retryable: boolean;

  constructor(table: FaultTable<Code>, code: Code, message: string, options: AppErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.retryable = table[code].retryable;
  }
}

/** What the caller gave is wrong; `faults` names every fault at once, each with its field path. */
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

/** Somebody else changed or created the thing first; read again and decide anew. */
export class Conflict extends AppError {
  override readonly code = 'Conflict' as const;
  override readonly retryable = true;
}

/** The other side is down, slow or overloaded. */
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
export const isRetryable = (error: unknown): boolean => error instanceof AppError && error.retryable;

/** The message of anything thrown, for logs and conditions. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** How Kubernetes says that something failed: the body of an answer as kubectl, virtctl and client-go read it. */
export const statusBody = (code: number, reason: string, message: string): string =>
  JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason, message, code });
