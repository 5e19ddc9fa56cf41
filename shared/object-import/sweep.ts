// Handles changes without a notification: images that ended, versions to remove, objects whose notification was lost. Called by the tick.
import { findCondition } from '#shared/api/conditions.ts';
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { shortHash } from '#shared/object-import/description.ts';
import { type ObjectImportDeps, importObject } from '#shared/object-import/drive.ts';
import type { ObjectHint } from '#shared/object-import/notification.ts';
import { objectAnnotations, objectLabels } from '#shared/object-import/plan.ts';
import { type ImportRule, matchRule } from '#shared/object-import/rules.ts';
import { AppError } from '#shared/runtime/errors.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';

/** The object of an image; `undefined` for other images. */
export const hintOf = ({ metadata }: HyperCloudImage): ObjectHint | undefined => {
  const bucket = metadata.annotations?.[objectAnnotations.bucket];
  const key = metadata.annotations?.[objectAnnotations.key];
  const isMarked = metadata.labels?.[objectLabels.object] !== undefined;
  return isMarked && bucket !== undefined && key !== undefined ? { bucket, key } : undefined;
};

const hashOf = ({ bucket, key }: ObjectHint): string => shortHash([bucket, key]);

const isReady = ({ status }: HyperCloudImage): boolean => findCondition(status?.conditions, 'Ready')?.status === 'True';

/** Objects with several versions, or with one that is not ready: they may need another pass. */
const unsettled = (versions: readonly HyperCloudImage[]): readonly ObjectHint[] => {
  const groups = Map.groupBy(versions, (image) => image.metadata.labels?.[objectLabels.object]);
  return [...groups.values()].flatMap((group) => {
    const hint = group[0] && hintOf(group[0]);
    return hint !== undefined && (group.length > 1 || !group.every(isReady)) ? [hint] : [];
  });
};

/** Listings find only the few objects whose notification was lost, and cost one request per thousand objects. */
export const createListingClock = (everyMs: number, now: () => number): (() => boolean) => {
  let listedAt = -Infinity;
  return () => {
    if (now() - listedAt < everyMs) return false;
    listedAt = now();
    return true;
  };
};

/** Objects that match a rule but have no image. A bucket that cannot be listed is logged: the next pass retries. */
const unobserved = async (
  deps: ObjectImportDeps,
  rule: ImportRule,
  known: ReadonlySet<string>,
): Promise<readonly ObjectHint[]> => {
  const found: ObjectHint[] = [];
  const isNew = (hint: ObjectHint): boolean => {
    const match = matchRule(deps.rules, hint.bucket, hint.key);
    return match?.rule === rule && match.key === hint.key && !known.has(hashOf(hint));
  };
  try {
    const { s3, close } = await deps.openStore(rule);
    const { bucket } = rule;
    try {
      for await (const { key } of s3.list(bucket, rule.prefix)) found.push({ bucket, key });
    } finally {
      await close();
    }
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    deps.log.warn('bucket not listed', { bucket: rule.bucket, error: error.message });
  }
  return found.filter(isNew);
};

/** One pass. A failure of one object is logged and does not affect the others; the next pass retries. */
export const sweepObjects = async (deps: ObjectImportDeps, signal: AbortSignal): Promise<Outcome> => {
  if (deps.rules.length === 0) return done;
  const versions: HyperCloudImage[] = [];
  for (const namespace of new Set(deps.rules.map((rule) => rule.namespace)))
    for await (const image of deps.kube.listAll(hyperCloudImageKind.type, {
      namespace,
      labelSelector: objectLabels.object,
    }))
      versions.push(image);
  const known = new Set(versions.flatMap((image) => hintOf(image) ?? []).map(hashOf));
  const lost: ObjectHint[] = [];
  const isListingDue = deps.isListingDue?.() ?? true;
  if (isListingDue) for (const rule of deps.rules) lost.push(...(await unobserved(deps, rule, known)));
  for (const hint of [...unsettled(versions), ...lost]) {
    if (signal.aborted) break;
    await importObject(deps, hint).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error;
      deps.log.warn('object not imported', { ...hint, error: error.message });
    });
  }
  return done;
};
