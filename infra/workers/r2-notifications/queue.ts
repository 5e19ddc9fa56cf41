// The used part of Cloudflare's queue API. Its own types would replace those of Node for the whole repository.

export interface QueueMessage {
  readonly id: string;
  readonly timestamp: Date;
  readonly body: unknown;
  /** Deliveries of this message, including this one. */
  readonly attempts: number;
  /** Acknowledges the message. */
  ack(): void;
  /** Delivers the message again, after this many seconds (12 hours at most). */
  retry(options?: { readonly delaySeconds?: number }): void;
}

export interface MessageBatch {
  readonly queue: string;
  readonly messages: readonly QueueMessage[];
}

export interface QueueProducer {
  send(body: unknown, options?: { readonly contentType?: 'json' | 'bytes' }): Promise<unknown>;
}
