// What of Cloudflare's queues is used here. Its own types would replace those of Node for the whole repository.

export interface QueueMessage {
  readonly id: string;
  readonly timestamp: Date;
  readonly body: unknown;
  /** Deliveries of this message, this one included. */
  readonly attempts: number;
  /** The message is done with. */
  ack(): void;
  /** The message comes again, after so many seconds (12 hours at most). */
  retry(options?: { readonly delaySeconds?: number }): void;
}

export interface MessageBatch {
  readonly queue: string;
  readonly messages: readonly QueueMessage[];
}

export interface QueueProducer {
  send(body: unknown, options?: { readonly contentType?: 'json' | 'bytes' }): Promise<unknown>;
}
