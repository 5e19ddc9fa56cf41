// The objects of our kinds, let go of while there are functions to do it. Called by commands/uninstall.ts.
import { setTimeout as sleep } from 'node:timers/promises';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { crds } from '#shared/api/foreign/kubernetes.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { finalizers } from '#shared/api/names.ts';
import { keyOf, type KubeObject, type ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { tolerate, isChangedMeanwhile, eachIfServed } from '#shared/clients/kube/tolerant.ts';
import { AppError, isRetryable, messageOf } from '#shared/runtime/errors.ts';

/** Milliseconds between two looks at what is left. */
const pollMs = 500;

const ours = new Set<string>(Object.values(finalizers));
const isHeld = ({ metadata }: KubeObject): boolean => metadata.finalizers?.some((name) => ours.has(name)) === true;

/** On everything that we install. */
export const partOfUs = 'app.kubernetes.io/part-of=bullion';

/** Those whose definition is ours: where a CDI is installed, its kinds are its own. Crons first, since they make what is deleted anew. */
export const installedKinds = async (kube: KubeClient): Promise<readonly ResourceType[]> => {
  const names = new Set<string>();
  for await (const { metadata } of kube.listAll(crds, { labelSelector: partOfUs })) names.add(metadata.name);
  const types = servedKinds.map(({ type }) => type).filter((type) => names.has(`${type.plural}.${type.group}`));
  const isCron = ({ kind }: ResourceType) => kind === dataImportCronKind.type.kind;
  return [...types.filter(isCron), ...types.filter((type) => !isCron(type))];
};

export interface Held {
  readonly type: ResourceType;
  readonly object: KubeObject;
  /** Why it cannot be deleted, in the words of the server. */
  readonly refusal?: string;
}

export const listObjects = async (kube: KubeClient, types: readonly ResourceType[]): Promise<readonly Held[]> => {
  const found: Held[] = [];
  // A kind may be gone already with an earlier run.
  for (const type of types) for await (const object of eachIfServed(kube, type)) found.push({ type, object });
  return found;
};

/** Asks for each to be deleted; gives those that are still there, with what the server had against it. */
const ask = async (kube: KubeClient, held: readonly Held[]): Promise<readonly Held[]> => {
  const asked: Held[] = [];
  for (const one of held) {
    try {
      if (one.object.metadata.deletionTimestamp === undefined) await kube.delete(one.type, keyOf(one.object));
      asked.push(one);
    } catch (error) {
      if (!(error instanceof AppError) || isRetryable(error)) throw error;
      asked.push({ ...one, refusal: messageOf(error) });
    }
  }
  return asked;
};

interface LetGo {
  readonly kube: KubeClient;
  readonly types: readonly ResourceType[];
  /** `performance.now()` when it is given up. */
  readonly deadline: number;
  readonly signal: AbortSignal;
  /** Told how many are left. */
  readonly onLook: (left: number) => void;
}

/**
 * Deletes all objects and waits until none is left that we hold. What makes them anew (templates, profiles of storage classes) leaves objects
 * that nobody holds, and those go with their definition. Gives what is left when the time is over; nothing: all is let go of.
 */
export const letGo = async ({ kube, types, deadline, signal, onLook }: LetGo): Promise<readonly Held[]> => {
  for (;;) {
    const left = await ask(kube, await listObjects(kube, types));
    const held = left.filter(({ object, refusal }) => refusal !== undefined || isHeld(object) || isYoung(object));
    onLook(held.length);
    if (held.length === 0 || performance.now() >= deadline || signal.aborted) return held;
    await sleep(pollMs, undefined, { signal }).catch(() => undefined);
  }
};

/** Not yet asked to go when it was read: a function may be taking hold of it now. Profiles are held by nobody, and made anew by each sweep. */
const isYoung = ({ kind, metadata }: KubeObject): boolean =>
  metadata.deletionTimestamp === undefined && kind !== 'StorageProfile';

/** What was made after all was let go of, by functions that are gone now: nothing can have been made for it yet that would outlive it. */
export const release = async (kube: KubeClient, types: readonly ResourceType[]): Promise<number> => {
  const left = (await listObjects(kube, types)).filter(({ object }) => isHeld(object));
  for (const { type, object } of left) {
    const kept = object.metadata.finalizers?.filter((name) => !ours.has(name)) ?? [];
    await tolerate(kube.mergePatch(type, keyOf(object), { metadata: { finalizers: kept } }), isChangedMeanwhile);
  }
  return left.length;
};
