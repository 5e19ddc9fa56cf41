// Cloudflare R2 for tests: messages in its format, on the local queue that the Worker reads.
import { startServer } from '#shared/runtime/serve.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type RunningWorkers, startWorkers } from '#test/support/workers.ts';

type R2Action = 'PutObject' | 'CopyObject' | 'CompleteMultipartUpload' | 'DeleteObject' | 'LifecycleDeletion';

/** As in the documentation of R2's event notifications: removals have neither size nor ETag. */
export const anR2Message = (action: R2Action, key: string, bucket = 'images'): object => ({
  account: '3f4b7e3dcab231cbfdaa90a6a28bd548',
  action,
  bucket,
  object:
    action.endsWith('Object') && action !== 'DeleteObject'
      ? { key, size: 65_536, eTag: 'c846ff7a18f28c2e262116d6e8719ef0' }
      : { key },
  eventTime: '2026-05-24T19:36:44.379Z',
  ...(action === 'CopyObject' ? { copySource: { bucket: 'other', object: 'an.img' } } : {}),
});

export interface R2 {
  /** Events of the bucket, in this order. */
  readonly notify: (...messages: readonly unknown[]) => Promise<void>;
  /** Bodies of dead letters. */
  readonly deadLetters: readonly unknown[];
  readonly logged: RunningWorkers['logged'];
  readonly close: () => Promise<void>;
}

interface Producer {
  sendBatch(messages: readonly { readonly body: unknown }[]): Promise<void>;
}

/** With the Worker, which notifies import-object at `url`. */
export const startR2 = async (url: string, token = 'shared'): Promise<R2> => {
  const deadLetters: unknown[] = [];
  const graves = await startServer({
    app: {
      fetch: async (request) => {
        deadLetters.push(await request.json());
        return new Response(null, { status: 204 });
      },
    },
    log: silentLogger,
    port: 0,
    drainMs: 100,
  });
  const workers = await startWorkers([
    {
      configPath: 'infra/workers/r2-notifications/wrangler.jsonc',
      vars: { IMPORT_OBJECT_URL: url, RETRY_SECONDS: '0' },
      secrets: { NOTIFICATION_TOKEN: token },
    },
    {
      config: {
        name: 'queues',
        main: 'infra/workers/r2-notifications/queues.fixture.ts',
        compatibility_date: '2026-10-01',
        vars: { DEAD_LETTERS_URL: graves.url },
        queues: {
          producers: [{ queue: 'bullion-r2-notifications', binding: 'NOTIFICATIONS' }],
          consumers: [{ queue: 'bullion-r2-dead-letters', max_batch_timeout: 0 }],
        },
      },
    },
  ]);
  const { NOTIFICATIONS } = await workers.server.getWorker<{ NOTIFICATIONS: Producer }>('queues').getEnv();
  return {
    notify: (...messages) => NOTIFICATIONS.sendBatch(messages.map((body) => ({ body }))),
    deadLetters,
    logged: workers.logged,
    close: async () => {
      await workers.close();
      await graves.close();
    },
  };
};
