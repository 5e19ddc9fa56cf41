// Input and output of every operation of the object store.
import type { Readable } from 'node:stream';
import type { StoreRequest } from '#local-cluster/object-store/request.ts';
import type { Signed } from '#local-cluster/object-store/signature.ts';
import type { Store } from '#local-cluster/object-store/store.ts';

export interface Call {
  readonly request: StoreRequest;
  readonly store: Store;
  readonly region: string;
  /** `undefined` for anonymous requests. */
  readonly signed: Signed | undefined;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Readable;
}

export type Operation = (call: Call) => Promise<Answer>;

export const xmlAnswer = (body: string, status = 200): Answer => ({
  status,
  headers: { 'content-type': 'application/xml' },
  body,
});
