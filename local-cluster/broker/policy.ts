// When a Broker tries again: DeliverySpec → RetryPolicy. Called by dispatch.ts.
import type { Attempt, RetryPolicy } from '#events/sender.ts';
import type { DeliverySpec } from '#local-cluster/broker/manifest.ts';

/** Which Broker class is imitated: they count the back-off differently. */
export type BrokerClass = 'MTChannelBasedBroker' | 'Kafka';

/** What Knative ships for a Broker that says nothing: 204.6 s in all. */
const defaultDelivery: DeliverySpec = { retry: 10, backoffPolicy: 'exponential', backoffDelay: 200 };

/** A Trigger's delivery replaces the Broker's as a whole: giving only a dead letter sink means no retry at all. */
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

/** Retry-After counts for 429 and 503 alone, and only up to `retryAfterMax`, which must be set. */
const retryAfterMs = ({ retryAfterMax = 0 }: DeliverySpec, attempt: Attempt, now: () => Date): number => {
  if (attempt.kind === 'unreachable' || ![429, 503].includes(attempt.answer.status)) return 0;
  const value = attempt.answer.headers.get('retry-after') ?? '';
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now().getTime();
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), retryAfterMax) : 0;
};
