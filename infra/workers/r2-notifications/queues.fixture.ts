// Beside the Worker in tests: R2's end of its queue, and somebody who reads the dead letters.
import type { MessageBatch } from '#infra/workers/r2-notifications/queue.ts';

export default {
  async queue(batch: MessageBatch, { DEAD_LETTERS_URL }: { readonly DEAD_LETTERS_URL: string }): Promise<void> {
    for (const { body } of batch.messages) {
      await fetch(DEAD_LETTERS_URL, { method: 'POST', body: JSON.stringify(body) });
    }
  },
};
