// Counts the requests a client makes. Called by the benchmark of golden images.
import type { KubeClient } from '#shared/clients/kube/client.ts';

export interface CountedKube {
  readonly client: KubeClient;
  /** Pages of one kind that were listed. */
  listsOf(plural: string): number;
  reads(): number;
  writes(): number;
}

export const countCalls = (kube: KubeClient): CountedKube => {
  const lists = new Map<string, number>();
  const counts = { reads: 0, writes: 0 };
  const list: KubeClient['list'] = (type, options) => {
    counts.reads += 1;
    lists.set(type.plural, (lists.get(type.plural) ?? 0) + 1);
    return kube.list(type, options);
  };
  const wrote = (): void => void (counts.writes += 1);
  const client: KubeClient = {
    ...kube,
    list,
    get: (type, key) => {
      counts.reads += 1;
      return kube.get(type, key);
    },
    listAll: async function* listAll(type, options = {}) {
      let next: string | undefined;
      do {
        const page: Awaited<ReturnType<typeof kube.list<never>>> = await list(type as never, {
          limit: 500,
          ...options,
          ...(next === undefined ? {} : { continue: next }),
        });
        yield* page.items;
        next = page.metadata.continue === '' ? undefined : page.metadata.continue;
      } while (next !== undefined);
    },
    create: (type, object) => {
      wrote();
      return kube.create(type, object);
    },
    replace: (type, object, options) => {
      wrote();
      return kube.replace(type, object, options);
    },
    mergePatch: (type, key, patch, options) => {
      wrote();
      return kube.mergePatch(type, key, patch, options);
    },
    delete: (type, key, options) => {
      wrote();
      return kube.delete(type, key, options);
    },
  };
  return {
    client,
    listsOf: (plural) => lists.get(plural) ?? 0,
    reads: () => counts.reads,
    writes: () => counts.writes,
  };
};
