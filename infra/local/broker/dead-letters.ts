// Where the local broker's dead letters end: a Kubernetes Event on the object concerned, a counter and a line in the log.
import { recordDeadLetter, toDeadLetter } from '#events/dead-letter.ts';
import type { CloudEvent } from '#events/event.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Logger } from '#shared/runtime/log.ts';

export interface DeadLetters {
  /** Never rejects: a letter that cannot be recorded is still counted and logged. */
  take(event: CloudEvent): Promise<void>;
  /** Letters taken, by event type. */
  readonly counts: ReadonlyMap<string, number>;
}

export interface DeadLettersOptions {
  readonly client: KubeClient;
  readonly log: Logger;
  readonly now?: () => Date;
}

export const createDeadLetters = ({ client, log, now = () => new Date() }: DeadLettersOptions): DeadLetters => {
  const counts = new Map<string, number>();
  return {
    counts,
    take: async (event) => {
      counts.set(event.type, (counts.get(event.type) ?? 0) + 1);
      log.error('dead letter', { eventId: event.id, type: event.type, ...toDeadLetter(event) });
      try {
        await recordDeadLetter(client, event, now());
      } catch (error) {
        log.error('dead letter not recorded', { eventId: event.id, error });
      }
    },
  };
};
