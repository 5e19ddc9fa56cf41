// A volume without its claim: wait for the source, find out its size, and make the claim, here or where the source lies.
import type { StorageClass } from '#shared/api/foreign/core.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import { planInspection } from '#shared/backends/inspecting.ts';
import { planClone } from '#shared/resources/volume/cloning.ts';
import { planElsewhere } from '#shared/resources/volume/elsewhere.ts';
import { decideFlight } from '#shared/resources/volume/flight/flight.ts';
import { buildLookJob } from '#shared/resources/volume/job.ts';
import { buildClaim, makeClaim, modesFor, sizeFor } from '#shared/resources/volume/making.ts';
import { type VolumeSeen, needsInspection } from '#shared/resources/volume/seen.ts';
import { noClass, rest } from '#shared/resources/volume/state.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';
import type { Inspection } from '#shared/transfer/report.ts';

/** What others fetch already is cloned from theirs; what nobody fetches yet is told to be fetched here, before anything is made. */
export const planClaim = (volume: Volume, seen: VolumeSeen, context: PlanContext): Plan => {
  const flight = seen.flight === undefined ? undefined : decideFlight(volume, seen.flight);
  if (flight?.is === 'following') return planFrom(volume, { ...seen, origin: flight.origin }, context);
  const plan = planFrom(volume, seen, context);
  return flight?.is === 'leading' ? { ...plan, actions: [...flight.actions, ...plan.actions] } : plan;
};

const planFrom = (volume: Volume, seen: VolumeSeen, context: PlanContext): Plan => {
  const { origin, storageClass, stage } = seen;
  if (stage !== undefined) return planElsewhere(volume, { ...seen, stage }, context);
  if (origin?.is === 'waiting') return rest(volume, origin);
  if (storageClass === undefined) return noClass(volume, origin?.className, context);
  if (origin === undefined) return planEmpty(volume, { ...seen, storageClass }, context);
  return planClone(volume, { ...seen, origin, storageClass }, context);
};

type Emptied = VolumeSeen & { readonly storageClass: StorageClass };

/** A claim that a Job fills from a source of bytes. */
const planEmpty = (volume: Volume, seen: Emptied, context: PlanContext): Plan => {
  const { inspectJob: job, pods } = seen;
  if (!needsInspection(volume)) return makeEmpty(volume, seen, {}, context);
  const looked = planInspection(volume, { job, pods, build: () => buildLookJob(volume, context.settings) }, context);
  if (looked.is === 'planned') return looked.plan;
  const { diskBytes, inspection, state } = looked;
  const sized = { ...volume, state, claim: { ...volume.claim, diskBytes } };
  return makeEmpty(sized, seen, { inspected: inspection }, context);
};

const makeEmpty = (
  volume: Volume,
  seen: Emptied,
  { inspected }: { readonly inspected?: Inspection },
  context: PlanContext,
): Plan => {
  const { storageClass } = seen;
  const { volumeMode, accessModes } = modesFor(volume, seen);
  const claim = buildClaim(volume, {
    className: storageClass.metadata.name,
    volumeMode,
    accessModes,
    bytes: sizeFor(volume, volumeMode, storageClass, context) ?? 0,
    inspected,
  });
  return makeClaim(volume, { claim, storageClass }, context);
};
