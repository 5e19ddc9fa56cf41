// What goes to the Kubernetes API and comes back, whoever carries it: undici in functions, `fetch` in Workers.

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: string | undefined;
  readonly contentType?: string | undefined;
  /** Set for a watch: no time-out, ends with the signal. */
  readonly signal?: AbortSignal | undefined;
}

/** An answer whose body is read once. */
export interface TransportAnswer {
  readonly statusCode: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: AsyncIterable<Uint8Array> & { json(): Promise<unknown>; text(): Promise<string> };
}

/** Sends one request; throws an AppError for anything but 2xx. */
export type Transport = (request: TransportRequest) => Promise<TransportAnswer>;
