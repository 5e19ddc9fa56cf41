// The Broker's ingress over HTTP: POST /<namespace>/<name>, as in Knative's broker-ingress, and GET /metrics. Served by the local cluster.
import { type Context, Hono } from 'hono';
import { decodeEvent } from '#events/message.ts';
import type { CloudEvent } from '#events/event.ts';
import type { Broker } from '#local-cluster/broker/broker.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** Headers that a broker forwards; all others are dropped. */
const passedThrough = /^(x-request-id|knative-.*|x-b3-.*|traceparent|tracestate)$/;

export const createIngress = (broker: Broker): Hono => {
  const app = new Hono();
  app.get('/metrics', (c) => c.text(metricsOf(broker)));
  app.all('*', (c) => {
    if (c.req.method === 'OPTIONS') return webhookConsent(c);
    if (c.req.method !== 'POST') return c.body(null, 405, { allow: 'POST, OPTIONS' });
    if (c.req.path !== `/${broker.namespace}/${broker.name}`) return c.body(null, 404);
    return take(broker, c);
  });
  return app;
};

/** The counters in the text format of Prometheus. */
const metricsOf = ({ countsByTrigger }: Broker): string => {
  const lines = [...countsByTrigger].flatMap(([trigger, counts]) =>
    Object.entries(counts).map(
      ([fate, count]) => `bullion_broker_deliveries_total{trigger="${trigger}",fate="${fate}"} ${count}`,
    ),
  );
  return ['# TYPE bullion_broker_deliveries_total counter', ...lines, ''].join('\n');
};

/** The request of a sender before it posts webhooks: any origin, any rate. */
const webhookConsent = (c: Context): Response =>
  c.body(null, 200, { allow: 'POST, OPTIONS', 'webhook-allowed-origin': '*', 'webhook-allowed-rate': '*' });

const take = async (broker: Broker, c: Context): Promise<Response> => {
  let event: CloudEvent;
  try {
    event = decodeEvent(c.req.raw.headers, new Uint8Array(await c.req.arrayBuffer()));
  } catch (error) {
    if (error instanceof InvalidInput) return c.text(error.message, 400);
    throw error;
  }
  const headers = Object.fromEntries([...c.req.raw.headers].filter(([name]) => passedThrough.test(name)));
  return new Response(null, { status: await broker.publish(event, headers) });
};
