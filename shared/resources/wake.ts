// An object has come to rest: those who wait for it are driven, and so is what waits for it to be done. This is what replaces polling.
import { type KubeObject, apiVersionOf } from '#shared/api/object.ts';
import { labels } from '#shared/api/names.ts';
import { sourceLabel } from '#shared/api/owner.ts';
import type { Driven } from '#shared/resources/driven.ts';
import { type DriverDeps, drive } from '#shared/resources/driver.ts';
import { driveEach } from '#shared/resources/each.ts';
import { drivenKinds, drivenOfGroupKind } from '#shared/resources/registry.ts';
import { type Outcome, worstOf } from '#shared/runtime/outcome.ts';

/** Looks for those who wait by label, kind by kind; an event of an object that nobody waits for costs one empty list per kind. */
export const wakeOthers = async (deps: DriverDeps, driven: Driven, object: KubeObject): Promise<Outcome> => {
  const subject = driven.read(object);
  const outcomes: Outcome[] = [];
  for (const offer of driven.links?.offersOf(subject) ?? []) {
    const labelSelector = `${labels.source}=${sourceLabel(offer)}`;
    for (const waiting of waitersFor(offer.groupKind)) {
      // oxlint-disable-next-line no-await-in-loop
      outcomes.push(await driveEach(deps, waiting, deps.kube.listAll(waiting.kind.type, { labelSelector })));
    }
  }
  const source = driven.links?.sourceOf(subject);
  const owner = source && drivenOfGroupKind(source.groupKind);
  if (source !== undefined && owner !== undefined) {
    const { type } = owner.kind;
    outcomes.push(await drive(deps, { ...source, apiVersion: apiVersionOf(type), kind: type.kind }));
  }
  return worstOf(outcomes);
};

const waitersFor = (groupKind: string): readonly Driven[] =>
  drivenKinds.filter(({ links }) => links?.waitsFor.includes(groupKind) === true);
