// The Worker: receives R2's notifications from a queue, and notifies import-object. wrangler.jsonc has its queues and settings.
import { z } from 'zod';
import { createNotifier, type MessageBatch, type QueueProducer } from './notify.ts';
import { relay } from '#infra/workers/r2-notifications/relay.ts';
import { type WorkerEnvironment, beginWorker, safeUrl, workerSettings } from '#infra/workers/settings.ts';
import { setting, wholeNumber } from '#shared/runtime/config.ts';

export const Config = z.object({
  ...workerSettings,
  url: setting('IMPORT_OBJECT_URL', 'https URL of import-object outside the cluster.', safeUrl),
  token: setting('NOTIFICATION_TOKEN', 'The NOTIFICATION_TOKEN of import-object; a secret.', z.string().min(1)),
  retrySeconds: setting(
    'RETRY_SECONDS',
    'Seconds before a failed notification is retried; doubled each time, up to 15 minutes.',
    wholeNumber(0, 900).default(5),
  ),
});

interface Environment extends WorkerEnvironment {
  readonly DEAD_LETTERS: QueueProducer;
}

export default {
  /** Throws InvalidInput if the settings are invalid: the queue keeps the batch, and the log has the reason. */
  async queue(batch: MessageBatch, env: Environment): Promise<void> {
    const { config, log } = beginWorker('r2-notifications', Config, env);
    const { url, token, retrySeconds } = config;
    await relay({ notify: createNotifier({ url, token }), deadLetters: env.DEAD_LETTERS, retrySeconds, log }, batch);
  },
};
