// Drives many objects of one kind, some at a time. Called by the sweep, and where many wait for one.
import { type KubeObject, refOf } from '#shared/api/object.ts';
import type { Driven } from '#shared/resources/driven.ts';
import { type DriverDeps, drive } from '#shared/resources/driver.ts';
import { AppError, isNotFound, messageOf } from '#shared/runtime/errors.ts';
import { type Outcome, retry, worstOf } from '#shared/runtime/outcome.ts';

/** Objects driven at once. */
const width = 8;

/** Everything among `objects` that is not settled; gives the worst of what came of it. A kind whose CRD is not installed has no objects. */
export const driveEach = async (
  deps: DriverDeps,
  driven: Driven,
  ...[objects, signal]: [AsyncIterable<KubeObject>, AbortSignal?]
): Promise<Outcome> => {
  const driving = new Set<Promise<unknown>>();
  const outcomes: Outcome[] = [];
  try {
    for await (const object of objects) {
      if (signal?.aborted === true) break;
      if (driven.isSettled(driven.read(object))) continue;
      const work = driveQuietly(deps, object)
        .then((outcome) => outcomes.push(outcome))
        .finally(() => driving.delete(work));
      driving.add(work);
      if (driving.size >= width) await Promise.race(driving);
    }
  } catch (error) {
    if (!isNotFound(error)) throw error;
  } finally {
    await Promise.all(driving);
  }
  deps.log.debug('driven', { kind: driven.kind.type.kind, group: driven.kind.type.group, count: outcomes.length });
  return worstOf(outcomes);
};

/** One object in trouble must not keep the others from being driven. */
const driveQuietly = async (deps: DriverDeps, object: KubeObject): Promise<Outcome> => {
  try {
    return await drive(deps, refOf(object));
  } catch (error) {
    const isExpected = error instanceof AppError;
    deps.log[isExpected ? 'warn' : 'error']('object not driven', {
      object: `${object.metadata.namespace ?? ''}/${object.metadata.name}`,
      error: isExpected ? messageOf(error) : error,
    });
    return retry(0, messageOf(error));
  }
};
