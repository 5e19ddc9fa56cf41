// The context of the current invocation, available without passing it as a parameter: set by the function runtime, read by the log and the
// clients.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Trace, Tracer } from '#shared/runtime/trace.ts';

export interface InvocationContext {
  /** Name of the function. */
  readonly function?: string;
  readonly eventId?: string;
  readonly trace?: Trace;
  /** Receives spans. Default: no tracing. */
  readonly tracer?: Tracer;
  /** The object concerned, `Kind namespace/name`. */
  readonly object?: string;
}

const storage = new AsyncLocalStorage<InvocationContext>();

export const currentContext = (): InvocationContext => storage.getStore() ?? {};

/** Runs `work` with `context` merged into the current context. */
export const withContext = <T>(context: InvocationContext, work: () => T): T =>
  storage.run({ ...currentContext(), ...context }, work);
