// Delivers one event to one Trigger: attempts, the reply, the dead letter. Called by broker.ts.
import { decodeEvent, isCloudEvent, encodeEvent } from '#events/message.ts';
import { type Attempt, type RetryPolicy, type Sleep, deliver, wordsOf } from '#events/sender.ts';
import type { CloudEvent, Message } from '#events/event.ts';
import type { Answer, Post } from '#events/post.ts';
import type { Limiter } from '#local-cluster/broker/limiter.ts';
import type { DeliverySpec, Trigger } from '#local-cluster/broker/manifest.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

/** An event inside the broker. The time to live is separate from it: subscribers never see it. */
export interface Envelope {
  readonly event: CloudEvent;
  /** Number of further replies that may follow from this event. */
  readonly ttl: number;
  /** Headers that a broker forwards. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A subscriber or dead letter sink, resolved. */
export interface Target {
  readonly url: string;
  readonly post: Post;
}

/** `lost` after all retries without a dead letter sink; `abandoned` if the broker stopped meanwhile. */
export type Fate = 'delivered' | 'deadLettered' | 'lost' | 'abandoned';

export interface DispatchOptions {
  readonly trigger: Trigger;
  readonly delivery: DeliverySpec;
  readonly brokerClass: BrokerClass;
  readonly policy: RetryPolicy;
  readonly subscriber: Target;
  /** Resolves when the dead letter was accepted. Default: undeliverable events are dropped. */
  readonly deadLetter?: ((event: CloudEvent, signal: AbortSignal) => Promise<boolean>) | undefined;
  /** URL for replies. */
  readonly replyUrl: string;
  /** Passes a reply to the broker; returns the status. */
  readonly reply: (envelope: Envelope) => Promise<number>;
  readonly limiter: Limiter;
  /** Attempts with the same key never overlap; undefined: no order. */
  readonly keyOf: (event: CloudEvent) => string | undefined;
  readonly log: Logger;
  readonly sleep: Sleep;
}

export const dispatch = async (envelope: Envelope, options: DispatchOptions, signal: AbortSignal): Promise<Fate> => {
  const { trigger, delivery, policy, subscriber, limiter, sleep } = options;
  const message = toMessage(envelope, trigger.metadata.namespace, delivery.format);
  let reply: Reply | undefined;
  const post = async (limit: AbortSignal): Promise<Answer> => {
    const judged = judge(await subscriber.post(subscriber.url, message, limit));
    reply = judged.reply;
    return judged.answer;
  };
  const result = await deliver(post, {
    policy,
    timeoutMs: delivery.timeout,
    sleep,
    signal,
    gate: (work) => limiter.run(options.keyOf(envelope.event), work),
  });
  if (!result.isDelivered) return bury(envelope.event, { dest: subscriber.url, attempt: result.last }, options, signal);
  if (reply === undefined) return 'delivered';
  const refusal = await sendReply(reply, envelope, options);
  if (refusal === undefined) return 'delivered';
  return bury(envelope.event, { dest: options.replyUrl, attempt: refusal }, options, signal);
};

/** Passes a reply to the broker; returns the answer of the ingress if it rejects it. */
const sendReply = async (reply: Reply, envelope: Envelope, options: DispatchOptions): Promise<Attempt | undefined> => {
  const status = typeof reply === 'string' ? 400 : await options.reply({ ...envelope, event: reply });
  if (status < 300) return undefined;
  const body = Buffer.from(typeof reply === 'string' ? reply : '');
  return { kind: 'answered', answer: { status, headers: new Headers(), body } };
};

const toMessage = (envelope: Envelope, namespace: string, format: DeliverySpec['format']): Message => {
  const { headers, body } = encodeEvent(envelope.event, format === 'json' ? 'structured' : 'binary');
  return { headers: { ...envelope.headers, ...headers, prefer: 'reply', 'kn-namespace': namespace }, body };
};

/** An event, or an error that broker-filter forwards unparsed and the ingress then rejects. */
type Reply = CloudEvent | string;

/** A success must be empty or a CloudEvent; anything else is a bad gateway, and therefore retried. */
const judge = (answer: Answer): { readonly answer: Answer; readonly reply?: Reply } => {
  const { status, headers, body } = answer;
  if (status < 200 || status >= 300) return { answer };
  if (!isCloudEvent(headers))
    return { answer: body.length === 0 ? answer : badGateway(answer, 'the reply is no CloudEvent') };
  try {
    return { answer, reply: decodeEvent(headers, body) };
  } catch (error) {
    const message = messageOf(error);
    return headers.has('ce-specversion') ? { answer, reply: message } : { answer: badGateway(answer, message) };
  }
};

const badGateway = ({ headers }: Answer, message: string): Answer => ({
  status: 502,
  headers,
  body: Buffer.from(message),
});

interface Failure {
  readonly dest: string;
  readonly attempt: Attempt;
}

const bury = async (
  event: CloudEvent,
  failure: Failure,
  { trigger, deadLetter, brokerClass, log }: DispatchOptions,
  signal: AbortSignal,
): Promise<Fate> => {
  if (signal.aborted) return 'abandoned';
  const fields = {
    trigger: trigger.metadata.name,
    eventId: event.id,
    type: event.type,
    fault: wordsOf(failure.attempt),
  };
  if (deadLetter !== undefined && (await deadLetter(toDeadLetter(event, failure, brokerClass), signal))) {
    log.warn('event is a dead letter', fields);
    return 'deadLettered';
  }
  log.error('event lost', fields);
  return 'lost';
};

/** The original event and why it could not be delivered. */
const toDeadLetter = (event: CloudEvent, { dest, attempt }: Failure, brokerClass: BrokerClass): CloudEvent => {
  const { status, body } =
    attempt.kind === 'answered'
      ? attempt.answer
      : { status: 500, body: Buffer.from(`dispatch error: ${attempt.message}`) };
  const data =
    brokerClass === 'Kafka'
      ? Buffer.from(body.subarray(0, 1024)).toString('base64')
      : Buffer.from(body).toString('base64').slice(0, 1024);
  const { knativeerrordata: _, ...extensions } = event.extensions;
  return {
    ...event,
    extensions: {
      ...extensions,
      knativeerrordest: dest,
      knativeerrorcode: status,
      ...(data === '' ? {} : { knativeerrordata: data }),
    },
  };
};

// When a Broker retries: DeliverySpec → RetryPolicy.

/** The simulated Broker class: they count the back-off differently. */
export type BrokerClass = 'MTChannelBasedBroker' | 'Kafka';

/** Knative's default for a Broker: 204.6 s in all. */
const defaultDelivery: DeliverySpec = { retry: 10, backoffPolicy: 'exponential', backoffDelay: 200 };

/** A Trigger's delivery replaces the Broker's as a whole: with only a dead letter sink there are no retries. */
export const effectiveDelivery = (
  trigger: DeliverySpec | undefined,
  broker: DeliverySpec | undefined,
): DeliverySpec => {
  if (trigger !== undefined && Object.keys(trigger).length > 0) return trigger;
  return broker !== undefined && Object.keys(broker).length > 0 ? broker : defaultDelivery;
};

export const createPolicy = (spec: DeliverySpec, brokerClass: BrokerClass, now: () => Date): RetryPolicy => ({
  retries: spec.retry ?? 0,
  delayMs: (retry, attempt) => Math.max(backoffMs(spec, brokerClass, retry), retryAfterMs(spec, attempt, now)),
  isRetried: (attempt) => attempt.kind === 'unreachable' || isRetriedStatus(attempt.answer.status),
});

const isRetriedStatus = (status: number): boolean => status >= 500 || [404, 408, 409, 429].includes(status);

/** Before the k-th retry: channel-based linear d(k-1), exponential d·2^(k-1); Kafka linear d·k, exponential d·2^k. */
const backoffMs = (spec: DeliverySpec, brokerClass: BrokerClass, retry: number): number => {
  const { backoffDelay, backoffPolicy } = spec;
  if (backoffDelay === undefined || backoffPolicy === undefined) return 0;
  const n = brokerClass === 'Kafka' ? retry : retry - 1;
  return backoffPolicy === 'linear' ? backoffDelay * n : backoffDelay * 2 ** n;
};

/** Retry-After counts only for 429 and 503, and only up to `retryAfterMax`, which must be set. */
const retryAfterMs = ({ retryAfterMax = 0 }: DeliverySpec, attempt: Attempt, now: () => Date): number => {
  if (attempt.kind === 'unreachable' || ![429, 503].includes(attempt.answer.status)) return 0;
  const value = attempt.answer.headers.get('retry-after') ?? '';
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now().getTime();
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), retryAfterMax) : 0;
};
