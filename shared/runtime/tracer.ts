// Sends spans to a collector in the background. Called at the edge; the exporter is loaded with the first span, and never where none is asked for.
import type { InvocationContext } from '#shared/runtime/context.ts';
import { withContext } from '#shared/runtime/context.ts';
import type { DirectApp } from '#shared/runtime/direct.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';
import type { Span, Tracer } from '#shared/runtime/trace.ts';

/** Milliseconds spans wait for others to be sent with. */
const lingerMs = 1_000;
/** Spans kept while the collector is slow; more are dropped, since nobody waits for telemetry. */
const mostWaiting = 2_048;

export interface TracerOptions {
  /** Base URL of an OTLP/HTTP collector; left out: nothing is recorded. */
  readonly endpoint: string | undefined;
  /** Name of the function. */
  readonly service: string;
  readonly log: Logger;
}

export const createTracer = ({ endpoint, service, log }: TracerOptions): Tracer | undefined => {
  if (endpoint === undefined) return undefined;
  let waiting: Span[] = [];
  let timer: NodeJS.Timeout | undefined;
  let sending = Promise.resolve();
  let isReported = false;
  const send = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const spans = waiting;
    waiting = [];
    if (spans.length === 0) return;
    try {
      const { exportSpans } = await import('#shared/runtime/otlp.ts');
      await exportSpans({ endpoint, service }, spans);
      isReported = false;
    } catch (error) {
      // Once for each outage.
      if (!isReported) log.warn('spans were lost', { count: spans.length, error: messageOf(error) });
      isReported = true;
    }
  };
  // One after the other: what comes while one is on its way waits, and is counted.
  const flush = (): Promise<void> => (sending = sending.then(send));
  const record = (span: Span): void => {
    if (waiting.length >= mostWaiting) return;
    waiting.push(span);
    timer ??= setTimeout(() => void flush(), lingerMs).unref();
  };
  return { record, flush };
};

type App = { fetch(request: Request): Response | Promise<Response> } & Partial<DirectApp>;

/** The app, with a tracer in the context of each request; as it is where there is none. */
export const traced = <A extends App>(app: A, tracer: Tracer | undefined): A | Pick<App, 'fetch'> => {
  if (tracer === undefined) return app;
  const context: InvocationContext = { tracer };
  return { fetch: (request) => withContext(context, () => app.fetch(request)) };
};
