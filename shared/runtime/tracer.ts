// Sends spans to a collector in the background. Created by the entry points; the exporter is loaded with the first span, and never if no
// collector is configured.
import { type InvocationContext, type Span, type Tracer, withContext } from './trace.ts';
import type { DirectApp } from '#shared/runtime/direct.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

/** Milliseconds for which spans are collected before they are sent together. */
const lingerMs = 1_000;
/** Maximum of queued spans while the collector is slow; more are dropped, because telemetry is not worth the memory. */
const mostWaiting = 2_048;

export interface TracerOptions {
  /** Base URL of an OTLP/HTTP collector. Default: no tracing. */
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
      // Once per outage.
      if (!isReported) log.warn('spans were lost', { count: spans.length, error: messageOf(error) });
      isReported = true;
    }
  };
  // One request at a time: spans that end meanwhile wait for the next one, and count towards the limit.
  const flush = (): Promise<void> => (sending = sending.then(send));
  const record = (span: Span): void => {
    if (waiting.length >= mostWaiting) return;
    waiting.push(span);
    timer ??= setTimeout(() => void flush(), lingerMs).unref();
  };
  return { record, flush };
};

type App = { fetch(request: Request): Response | Promise<Response> } & Partial<DirectApp>;

/** The app, with a tracer in the context of each request; without a tracer, the app itself. */
export const traced = <A extends App>(app: A, tracer: Tracer | undefined): A | Pick<App, 'fetch'> => {
  if (tracer === undefined) return app;
  const context: InvocationContext = { tracer };
  return { fetch: (request) => withContext(context, () => app.fetch(request)) };
};
