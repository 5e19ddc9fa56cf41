// GET of a collection: pages at one version, written as they are read so that memory usage is constant.
import type { ApiObject, Fields } from '../objects/object.ts';
import { apiVersionOf } from '../registry/resource.ts';
import { respond } from '../http/respond.ts';
import { ApiError, expired } from '../status/status.ts';
import type { Entry } from '../store/change.ts';
import type { Position } from '../store/pages.ts';
import { toPartial, toRow } from '../tables/table.ts';
import type { Call } from './call.ts';
import { parseToken, toToken } from './list-options.ts';
import { type ListOptions, parseListOptions, parseVersion, tooLarge } from './list-options.ts';
import { includeOf } from './get.ts';
import { readObject } from './write.ts';

/** Maximum number of objects read from the store at once; each may have a megabyte. */
const batch = 50;

const tooOld =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.';

/** A 410 with a token to continue an inconsistent list. */
const tokenExpired = (after: Position): ApiError => {
  const { status } = expired(tooOld);
  return new ApiError({ ...status, metadata: { continue: toToken({ version: -1, after }) } });
};

interface Start {
  readonly version: number;
  readonly after: Position | undefined;
  /** Objects after `after`, if they have been counted. */
  readonly remaining?: number | undefined;
}

const startOf = (call: Call, options: ListOptions): Start => {
  const { store } = call.api;
  if (options.continueToken !== '') {
    const { version, after, remaining } = parseToken(options.continueToken);
    if (version !== -1 && version < store.oldest()) throw tokenExpired(after);
    return version === -1 ? { version: store.version(), after } : { version, after, remaining };
  }
  const asked = parseVersion(options.resourceVersion);
  if (asked > store.version()) throw tooLarge(asked, store.version());
  if (options.resourceVersionMatch !== 'Exact') return { version: store.version(), after: undefined };
  if (asked < store.oldest()) throw expired('The resourceVersion for the provided list is too old.');
  return { version: asked, after: undefined };
};

export interface Listed {
  readonly version: number;
  /** Matching objects, batch by batch. */
  readonly batches: Iterable<readonly ApiObject[]>;
  /** Once the batches are read: where the next page starts, and how many objects follow it. */
  readonly rest: () => { readonly continue?: string; readonly remainingItemCount?: number };
}

/** Opens the list; nothing is read before the batches are. */
export const openList = (call: Call, options: ListOptions): Listed => {
  const { store } = call.api;
  const start = startOf(call, options);
  const scope = call.path.namespace === '' ? undefined : call.path.namespace;
  let rest: { continue?: string; remainingItemCount?: number } = {};

  const pageAfter = (after: Position | undefined, limit: number) =>
    store.page({ collection: call.resource.collection, namespace: scope, after, at: start.version, limit });

  /** A client may read so slowly that the version of its list is compacted meanwhile: then an error rather than an incomplete list. */
  const checkKept = (): void => {
    if (start.version < store.oldest()) throw expired('The resourceVersion for the provided list is too old.');
  };

  function* read(): Generator<readonly ApiObject[]> {
    let after = start.after;
    let left = options.limit === 0 ? Number.POSITIVE_INFINITY : options.limit;
    for (;;) {
      const size = Math.min(batch, options.isSelective ? batch : left);
      checkKept();
      const page = pageAfter(after, size);
      const { taken, last } = take(page.entries, left);
      left -= taken.length;
      after = last ?? after;
      if (taken.length > 0) yield taken;
      const ended = page.entries.length < size && last === page.entries.at(-1);
      if (ended) return;
      if (left === 0) {
        closePage(after);
        return;
      }
    }
  }

  const take = (entries: readonly Entry[], limit: number) => {
    const taken: ApiObject[] = [];
    let last: Entry | undefined;
    for (const entry of entries) {
      last = entry;
      const object = readObject(call.resource, entry);
      if (options.matches(object)) taken.push(object);
      if (taken.length >= limit) break;
    }
    return { taken, last };
  };

  /** After a full page. */
  const countAfter = (after: Position): number =>
    start.remaining === undefined ? pageAfter(after, 0).remaining() : start.remaining - options.limit;

  const closePage = (after: Position | undefined): void => {
    if (after === undefined || pageAfter(after, 1).entries.length === 0) return;
    const remaining = options.isSelective ? undefined : countAfter(after);
    rest = {
      continue: toToken({ version: start.version, after: { namespace: after.namespace, name: after.name }, remaining }),
      ...(remaining === undefined ? {} : { remainingItemCount: remaining }),
    };
  };

  return { version: start.version, batches: read(), rest: () => rest };
};

/** Items of built-in lists omit the fields that the list itself has. */
const toItem = (call: Call, object: ApiObject): Fields => {
  if (call.resource.custom !== undefined) return object;
  const { apiVersion: _, kind: __, ...rest } = object;
  return rest;
};

interface Layout {
  readonly head: Fields;
  /** Name of the field with the items. */
  readonly items: string;
  readonly toItem: (object: ApiObject) => Fields;
}

const layoutOf = (call: Call): Layout => {
  if (call.form.shape === 'table') {
    const include = includeOf(call);
    const { table } = call.resource;
    const now = call.api.clock();
    return {
      head: { kind: 'Table', apiVersion: 'meta.k8s.io/v1', columnDefinitions: table.columns },
      items: 'rows',
      toItem: (object) => toRow(table, object, include, now),
    };
  }
  if (call.form.shape === 'partial') {
    return {
      head: { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' },
      items: 'items',
      toItem: toPartial,
    };
  }
  return {
    head: { kind: call.resource.listKind, apiVersion: apiVersionOf(call.resource) },
    items: 'items',
    toItem: (object) => toItem(call, object),
  };
};

/** Text of the list in pieces. Metadata comes last: only then the continue token is known. */
function* writeJson(layout: Layout, listed: Listed): Generator<string> {
  const head = JSON.stringify(layout.head).slice(0, -1);
  yield `${head},"${layout.items}":[`;
  let separator = '';
  for (const objects of listed.batches) {
    yield separator + objects.map((object) => JSON.stringify(layout.toItem(object))).join(',');
    separator = ',';
  }
  yield `],"metadata":${JSON.stringify({ resourceVersion: String(listed.version), ...listed.rest() })}}`;
}

const stream = (pieces: Iterator<string>): ReadableStream<Uint8Array> => {
  const encoder = new TextEncoder();
  return new ReadableStream({
    pull: (controller) => {
      const { done, value } = pieces.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
  });
};

export const handleList = (call: Call): Response => {
  const listed = openList(call, parseListOptions(call, false));
  const layout = layoutOf(call);
  if (call.form.encoding === 'yaml') {
    const items = [...listed.batches].flat().map(layout.toItem);
    const metadata = { resourceVersion: String(listed.version), ...listed.rest() };
    return respond(
      { ...layout.head, metadata, [layout.items]: items },
      { encoding: 'yaml', warnings: [...call.warnings] },
    );
  }
  const headers = new Headers(respond({}, { warnings: [...call.warnings] }).headers);
  return new Response(stream(writeJson(layout, listed)), { headers });
};
