// Tells monitoring what the cluster holds, each time it asks.
import type { Hono } from 'hono';
import { createMetricsApp } from '#shared/metrics/app.ts';
import type { MetricsDeps } from '#shared/metrics/collect.ts';

export const createApp = (deps: MetricsDeps): Hono => createMetricsApp(deps);
