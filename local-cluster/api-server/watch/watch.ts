// WATCH: a stream of changes from a version on. Each watcher reads the change log at its own pace, so a slow one blocks no other and
// nothing is queued for it.
import { toPartial, toRow, toTable } from '../tables/table.ts';
import type { ApiObject, Fields } from '../objects/object.ts';
import { readObject } from '../handlers/write.ts';
import { type Call } from '../handlers/call.ts';
import { includeOf, versionOnly } from '../handlers/get.ts';
import { type ListOptions, parseListOptions, parseVersion, tooLarge } from '../handlers/list-options.ts';
import { openList } from '../handlers/list.ts';
import { apiVersionOf } from '../registry/resource.ts';
import { expired, type StatusBody } from '../status/status.ts';
import type { Change, ChangeType } from '../store/change.ts';
import { createWaiter } from './waiter.ts';

/** Maximum number of changes read at once, and of bytes sent at once: a watch whose client does not read holds no more than this. */
const batch = 50;
const pieceBytes = 256 * 1024;
const bookmarkSeconds = 60;
/** The last bookmark is sent this long before a watch ends, so that its successor starts where it ended. */
const lastBookmarkMs = 2000;
/** A watch without a timeout ends after one to two times this. */
const defaultSeconds = 1800;

type EventType = ChangeType | 'BOOKMARK' | 'ERROR';

const initialEventsEnd = 'k8s.io/initial-events-end';

interface Seen {
  readonly type: ChangeType;
  readonly object: ApiObject;
}

/** The type of a change for this watcher: an object may start or cease to match its selectors. */
const see = (call: Call, options: ListOptions, change: Change): Seen | undefined => {
  const object = readObject(call.resource, change);
  if (!options.isSelective) return { type: change.type, object };
  const previous = change.previous();
  const before = previous === undefined ? undefined : readObject(call.resource, { ...change, object: () => previous });
  const matched = before !== undefined && options.matches(before);
  const matches = change.type !== 'DELETED' && options.matches(object);
  if (matches) return { type: matched ? 'MODIFIED' : 'ADDED', object };
  return matched ? { type: 'DELETED', object: change.type === 'DELETED' ? object : before } : undefined;
};

const isInScope = (call: Call, change: Change): boolean =>
  (call.path.namespace === '' || change.namespace === call.path.namespace) &&
  (call.path.name === '' || change.name === call.path.name);

/** Converts objects to the requested form. The first table of a watch contains the columns. */
const createShaper = (call: Call) => {
  const { table } = call.resource;
  const include = includeOf(call);
  let isFirst = true;
  return (type: EventType, object: ApiObject): unknown => {
    if (call.form.shape === 'object') return object;
    if (call.form.shape === 'partial') return toPartial(object);
    const columns = isFirst ? table.columns : undefined;
    isFirst = false;
    const rows = type === 'BOOKMARK' ? [] : [toRow(table, object, include, call.api.clock())];
    return { ...toTable([], rows, versionOnly(object)), columnDefinitions: columns ?? null };
  };
};

const encoder = new TextEncoder();
const nothing = new Uint8Array();

const line = (type: EventType, object: unknown): string => `${JSON.stringify({ type, object })}\n`;

const bookmark = (call: Call, version: number, annotations?: Fields): ApiObject => ({
  kind: call.resource.kind,
  apiVersion: apiVersionOf(call.resource),
  metadata: {
    resourceVersion: String(version),
    ...(annotations === undefined ? {} : { annotations }),
  } as ApiObject['metadata'],
});

interface Start {
  /** Lines to send before anything else. */
  readonly lines: Iterable<string>;
  readonly version: number;
}

const goneStatus = (asked: number, oldest: number): StatusBody =>
  expired(`too old resource version: ${asked} (${oldest})`).status;

/** Existing objects as ADDED events, then, if requested, the bookmark after them. */
function* initialLines(
  call: Call,
  options: ListOptions,
  shape: ReturnType<typeof createShaper>,
  version: number,
): Generator<string> {
  const listed = openList(call, {
    ...options,
    limit: 0,
    continueToken: '',
    resourceVersion: String(version),
    resourceVersionMatch: 'Exact',
  });
  for (const objects of listed.batches) yield objects.map((object) => line('ADDED', shape('ADDED', object))).join('');
  if (options.sendInitialEvents === true && options.allowBookmarks) {
    yield line('BOOKMARK', shape('BOOKMARK', bookmark(call, version, { [initialEventsEnd]: 'true' })));
  }
}

const startOf = (call: Call, options: ListOptions, shape: ReturnType<typeof createShaper>): Start => {
  const { store } = call.api;
  const asked = parseVersion(options.resourceVersion, true);
  const current = store.version();
  const wantsInitial = options.sendInitialEvents ?? asked === 0;
  if (wantsInitial) {
    if (asked > current) throw tooLarge(asked, current);
    return { lines: initialLines(call, options, shape, current), version: current };
  }
  if (options.sendInitialEvents === false && asked === 0) return { lines: [], version: current };
  return { lines: [], version: asked };
};

export const handleWatch = (call: Call): Response => {
  const options = parseListOptions(call, true);
  const shape = createShaper(call);
  const start = startOf(call, options, shape);
  const body = openStream(call, options, shape, start);
  return new Response(body, {
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-cache, private',
      'transfer-encoding': 'chunked',
    },
  });
};

const lifetimeMs = (call: Call, options: ListOptions): number =>
  1000 * (options.timeoutSeconds ?? defaultSeconds * (1 + call.api.random()));

const openStream = (
  call: Call,
  options: ListOptions,
  shape: ReturnType<typeof createShaper>,
  start: Start,
): ReadableStream<Uint8Array> => {
  const { store } = call.api;
  const waiter = createWaiter();
  const initial = start.lines[Symbol.iterator]();
  let cursor = start.version;
  let isClosed = false;

  const unsubscribe = store.subscribe(call.resource.collection, (change) => {
    if (isInScope(call, change)) waiter.wake();
  });
  const close = (): void => {
    isClosed = true;
    unsubscribe();
    clearTimeout(end);
    clearTimeout(last);
    clearInterval(beat);
    waiter.wake();
  };
  const lifetime = lifetimeMs(call, options);
  const end = setTimeout(close, lifetime);
  const last = setTimeout(waiter.bookmarkDue, Math.max(lifetime - lastBookmarkMs, 0));
  const beat = setInterval(() => {
    waiter.bookmarkDue();
  }, bookmarkSeconds * 1000);
  end.unref();
  last.unref();
  beat.unref();
  call.request.signal.addEventListener('abort', close, { once: true });

  const render = (change: Change): Uint8Array => {
    if (!isInScope(call, change)) return nothing;
    const isPlain = !options.isSelective && call.form.shape === 'object';
    const key = isPlain ? apiVersionOf(call.resource) : '';
    const known = isPlain ? change.rendered.get(key) : undefined;
    if (known !== undefined) return known;
    const seen = see(call, options, change);
    const bytes = seen === undefined ? nothing : encoder.encode(line(seen.type, shape(seen.type, seen.object)));
    if (isPlain) change.rendered.set(key, bytes);
    return bytes;
  };

  const renderAll = (changes: readonly Change[]): Uint8Array => {
    const pieces: Uint8Array[] = [];
    let size = 0;
    for (const change of changes) {
      if (size >= pieceBytes) break;
      const piece = render(change);
      if (piece.byteLength > 0) pieces.push(piece);
      size += piece.byteLength;
      cursor = change.version;
    }
    // Usually there is only one change, which is sent with its shared encoding.
    return pieces.length === 1 ? (pieces[0] ?? nothing) : Buffer.concat(pieces);
  };

  /** The next piece, or undefined when there is nothing to send at the moment. */
  const next = (): Uint8Array | undefined => {
    const first = initial.next();
    if (first.done !== true) return encoder.encode(first.value);
    if (cursor < store.oldest()) {
      close();
      return encoder.encode(line('ERROR', goneStatus(cursor, store.oldest())));
    }
    const changes = store.changesAfter(call.resource.collection, cursor, batch);
    if (changes.length > 0) return renderAll(changes);
    cursor = Math.max(cursor, store.version());
    if (options.allowBookmarks && waiter.takeBookmark())
      return encoder.encode(line('BOOKMARK', shape('BOOKMARK', bookmark(call, cursor))));
    return undefined;
  };

  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      while (!isClosed) {
        const piece = next();
        if (piece === undefined) await waiter.wait();
        else if (piece.byteLength > 0) {
          controller.enqueue(piece);
          if (!isClosed) return;
        }
      }
      controller.close();
    },
    cancel: close,
  });
};
