// Watches the Kubernetes API and posts what Knative's ApiServerSource would post. Used by the local cluster in place of that source.
import { randomUUID } from 'node:crypto';
import { type Sleep, sleep as realSleep, wordsOf } from '#events/sender.ts';
import { type ForwardMode, type Verb, toObjectEvent } from '#events/forward/convert.ts';
import { runStream } from '#events/forward/stream.ts';
import type { Send } from '#events/sender.ts';
import { isGuessable } from '#events/build.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Logger } from '#shared/runtime/log.ts';

export interface ForwardedResource {
  readonly type: ResourceType;
  readonly labelSelector?: string | undefined;
}

export interface ForwarderOptions {
  readonly client: KubeClient;
  readonly resources: readonly ForwardedResource[];
  readonly mode: ForwardMode;
  /** One watch for each; a single one over all namespaces when unset. */
  readonly namespaces?: readonly string[] | undefined;
  /** Forwards only objects whose controller is of this kind. */
  readonly owner?: { readonly apiVersion: string; readonly kind: string } | undefined;
  readonly extensions?: Readonly<Record<string, string>>;
  readonly replay?: 'none' | 'add';
  /** Should retry like a Knative source: see createSender. */
  readonly send: Send;
  readonly log: Logger;
  readonly newId?: () => string;
  readonly now?: () => Date;
  readonly sleep?: Sleep;
  /** Counters to increment instead of new ones. */
  readonly counts?: { sent: number; lost: number };
}

export interface Forwarder {
  /** Resolves just before every watch starts: later changes are not missed. */
  readonly ready: Promise<void>;
  /** Events delivered, and events lost after all retries. */
  readonly counts: { readonly sent: number; readonly lost: number };
  /** Resolves when all streams have ended; an event in flight is dropped. */
  stop(): Promise<void>;
}

export const startForwarder = (options: ForwarderOptions): Forwarder => {
  const stop = new AbortController();
  const { counts = { sent: 0, lost: 0 } } = options;
  const forward = createForward(options, counts, stop.signal);
  const streams = options.resources.flatMap((resource) =>
    (options.namespaces ?? [undefined]).map((namespace) => ({ ...resource, namespace })),
  );
  warnOfSkippedKinds(options);
  const started = streams.map((stream) => {
    const { promise: ready, resolve: onReady } = Promise.withResolvers<void>();
    const { client, log, replay = 'none', sleep = realSleep } = options;
    const common = { client, log, replay, sleep, onChange: forward, onReady, signal: stop.signal };
    return { ready, ended: runStream({ ...stream, ...common }) };
  });
  return {
    ready: Promise.all(started.map(({ ready }) => ready)).then(() => undefined),
    counts,
    stop: async () => {
      stop.abort();
      await Promise.all(started.map(({ ended }) => ended));
    },
  };
};

const createForward = (
  options: ForwarderOptions,
  counts: { sent: number; lost: number },
  signal: AbortSignal,
): ((verb: Verb, object: KubeObject) => Promise<void>) => {
  const { mode, extensions = {}, owner, send, log, newId = randomUUID, now = () => new Date() } = options;
  const convert = { mode, extensions, source: options.client.server ?? '', newId, now };
  return async (verb, object) => {
    if (owner !== undefined && !isControlledBy(object, owner)) return;
    const event = toObjectEvent(verb, object, convert);
    const { isDelivered, attempts, last } = await send(event, signal);
    counts[isDelivered ? 'sent' : 'lost'] += 1;
    if (!isDelivered && !signal.aborted) {
      log.error('event lost', {
        eventId: event.id,
        subject: event.subject,
        type: event.type,
        attempts,
        fault: wordsOf(last),
      });
    }
  };
};

const isControlledBy = (object: KubeObject, owner: { readonly apiVersion: string; readonly kind: string }): boolean =>
  (object.metadata.ownerReferences ?? []).some(
    ({ controller, apiVersion, kind }) => controller === true && apiVersion === owner.apiVersion && kind === owner.kind,
  );

const warnOfSkippedKinds = ({ resources, log }: ForwarderOptions): void => {
  for (const { type } of resources) {
    if (!isGuessable(type)) log.warn('Knative would skip this kind', { kind: type.kind, plural: type.plural });
  }
};
