// Watches of the in-memory API: from a version on, over a history that can be dropped, on connections that can be interrupted.
import { type KubeObject, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import type { WatchEvent, WatchOptions } from '#shared/clients/kube/client.ts';
import { errorOfStatus } from '#shared/clients/kube/wire.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { parseLabelSelector } from '#local-cluster/api-server/selectors/label.ts';
import type { Change, Store } from './store.ts';

/** Operations of tests on watches. */
export interface Watches {
  /** Interrupts the open ones that `which` selects (default: all), like a connection reset. */
  cut: (which?: () => boolean) => void;
  /** Opening one fails with this error, until it is called without. */
  refuse: (error?: Error) => void;
  /** Drops the history: resuming from an older version gets 410 Gone. Open watches continue. */
  compact: () => void;
}

interface Connection {
  readonly take: (change: Change) => void;
  readonly fail: (error: Error) => void;
}

const versionOf = ({ object }: Change): number => Number(object.metadata.resourceVersion);

/** A change as one watch sees it: an object that starts or ceases to match is added or deleted. */
const observedBy = (type: ResourceType, options: WatchOptions, { type: change, object, before }: Change) => {
  const { namespace, labelSelector } = options;
  if (object.kind !== type.kind || object.apiVersion !== apiVersionOf(type)) return undefined;
  if (namespace !== undefined && object.metadata.namespace !== namespace) return undefined;
  const isSelected = parseLabelSelector(labelSelector);
  const matched = before !== undefined && isSelected(before.metadata.labels);
  const matches = change !== 'DELETED' && isSelected(object.metadata.labels);
  if (!matched && !matches) return undefined;
  return { type: matched ? (matches ? 'MODIFIED' : 'DELETED') : 'ADDED', object } as WatchEvent<KubeObject>;
};

export const createWatches = (store: Store) => {
  let history: Change[] = [];
  let forgotten = 0;
  let refusal: Error | undefined;
  const open = new Set<Connection>();
  store.onChange((change) => {
    history.push(change);
    for (const { take } of open) take(change);
  });

  const historySince = (version: number): readonly Change[] => {
    if (version >= forgotten) return history.filter((change) => versionOf(change) > version);
    throw errorOfStatus(410, { message: `too old resource version: ${version} (${forgotten})` }, 'watch');
  };

  async function* watch(type: ResourceType, options: WatchOptions): AsyncGenerator<WatchEvent<KubeObject>> {
    if (refusal !== undefined) throw refusal;
    const { signal, resourceVersion } = options;
    const pending: Change[] = resourceVersion === undefined ? [] : [...historySince(Number(resourceVersion))];
    let wake = () => {};
    let broken: Error | undefined;
    const connection: Connection = {
      take: (change) => (pending.push(change), wake()),
      fail: (error) => ((broken = error), wake()),
    };
    const onAbort = () => wake();
    open.add(connection);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      while (!signal.aborted) {
        if (broken !== undefined) throw broken;
        const change = pending.shift();
        const event = change && observedBy(type, options, change);
        if (event !== undefined) yield event;
        else if (change === undefined) await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      open.delete(connection);
      signal.removeEventListener('abort', onAbort);
    }
  }

  const watches: Watches = {
    cut: (which = () => true) => {
      for (const connection of open) if (which()) connection.fail(new Unavailable('the watch was cut'));
    },
    refuse: (error) => void (refusal = error),
    compact: () => {
      history = [];
      forgotten = Number(store.version());
    },
  };
  return { watch, watches };
};
