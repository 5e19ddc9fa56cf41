// Handles one batch of R2's notifications: each object is reported once, each message is acknowledged, retried or moved to the dead letters.
// Called by worker.ts.
import {
  type MessageBatch,
  type Notify,
  type QueueMessage,
  type QueueProducer,
  type QueueVerdict,
  verdictOf,
} from './notify.ts';
import { shortHash } from '#shared/object-import/description.ts';
import { type ObjectHint, readNotification } from '#shared/object-import/notification.ts';
import { InvalidInput, messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

export interface RelayDeps {
  readonly notify: Notify;
  readonly deadLetters: QueueProducer;
  /** Seconds before the first retry of a message. */
  readonly retrySeconds: number;
  readonly log: Logger;
}

/** A Worker may have at most six open requests. */
const width = 6;

/** Messages about one object. */
interface Group {
  readonly hint: ObjectHint;
  readonly messages: readonly QueueMessage[];
}

interface Sorted {
  readonly groups: readonly Group[];
  /** Messages that change no bytes. */
  readonly idle: readonly QueueMessage[];
  readonly unreadable: readonly { readonly message: QueueMessage; readonly reason: string }[];
}

/** Never rejects: the result of each message is passed to the queue. */
export const relay = async (deps: RelayDeps, batch: MessageBatch): Promise<void> => {
  const { groups, idle, unreadable } = sort(batch.messages);
  for (const message of idle) message.ack();
  for (const { message, reason } of unreadable) await settle(deps, message, { verdict: { do: 'bury', reason } });
  const waiting = [...groups];
  const work = async (): Promise<void> => {
    for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) await relayGroup(deps, group);
  };
  await Promise.all(Array.from({ length: width }, work));
};

const sort = (messages: readonly QueueMessage[]): Sorted => {
  const groups = new Map<string, { hint: ObjectHint; messages: QueueMessage[] }>();
  const idle: QueueMessage[] = [];
  const unreadable: { message: QueueMessage; reason: string }[] = [];
  for (const message of messages) {
    const read = hintOf(message);
    if (typeof read === 'string') unreadable.push({ message, reason: read });
    else if (read === undefined) idle.push(message);
    else {
      const group = groups.get(keyOf(read)) ?? { hint: read, messages: [] };
      group.messages.push(message);
      groups.set(keyOf(read), group);
    }
  }
  return { groups: [...groups.values()], idle, unreadable };
};

const keyOf = ({ bucket, key }: ObjectHint): string => JSON.stringify([bucket, key]);

/** `undefined`: it changes no bytes; a text: why it cannot be parsed. */
const hintOf = ({ body }: QueueMessage): ObjectHint | string | undefined => {
  try {
    const [hint, ...others] = readNotification(body);
    return others.length === 0 ? hint : 'it contains more than one object: a message of R2 contains one';
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    return messageOf(error);
  }
};

const relayGroup = async (deps: RelayDeps, { hint, messages }: Group): Promise<void> => {
  const [first] = messages as [QueueMessage];
  const answer = await deps.notify(hint, { id: shortHash([first.body]), time: first.timestamp });
  for (const message of messages) {
    await settle(deps, message, { hint, verdict: verdictOf(answer, message.attempts, deps.retrySeconds) });
  }
};

interface Settled {
  readonly hint?: ObjectHint;
  readonly verdict: QueueVerdict;
}

const settle = async (deps: RelayDeps, message: QueueMessage, { hint, verdict }: Settled): Promise<void> => {
  const about = { messageId: message.id, attempts: message.attempts, ...hint };
  switch (verdict.do) {
    case 'ack':
      deps.log.info('object reported', about);
      return message.ack();
    case 'retry':
      deps.log.warn('object not reported', { ...about, reason: verdict.reason, afterSeconds: verdict.afterSeconds });
      return message.retry({ delaySeconds: verdict.afterSeconds });
    case 'bury':
      deps.log.error('notification refused', { ...about, reason: verdict.reason });
      return bury(deps, message, about);
  }
};

/** Unchanged, so that it can be put back on the queue. If the dead letter queue is not available, it is retried. */
const bury = async (deps: RelayDeps, message: QueueMessage, about: object): Promise<void> => {
  const { body } = message;
  try {
    const isBytes = body instanceof ArrayBuffer || ArrayBuffer.isView(body);
    await deps.deadLetters.send(body, { contentType: isBytes ? 'bytes' : 'json' });
    message.ack();
  } catch (error) {
    deps.log.error('dead letter not stored', { ...about, error });
    message.retry({ delaySeconds: deps.retrySeconds });
  }
};
