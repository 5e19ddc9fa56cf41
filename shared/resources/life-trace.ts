// One trace for all that is done for an object: each pass is a span of it, and its life, from its creation to where it came to rest, is the root.
import { currentContext } from '#shared/runtime/context.ts';
import { spanTime, traceOfObject, withSpan } from '#shared/runtime/span.ts';
import type { ReconciledState } from '#shared/resources/reconciler.ts';
import type { Pass } from '#shared/resources/reconcile.ts';

const nameOf = ({ subject: { ref } }: Pass): string =>
  `${ref.kind} ${ref.namespace === undefined ? '' : `${ref.namespace}/`}${ref.name}`;

/** Does `work` in the trace of the object, linked to whatever woke us. */
export const inTrace = <T>(pass: Pass, work: () => Promise<T>): Promise<T> => {
  const { trace, tracer } = currentContext();
  if (tracer === undefined) return work();
  const { ref, state } = pass.subject;
  const attributes = { 'bullion.object': nameOf(pass), phase: state.phase, reason: state.reason };
  const links = trace === undefined ? [] : [trace];
  return withSpan('reconcile', { parent: traceOfObject(ref.uid), links, attributes }, work);
};

/** Told again for the same end it is the same span. */
export const recordLife = (pass: Pass, state: ReconciledState): void => {
  const { tracer } = currentContext();
  if (tracer === undefined) return;
  const { reconciler, subject, object } = pass;
  const ending = reconciler.announcementOf(subject, state);
  if (ending === undefined || ending === subject.state.announced) return;
  const { traceId, spanId } = traceOfObject(subject.ref.uid);
  tracer.record({
    traceId,
    spanId,
    name: nameOf(pass),
    kind: 'internal',
    startMs: Date.parse(object.metadata.creationTimestamp ?? '') || spanTime(),
    endMs: spanTime(),
    attributes: { phase: state.phase, reason: state.reason, failures: state.failures },
    ...(state.phase === 'Failed' ? { error: state.message } : {}),
  });
};
