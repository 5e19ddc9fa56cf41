// Imports under faults: what must never happen meanwhile, and the required final state of each.
import { configMaps, csiDrivers, jobs, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { annotations, labels, systemNamespace, transferQueue } from '#shared/api/names.ts';
import { isFinished } from '#shared/populate/job/attempts.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { ImageObject } from '#shared/resources/dialect.ts';
import { begunIn, leftInStore, orphansIn, summaryOf, untoldIn, watchInvariants } from '#test/faults/invariants.ts';
import type { Scenario } from '#test/faults/scenarios.ts';
import { aCsiDriver, aSnapshotClass, aStorageClass } from '#test/support/builders.ts';
import { NotFound } from '#shared/runtime/errors.ts';
import { createRandom } from '#test/support/random.ts';
import { calm, storm } from '#test/support/simulation/chaos.ts';
import { type World, type WorldOptions, createWorld, imageIn } from '#test/support/simulation/world.ts';

/** Milliseconds after which a user requests a retry. */
const insistMs = 5_000;
const stormMs = 8 * 60_000;
const limitMs = 4 * 3_600_000;

export interface Run {
  readonly world: World;
  /** Violated invariants; empty if there are none. */
  readonly violations: readonly string[];
  readonly summary: unknown;
}

export const runScenario = async (scenario: Scenario, seed: number, over: Partial<WorldOptions> = {}): Promise<Run> => {
  const violations: string[] = [];
  const world = createWorld({
    seed,
    chaos: storm,
    stormMs,
    attempt: scenario.attempt,
    ...(scenario.snapshotError === undefined ? {} : { snapshotError: scenario.snapshotError }),
    ...over,
  });
  const report = (text: string) => void violations.push(`at ${Math.round(world.elapsed() / 1000)} s: ${text}`);
  world.kube.onChange(watchInvariants(world, report));
  world.kube.onChange(() => reportTooMany(world, scenario, report));
  populate(world, scenario);
  playUser(world, scenario, seed);
  await world.run(limitMs);
  violations.push(...world.cluster.overwrites, ...world.bugs.map((bug) => `a bug was thrown: ${String(bug)}`));
  violations.push(...orphansIn(world), ...untoldIn(world), ...leftInStore(world), ...begunIn(world));
  const { transfers, ...summary } = summaryOf(world);
  if (scenario.user !== 'retries') return { world, violations, summary: { ...summary, transfers } };
  // Whether the import had ended when its user requested a retry depends on the faults.
  if (transfers.some((count) => count > 2)) violations.push(`one retry made ${transfers.join()} transfers`);
  return { world, violations, summary };
};

/** Of the transfers that limits apply to. */
const reportTooMany = (world: World, { running = Infinity }: Scenario, report: (text: string) => void): void => {
  const some = world.kube
    .all(jobs)
    .filter(
      (job) => job.metadata.labels?.[labels.queue] === 'running' && job.spec.suspend !== true && !isFinished(job),
    );
  if (some.length > running) report(`${some.length} transfers run at once, where ${running} may`);
};

/** The final state of a run without faults. */
export const runCalm = (scenario: Scenario, seed: number): Promise<Run> => runScenario(scenario, seed, { chaos: calm });

const populate = (world: World, scenario: Scenario) => {
  const binding = scenario.waitForConsumer === true ? 'WaitForFirstConsumer' : 'Immediate';
  world.kube.seed(storageClasses, aStorageClass('local', { volumeBindingMode: binding }));
  if (scenario.running !== undefined)
    world.kube.seed(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: systemNamespace, name: transferQueue },
      data: { running: String(scenario.running) },
    });
  if (scenario.hasDriver === true) world.kube.seed(csiDrivers, aCsiDriver());
  if (scenario.withoutSnapshots !== true) world.kube.seed(volumeSnapshotClasses, aSnapshotClass());
  for (const { type, object } of [scenario, ...(scenario.alongside ?? [])].map(createdBy)) {
    world.schedule(0, () => void insist(world, () => world.kube.create(type, object)));
  }
};

const createdBy = (given: Scenario | { readonly type: ResourceType; readonly object: ImageObject }) => ({
  type: given.type,
  object: 'image' in given ? given.image : given.object,
});

/** A request of a user that is repeated until the API accepts it. */
const insist = async (world: World, what: () => Promise<unknown>): Promise<void> => {
  for (;;) {
    try {
      return void (await what());
    } catch {
      await new Promise<void>((resolve) => world.schedule(world.elapsed() + insistMs, resolve));
    }
  }
};

const playUser = (world: World, { user, type, image }: Scenario, seed: number) => {
  if (user === undefined) return;
  const key = { namespace: 'default', name: image.metadata.name };
  const retry = { metadata: { annotations: { [annotations.retry]: 'again' } } };
  const act = async () => {
    if (imageIn(world) === undefined) throw new NotFound('the image is not there yet');
    if (user === 'retries') return world.kube.mergePatch(type, key, retry);
    return world.kube.delete(type, key);
  };
  const play = async () => {
    await insist(world, act);
    if (user === 'deletes-and-recreates') await insist(world, () => world.kube.create(type, image));
  };
  world.schedule(createRandom(seed + 1).below(120_000), () => void play());
};
