// Drives everything that is not settled: what repairs lost events and enforces deadlines. Called by cron-tick.
import type { Driven } from '#shared/resources/driven.ts';
import { type DriverDeps, drive } from '#shared/resources/driver.ts';
import { drivenKinds } from '#shared/resources/registry.ts';
import { type KubeObject, refOf } from '#shared/api/object.ts';
import { AppError, isNotFound, messageOf } from '#shared/runtime/errors.ts';
import { type Outcome, done, retry, worstOf } from '#shared/runtime/outcome.ts';

/** Objects driven at once. */
const width = 8;

/** Told of every object that a sweep comes across. */
export type Visit = (object: KubeObject) => void;

/** Nobody is asked to deliver a tick again: the next one comes by itself. */
export const sweep = async (deps: DriverDeps, signal?: AbortSignal, visit: Visit = () => {}): Promise<Outcome> => {
  const outcomes: Outcome[] = [];
  for (const driven of drivenKinds) {
    // oxlint-disable-next-line no-await-in-loop
    outcomes.push(await sweepKind(deps, driven, { signal, visit }));
  }
  return worstOf(outcomes);
};

interface Sweeping {
  readonly signal: AbortSignal | undefined;
  readonly visit: Visit;
}

const sweepKind = async (deps: DriverDeps, driven: Driven, { signal, visit }: Sweeping): Promise<Outcome> => {
  const driving = new Set<Promise<unknown>>();
  let count = 0;
  try {
    for await (const object of deps.kube.listAll(driven.kind.type)) {
      if (signal?.aborted === true) break;
      visit(object);
      if (driven.isSettled(driven.read(object))) continue;
      count += 1;
      const work = driveQuietly(deps, object).finally(() => driving.delete(work));
      driving.add(work);
      if (driving.size >= width) await Promise.race(driving);
    }
  } catch (error) {
    // A kind whose CRD is not installed has no objects.
    if (!isNotFound(error)) throw error;
  } finally {
    await Promise.all(driving);
  }
  deps.log.debug('swept', { kind: driven.kind.type.kind, group: driven.kind.type.group, driven: count });
  return done;
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
