// An object has come to rest: those who wait for it are reconciled, and so is what waits for it to be done. This is what replaces polling.
import { type KubeObject, apiVersionOf } from '#shared/api/object.ts';
import { labels } from '#shared/api/names.ts';
import { sourceLabel } from '#shared/api/owner.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';
import { type ReconcileDeps, reconcile } from '#shared/resources/reconcile.ts';
import { reconcileEach } from '#shared/resources/each.ts';
import { reconcilers, reconcilerOfGroupKind } from '#shared/resources/registry.ts';
import { type Outcome, worstOf } from '#shared/runtime/outcome.ts';

/** Looks for those who wait by label, kind by kind; an event of an object that nobody waits for costs one empty list per kind. */
export const wakeOthers = async (deps: ReconcileDeps, reconciler: Reconciler, object: KubeObject): Promise<Outcome> => {
  const subject = reconciler.read(object);
  const outcomes: Outcome[] = [];
  for (const offer of reconciler.links?.offersOf(subject) ?? []) {
    const labelSelector = `${labels.source}=${sourceLabel(offer)}`;
    for (const waiting of waitersFor(offer.groupKind)) {
      // oxlint-disable-next-line no-await-in-loop
      outcomes.push(await reconcileEach(deps, waiting, deps.kube.listAll(waiting.kind.type, { labelSelector })));
    }
  }
  const source = reconciler.links?.sourceOf(subject);
  const owner = source && reconcilerOfGroupKind(source.groupKind);
  if (source !== undefined && owner !== undefined) {
    const { type } = owner.kind;
    outcomes.push(await reconcile(deps, { ...source, apiVersion: apiVersionOf(type), kind: type.kind }));
  }
  return worstOf(outcomes);
};

const waitersFor = (groupKind: string): readonly Reconciler[] =>
  reconcilers.filter(({ links }) => links?.waitsFor.includes(groupKind) === true);
