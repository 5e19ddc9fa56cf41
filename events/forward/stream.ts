// One watch that is always resumed: passes each change to a consumer, one at a time and in order. Called by forwarder.ts.
import type { Verb } from '#events/forward/convert.ts';
import type { Sleep } from '#events/sender.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

export interface StreamOptions {
  readonly client: KubeClient;
  readonly type: ResourceType;
  /** All namespaces when unset. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  /**
   * Which events a list results in, at the start and after the watch expired: `none`, like ApiServerSource, which sends nothing about existing
   * objects, or `add` for each.
   */
  readonly replay: 'none' | 'add';
  readonly onChange: (verb: Verb, object: KubeObject) => Promise<void>;
  /** Called when the watch is about to start, so that later changes are observed; also called at the end. */
  readonly onReady: () => void;
  readonly log: Logger;
  readonly sleep: Sleep;
  readonly signal: AbortSignal;
}

const verbs = { ADDED: 'add', MODIFIED: 'update', DELETED: 'delete' } as const satisfies Record<string, Verb>;

/** The delays of client-go's reflector: 0.8 s after a watch that ended normally, doubling to 30 s while the API returns errors. */
const pause = { firstMs: 800, maxMs: 30_000 };

/** Runs until the signal is aborted. Never throws because of the API: it waits and continues from the last observed version. */
export const runStream = async (options: StreamOptions): Promise<void> => {
  const { log, signal, sleep } = options;
  let version: string | undefined;
  let pauseMs = pause.firstMs;
  while (!signal.aborted) {
    try {
      version ??= await list(options);
      options.onReady();
      for await (const observed of watch(options, version)) {
        version = observed;
        pauseMs = pause.firstMs;
      }
      pauseMs = pause.firstMs;
    } catch (error) {
      if (isConflict(error)) version = undefined;
      log.warn('watch interrupted', { kind: options.type.kind, isTooOld: isConflict(error), error });
    }
    await sleep(pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, pause.maxMs);
  }
  options.onReady();
};

/** The version to watch from. */
const list = async (options: StreamOptions): Promise<string> => {
  const { client, type, namespace, labelSelector, replay, onChange, signal } = options;
  if (replay === 'none') {
    return (await client.list(type, { namespace, labelSelector, limit: 1 })).metadata.resourceVersion;
  }
  let page = await client.list(type, { namespace, labelSelector, limit: 500 });
  const version = page.metadata.resourceVersion;
  for (;;) {
    for (const object of page.items) {
      if (!signal.aborted) await onChange('add', object);
    }
    const next = page.metadata.continue;
    if (next === undefined || next === '' || signal.aborted) return version;
    page = await client.list(type, { namespace, labelSelector, limit: 500, continue: next });
  }
};

/** Yields the version that was reached, after the change was passed on. */
async function* watch(options: StreamOptions, resourceVersion: string): AsyncIterable<string> {
  const { client, type, namespace, labelSelector, signal } = options;
  for await (const event of client.watch(type, { namespace, labelSelector, resourceVersion, signal })) {
    if (event.type !== 'BOOKMARK') await options.onChange(verbs[event.type], event.object);
    const version = event.object.metadata.resourceVersion;
    if (version !== undefined) yield version;
  }
}
