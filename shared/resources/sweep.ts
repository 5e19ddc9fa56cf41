// Drives everything that is not settled: what repairs lost events and enforces deadlines. Called by cron-tick.
import type { ImageDialect, ImageObject } from '#shared/resources/dialect.ts';
import { type DriverDeps, driveImage } from '#shared/resources/driver.ts';
import { imageDialects } from '#shared/resources/registry.ts';
import { isSettled } from '#shared/resources/transitions.ts';
import { refOf } from '#shared/api/object.ts';
import { AppError, isNotFound, messageOf } from '#shared/runtime/errors.ts';
import { type Outcome, done, retry, worstOf } from '#shared/runtime/outcome.ts';

/** Images driven at once. */
const width = 8;

/** Nobody is asked to deliver a tick again: the next one comes by itself. */
export const sweepImages = async (deps: DriverDeps, signal?: AbortSignal): Promise<Outcome> => {
  const outcomes: Outcome[] = [];
  for (const dialect of imageDialects) {
    // oxlint-disable-next-line no-await-in-loop
    outcomes.push(await sweepKind(deps, dialect, signal));
  }
  return worstOf(outcomes);
};

const sweepKind = async (deps: DriverDeps, dialect: ImageDialect, signal?: AbortSignal): Promise<Outcome> => {
  const driving = new Set<Promise<unknown>>();
  let driven = 0;
  try {
    for await (const object of deps.kube.listAll(dialect.kind.type)) {
      if (signal?.aborted === true) break;
      if (isSettled(dialect.toImage(object))) continue;
      driven += 1;
      const drive = driveQuietly(deps, object).finally(() => driving.delete(drive));
      driving.add(drive);
      if (driving.size >= width) await Promise.race(driving);
    }
  } catch (error) {
    // A kind whose CRD is not installed has no objects.
    if (!isNotFound(error)) throw error;
  } finally {
    await Promise.all(driving);
  }
  deps.log.debug('swept', { kind: dialect.kind.type.kind, group: dialect.kind.type.group, driven });
  return done;
};

/** One image in trouble must not keep the others from being driven. */
const driveQuietly = async (deps: DriverDeps, object: ImageObject): Promise<Outcome> => {
  try {
    return await driveImage(deps, refOf(object));
  } catch (error) {
    const isExpected = error instanceof AppError;
    deps.log[isExpected ? 'warn' : 'error']('image not driven', {
      image: `${object.metadata.namespace ?? ''}/${object.metadata.name}`,
      error: isExpected ? messageOf(error) : error,
    });
    return retry(0, messageOf(error));
  }
};
