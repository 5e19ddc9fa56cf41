// Deletes objects without an existing owner, of every kind that the server serves, including custom ones.
import { setTimeout as sleep } from 'node:timers/promises';
import { crds } from '#shared/api/foreign/kubernetes.ts';
import { type KubeObject, type OwnerReference, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict, isNotFound, messageOf } from '#shared/runtime/errors.ts';
import type { Controller, ControllerContext } from '#local-cluster/controllers/controller.ts';
import { discover, kindText } from '#local-cluster/controllers/discovery.ts';
import {
  foreground,
  isUnblocked,
  judge,
  orphan,
  type OwnerState,
} from '#local-cluster/controllers/garbage-collector/graph.ts';
import { createGraph, type Graph, type Node } from '#local-cluster/controllers/garbage-collector/graph.ts';
import { createInformer, type Informer } from '#local-cluster/controllers/informer.ts';
import { createWorkQueue, type WorkQueue } from '#local-cluster/controllers/work-queue.ts';

/** Milliseconds between two discoveries of kinds. A change of CRDs is noticed at once. */
const discoverMs = 5_000;
/** Milliseconds after which an object whose owner's kind is not served is checked again. */
const askAgainMs = 5_000;

interface Followed {
  readonly type: ResourceType;
  readonly informer: Informer<KubeObject>;
  readonly leave: AbortController;
}

interface Collector {
  readonly kube: KubeClient;
  readonly graph: Graph;
  readonly queue: WorkQueue;
  readonly followed: Map<string, Followed>;
}

export const startGarbageCollector = ({ kube, report }: ControllerContext): Controller => {
  const stopping = new AbortController();
  const rediscover = createSignal();
  const queue = createWorkQueue({
    work: (uid) => collect(collector, uid),
    onFailure: (uid, error) => {
      if (!isConflict(error)) report('garbage collection failed', { uid, error: messageOf(error) });
    },
  });
  const collector: Collector = { kube, graph: createGraph(), queue, followed: new Map() };
  const ready = Promise.withResolvers<void>();

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        await followKinds(collector, rediscover.fire);
        ready.resolve();
      } catch (error) {
        if (!stopping.signal.aborted) report('discovery failed', { error: messageOf(error) });
      }
      await Promise.race([rediscover.next(), sleep(discoverMs, undefined, { signal: stopping.signal })]).catch(
        () => undefined,
      );
    }
  };
  const finished = run();
  return {
    ready: ready.promise,
    stop: async () => {
      stopping.abort();
      for (const { leave } of collector.followed.values()) leave.abort();
      await queue.stop();
      await finished;
      for (const { leave } of collector.followed.values()) leave.abort();
      await Promise.all([...collector.followed.values()].map(({ informer }) => informer.finished));
    },
  };
};

/** An occasional event, and a way to wait for the next one. */
const createSignal = (): { readonly fire: () => void; readonly next: () => Promise<void> } => {
  let pending = Promise.withResolvers<void>();
  return {
    fire: () => {
      pending.resolve();
      pending = Promise.withResolvers<void>();
    },
    next: () => pending.promise,
  };
};

/** Starts watches of new kinds, stops those of removed ones; returns once the lists of the new ones are complete. */
const followKinds = async (collector: Collector, onKindsChanged: () => void): Promise<void> => {
  const { types, failed } = await discover(collector.kube);
  const served = new Set(types.map(kindText));
  const unknownGroups = new Set(failed.map(({ group }) => group));
  for (const [name, { type, leave, informer }] of collector.followed) {
    // A group that does not answer now may still exist.
    if (served.has(name) || unknownGroups.has(type.group)) continue;
    leave.abort();
    collector.followed.delete(name);
    for (const { metadata } of informer.all()) forget(collector, metadata.uid ?? '');
  }
  const added = types
    .filter((type) => !collector.followed.has(kindText(type)))
    .map((type) => follow(collector, type, onKindsChanged));
  await Promise.all(added.map(({ informer, leave }) => Promise.race([informer.synced, aborted(leave.signal)])));
};

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

const follow = (collector: Collector, type: ResourceType, onKindsChanged: () => void): Followed => {
  const leave = new AbortController();
  const { signal } = leave;
  const informer = createInformer<KubeObject>({
    kube: collector.kube,
    type,
    signal,
    resyncMs: 120_000,
    onChange: (object, removed) => {
      if (kindText(type) === kindText(crds)) onKindsChanged();
      if (removed) forget(collector, object.metadata.uid ?? '');
      else learn(collector, type, object);
    },
  });
  const followed: Followed = { type, informer, leave };
  collector.followed.set(kindText(type), followed);
  return followed;
};

const learn = ({ graph, queue }: Collector, type: ResourceType, object: KubeObject): void => {
  const node = graph.put(type, object);
  if (node.owners.length > 0 || node.isDeleting) queue.add(node.uid);
  // Owners that wait for this one to change or lose its reference.
  for (const { uid } of node.owners) if (graph.get(uid)?.isDeleting === true) queue.add(uid);
  if (node.isDeleting) for (const dependent of graph.dependentsOf(node.uid)) queue.add(dependent.uid);
};

const forget = ({ graph, queue }: Collector, uid: string): void => {
  const owners = graph.get(uid)?.owners ?? [];
  graph.remove(uid);
  for (const dependent of graph.dependentsOf(uid)) queue.add(dependent.uid);
  for (const owner of owners) queue.add(owner.uid);
};

const collect = async (collector: Collector, uid: string): Promise<number | undefined> => {
  const node = collector.graph.get(uid);
  if (node === undefined) return undefined;
  if (node.isDeleting) return collectDeleting(collector, node);
  return collectOwned(collector, node);
};

const collectDeleting = async (collector: Collector, node: Node): Promise<undefined> => {
  const dependents = collector.graph.dependentsOf(node.uid);
  if (node.finalizers.includes(orphan)) {
    for (const dependent of dependents) await dropOwners(collector, dependent, [node.uid]);
    await dropFinalizer(collector, node, orphan);
  } else if (node.finalizers.includes(foreground)) {
    if (isUnblocked(node, dependents)) await dropFinalizer(collector, node, foreground);
    else for (const dependent of dependents) collector.queue.add(dependent.uid);
  }
  return undefined;
};

const collectOwned = async (collector: Collector, node: Node): Promise<number | undefined> => {
  const states: (readonly [OwnerReference, OwnerState])[] = [];
  for (const owner of node.owners) states.push([owner, await stateOf(collector, node, owner)]);
  const verdict = judge(node, states, collector.graph.dependentsOf(node.uid).length > 0);
  switch (verdict.do) {
    case 'nothing':
      return undefined;
    case 'ask-again':
      return askAgainMs;
    case 'drop-owners':
      await dropOwners(collector, node, verdict.uids);
      return undefined;
    case 'delete':
      await collector.kube.delete(node.type, node.key, { uid: node.uid, propagation: verdict.propagation });
      return undefined;
  }
};

/** Reads from the server: watches may lag behind, and a deletion cannot be undone. */
const stateOf = async (collector: Collector, node: Node, owner: OwnerReference): Promise<OwnerState> => {
  const type = [...collector.followed.values()].find((one) => isOwnerType(one.type, owner))?.type;
  if (type === undefined) return 'unknown';
  // Only cluster-scoped owners may own cluster-scoped objects.
  if (type.namespaced && node.key.namespace === undefined) return 'unknown';
  const { namespace } = node.key;
  const found = await collector.kube.get(
    type,
    type.namespaced ? { namespace, name: owner.name } : { name: owner.name },
  );
  if (found?.metadata.uid !== owner.uid) return 'absent';
  const isWaiting =
    found.metadata.deletionTimestamp !== undefined && found.metadata.finalizers?.includes(foreground) === true;
  return isWaiting ? 'leaving-foreground' : 'present';
};

/** A reference may name another version of the group than the watched one. */
const isOwnerType = (type: ResourceType, { apiVersion, kind }: OwnerReference): boolean => {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  return type.kind === kind && (type.group === group || apiVersionOf(type) === apiVersion);
};

const dropOwners = async ({ kube }: Collector, node: Node, uids: readonly string[]): Promise<void> => {
  await patchMetadata(kube, node, ({ ownerReferences = [] }) => {
    const kept = ownerReferences.filter(({ uid }) => !uids.includes(uid));
    return kept.length === ownerReferences.length ? undefined : { ownerReferences: kept };
  });
};

const dropFinalizer = async ({ kube }: Collector, node: Node, dropped: string): Promise<void> => {
  await patchMetadata(kube, node, ({ finalizers = [] }) =>
    finalizers.includes(dropped) ? { finalizers: finalizers.filter((one) => one !== dropped) } : undefined,
  );
};

/** Changes the current object, if it still is the same one; Conflict when it changed meanwhile. */
const patchMetadata = async (
  kube: KubeClient,
  node: Node,
  change: (metadata: KubeObject['metadata']) => object | undefined,
): Promise<void> => {
  const object = await kube.get(node.type, node.key);
  if (object?.metadata.uid !== node.uid) return;
  const changed = change(object.metadata);
  if (changed === undefined) return;
  const metadata = { ...changed, uid: node.uid, resourceVersion: object.metadata.resourceVersion };
  try {
    await kube.mergePatch(node.type, node.key, { metadata });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
};
