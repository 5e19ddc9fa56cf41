// What changes while somebody looks, as server-sent events: watched with the rights of who looks. Ends with the session, and when nobody looks.
import type { Context } from 'hono';
import { type SSEStreamingApi, streamSSE } from 'hono/streaming';
import type { Found } from '#shared/catalogue/image.ts';
import { withDetail } from '#shared/catalogue/objects.ts';
import type { KubeClient, WatchEvent } from '#shared/clients/kube/client.ts';
import { rowId, rowOf } from '#shared/console/list-page.ts';
import { type AnyType, type Query, allTypes, isAskedFor, typeName } from '#shared/console/query.ts';
import type { AnyImage } from '#shared/catalogue/image.ts';

/** Milliseconds between two messages: a transfer reports every two seconds, and many run at once. */
const flushMs = 500;
/** Milliseconds after which a stream ends, and the browser opens the next: its session is looked at anew. */
const longestMs = 300_000;

export interface Watched {
  readonly type: AnyType;
  readonly namespace: string | undefined;
  /** Left out: every object. */
  readonly name?: string;
  readonly labelSelector?: string;
  readonly since: string | undefined;
}

export interface Live {
  readonly kube: KubeClient;
  readonly now: () => number;
  /** Milliseconds since the epoch: the end of the session. */
  readonly until: number;
}

interface Message {
  readonly event: string;
  readonly data: string;
}

/** What `toSince` writes; of kinds that are not among `types` nothing is watched. */
export const readSince = (
  text: string,
  types: readonly AnyType[] = allTypes,
): readonly Pick<Watched, 'type' | 'since'>[] =>
  text.split(',').flatMap((part) => {
    const [name = '', since] = part.split(':');
    const type = types.find((one) => typeName(one) === name);
    return type === undefined ? [] : [{ type, since }];
  });

/** One watch until it ends. Whatever ends it, the page is loaded anew, and says why it cannot be. */
const follow = async (
  kube: KubeClient,
  { type, namespace, name, labelSelector, since }: Watched,
  { signal, onEvent }: { readonly signal: AbortSignal; readonly onEvent: (event: WatchEvent<AnyImage>) => void },
): Promise<void> => {
  const events = kube.watch(type, {
    namespace,
    signal,
    ...(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(since === undefined ? {} : { resourceVersion: since }),
  });
  for await (const event of events) if (event.type !== 'BOOKMARK') onEvent(event);
};

/** Sends what is pending, and a comment where nothing is, so that a connection that is gone is noticed. */
const flush = async (stream: SSEStreamingApi, pending: Map<string, Message>): Promise<void> => {
  const messages = [...pending.values()];
  pending.clear();
  for (const message of messages) await stream.writeSSE(message);
};

const stream = (
  c: Context,
  live: Live,
  watched: readonly Watched[],
  toMessage: ToMessage,
  everyMs: number = flushMs,
): Response =>
  streamSSE(c, async (out) => {
    const ended = new AbortController();
    out.onAbort(() => ended.abort());
    const left = Math.max(0, Math.min(longestMs, live.until - live.now()));
    const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(left)]);
    const pending = new Map<string, Message>();
    const watches = watched.map((one) =>
      follow(live.kube, one, {
        signal,
        onEvent: (event) => {
          const { key, message } = toMessage({ ...event, object: withDetail(event.object) }, one.type);
          pending.set(key, message);
        },
      }),
    );
    // The first watch that ends ends them all: from then on changes would be missed.
    const over = Promise.race(watches).catch(() => undefined);
    void Promise.allSettled(watches);
    let isOver = watched.length === 0;
    void over.then(() => (isOver = true));
    await out.write(': open\n\n');
    while (!isOver && !signal.aborted) {
      await out.sleep(everyMs);
      await flush(out, pending);
    }
    await flush(out, pending);
    ended.abort();
    await out.writeSSE({ event: 'ended', data: '' });
  });

type ToMessage = (event: WatchEvent<AnyImage>, type: AnyType) => { readonly key: string; readonly message: Message };

/** Rows of the list that changed: with an empty one for what is gone, or is not asked for any more. */
export const streamRows = (c: Context, live: Live, query: Query, watched: readonly Watched[]): Response =>
  stream(c, live, watched, ({ type: change, object }, type) => {
    const found: Found = { type, image: object };
    const isGone = change === 'DELETED' || !isAskedFor(query, found);
    const row = isGone ? '' : rowOf(found, new Date(live.now()));
    const id = rowId(found);
    return { key: id, message: { event: 'row', data: JSON.stringify({ id, html: row, isNew: change === 'ADDED' }) } };
  });

/** That something changed: the page fetches itself anew, at most every `everyMs`. */
export const streamChanges = (c: Context, live: Live, watched: readonly Watched[], everyMs?: number): Response =>
  stream(c, live, watched, () => ({ key: 'changed', message: { event: 'changed', data: '' } }), everyMs);
