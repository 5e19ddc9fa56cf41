// A conformance case and its context. A case uses only HTTPS and kubectl to access a server.
import type { JsonValue } from '#local-cluster/conformance/suite/json.ts';

/** The handle of a running API server, embedded or real. */
export interface ConformanceServer {
  readonly kind: 'embedded' | 'real';
  readonly url: string;
  readonly kubeconfigPath: string;
  readonly caPem: string;
  readonly token: string;
  /** Compacts all history up to now. */
  readonly compact: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface CallOptions {
  readonly body?: unknown;
  /** Sent unchanged instead of `body`. */
  readonly text?: string;
  /** `application/json` when there is a body. */
  readonly contentType?: string;
  readonly accept?: string;
  /** Default: that of the administrator; `null` sends none. */
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Parsed JSON, otherwise the text. */
  readonly body: JsonValue;
}

export interface KubectlResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface KubectlOptions {
  readonly stdin?: string;
  /** Called with all of standard output so far whenever there is more; `stop` sends SIGTERM. */
  readonly onOutput?: (stdout: string, stop: () => void) => void;
}

export interface WatchedEvent {
  readonly type: string;
  readonly object: JsonValue;
}

export interface Watch {
  /** The next event that is not a bookmark, or the next of any type with `bookmarks`; fails after 60 s. */
  readonly next: (options?: { readonly bookmarks?: boolean }) => Promise<WatchedEvent>;
  /** Resolves when the server ends the stream. */
  readonly ended: Promise<void>;
  readonly stop: () => void;
}

/** The request that a webhook got, and its response. */
export interface WebhookCall {
  readonly path: string;
  readonly review: JsonValue;
}
export type WebhookHandler = (call: WebhookCall) => Promise<WebhookReply> | WebhookReply;
export interface WebhookReply {
  /** Default: 200. */
  readonly status?: number;
  /** The `response` of the AdmissionReview, without `uid`. */
  readonly response?: Readonly<Record<string, unknown>>;
  /** Sent unchanged instead. */
  readonly raw?: string;
}
export interface Webhook {
  /** `clientConfig` of a webhook configuration; the path distinguishes webhooks of one case. */
  readonly clientConfig: (path?: string) => { readonly url: string; readonly caBundle: string };
  readonly calls: readonly WebhookCall[];
}

export interface CaseContext {
  readonly server: ConformanceServer;
  /** Unique, 8 lower-case characters; shown as `ID` in recordings. */
  readonly id: string;
  /** A namespace only for this case. */
  readonly namespace: () => Promise<string>;
  readonly call: (method: string, path: string, options?: CallOptions) => Promise<Answer>;
  readonly watch: (path: string, options?: { readonly accept?: string }) => Promise<Watch>;
  readonly kubectl: (args: readonly string[], options?: KubectlOptions) => Promise<KubectlResult>;
  readonly webhook: (handler: WebhookHandler) => Webhook;
  /** Runs after the case, last first, whatever its result. */
  readonly cleanup: (action: () => Promise<unknown>) => void;
  /** Compares with the recorded response of the real server; UIDs, times, versions and this case's names are normalized first. */
  readonly same: (label: string, value: unknown) => void;
}

export type Case = (t: CaseContext) => Promise<void>;

export interface Topic {
  readonly topic: string;
  /** By name; the name is a sentence about the server. */
  readonly cases: Readonly<Record<string, Case>>;
  /** Cases that affect others: they run one at a time, after all the rest. */
  readonly alone?: Readonly<Record<string, Case>>;
}
