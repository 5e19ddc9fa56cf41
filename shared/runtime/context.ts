// What is known about the invocation in progress, without passing it by hand: set by the chassis, read by the log and the clients.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Trace, Tracer } from '#shared/runtime/trace.ts';

export interface InvocationContext {
  /** Which function runs. */
  readonly function?: string;
  readonly eventId?: string;
  readonly trace?: Trace;
  /** Takes spans; left out: nobody records. */
  readonly tracer?: Tracer;
  /** The object concerned, `Kind namespace/name`. */
  readonly object?: string;
}

const storage = new AsyncLocalStorage<InvocationContext>();

export const currentContext = (): InvocationContext => storage.getStore() ?? {};

/** Runs `work` with `context` added to what is known already. */
export const withContext = <T>(context: InvocationContext, work: () => T): T =>
  storage.run({ ...currentContext(), ...context }, work);
