// For tests of the Worker: R2's side of its queue, and a reader of the dead letters.
import type { MessageBatch } from './notify.ts';

export default {
  async queue(batch: MessageBatch, { DEAD_LETTERS_URL }: { readonly DEAD_LETTERS_URL: string }): Promise<void> {
    for (const { body } of batch.messages) {
      await fetch(DEAD_LETTERS_URL, { method: 'POST', body: JSON.stringify(body) });
    }
  },
};
