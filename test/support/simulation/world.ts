// A whole cluster on a virtual clock: the functions over an in-memory API, the controllers around them, and a broker that can be as
// unreliable as a seed asks for.
import { eventTypes, type KnownEvent } from '#events/catalogue.ts';
import type { KubeObject, ObjectRef } from '#shared/api/object.ts';
import { ownerOf } from '#shared/api/owner.ts';
import { backends } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Announce } from '#shared/resources/announcer.ts';
import type { DriverDeps } from '#shared/resources/driver.ts';
import { handleChildEvent, handleObjectEvent } from '#shared/resources/handle.ts';
import { drivenOf } from '#shared/resources/registry.ts';
import { sweep } from '#shared/resources/sweep.ts';
import { Conflict, Unavailable } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import type { Outcome } from '#shared/runtime/outcome.ts';
import type { TransferProgress } from '#shared/transfer/progress.ts';
import { testSettings, testTime } from '#test/support/builders.ts';
import { type Change, type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';
import { type Random, createRandom } from '#test/support/random.ts';
import { type AttemptScript, type SimulatedCluster, createCluster } from '#test/support/simulation/cluster.ts';
import { type Verdict, createScheduler, deathAfterEffect } from '#test/support/simulation/scheduler.ts';

/** Probabilities, each for one event or one call. */
export interface Chaos {
  readonly drop: number;
  readonly repeat: number;
  readonly delay: number;
  readonly apiFault: number;
  readonly death: number;
  /** The clock jumps by up to ten minutes, forward. */
  readonly clockJump: number;
  readonly interleave: number;
}

export const calm: Chaos = { drop: 0, repeat: 0, delay: 0, apiFault: 0, death: 0, clockJump: 0, interleave: 0 };
export const storm: Chaos = {
  drop: 0.2,
  repeat: 0.2,
  delay: 0.3,
  apiFault: 0.06,
  death: 0.03,
  clockJump: 0.002,
  interleave: 0.4,
};

export interface WorldOptions {
  readonly seed?: number;
  readonly chaos?: Chaos;
  /** Milliseconds of virtual time until the chaos stops. */
  readonly stormMs?: number;
  readonly attempt: (mode: 'inspect' | 'import', attempt: number) => AttemptScript;
  readonly snapshotError?: string;
  /** Decides each call instead of the seed: for tests that kill at one exact place. */
  readonly judge?: (call: string, index: number) => Verdict | undefined;
}

interface Delivery {
  readonly to: 'initialize' | 'sidecar-sync' | 'cron-tick';
  readonly event: KnownEvent;
  readonly at: number;
  readonly attempt: number;
}

export interface World {
  readonly kube: MemoryKube;
  readonly cluster: SimulatedCluster;
  /** Milliseconds since the world began. */
  elapsed(): number;
  /** Does something when the time has come. */
  schedule(afterMs: number, what: () => void): void;
  /** Runs until nothing is left to happen but ticks that change nothing, or until `limitMs` of virtual time. */
  run(limitMs: number): Promise<void>;
  /** Kubernetes calls made by functions, in order. */
  readonly trace: string[];
  /** Throws of functions that were no AppError: bugs. */
  readonly bugs: unknown[];
  /** Final transitions the outside has heard of: `<uid> <phase>`. */
  readonly heard: string[];
}

const tickMs = 60_000;
/** Ticks in a row that changed nothing, after which nothing ever will. */
const quietTicks = 15;
const maxDeliveries = 6;

const followed = new Set(['Job', 'PersistentVolumeClaim', 'VolumeSnapshot']);
const changeTypes = {
  ADDED: eventTypes.objectAdded,
  MODIFIED: eventTypes.objectUpdated,
  DELETED: eventTypes.objectDeleted,
} as const;

const eventOf = (type: KnownEvent['type'], data: unknown): KnownEvent =>
  ({ id: 'simulated', source: 'simulation', type, extensions: {}, data }) as KnownEvent;

const subscriberOf = ({ type, object }: Change): Delivery['to'] | undefined => {
  if (drivenOf(object) !== undefined) return type === 'DELETED' ? undefined : 'initialize';
  return followed.has(object.kind) && ownerOf(object) !== undefined ? 'sidecar-sync' : undefined;
};

export const createWorld = (options: WorldOptions): World => {
  const { seed = 1, chaos = calm, stormMs = 0 } = options;
  const random: Random = createRandom(seed);
  let clock = testTime;
  const now = () => clock;
  const kube = createMemoryKube({ now, protect: { persistentvolumeclaims: ['kubernetes.io/pvc-protection'] } });
  const scheduler = createScheduler(kube);
  let queue: Delivery[] = [];
  let agenda: { readonly at: number; readonly what: () => void }[] = [];
  let nextTick = clock + tickMs;
  let changes = 0;
  const trace: string[] = [];
  const bugs: unknown[] = [];
  const heard: string[] = [];

  const isStormy = () => clock - testTime < stormMs;
  const odds = (name: keyof Chaos) => isStormy() && random.chance(chaos[name]);

  const send = (to: Delivery['to'], event: KnownEvent, attempt = 1, after = 0) => {
    const times = odds('drop') ? 0 : odds('repeat') ? 2 : 1;
    for (let index = 0; index < times; index += 1) {
      const delay = odds('delay') ? random.below(90_000) : 0;
      queue.push({ to, event, attempt, at: clock + after + delay });
    }
  };

  const cluster = createCluster({
    kube,
    now,
    attempt: options.attempt,
    ...(options.snapshotError === undefined ? {} : { snapshotError: options.snapshotError }),
    onProgress: (owner: ObjectRef, progress: TransferProgress) =>
      send('sidecar-sync', eventOf(eventTypes.transferProgressed, { owner, progress })),
  });

  kube.onChange((change) => {
    changes += 1;
    const to = subscriberOf(change);
    if (to !== undefined) send(to, eventOf(changeTypes[change.type], change.object));
  });

  /** The sink of the functions: deaf at times. */
  const announce: Announce = async ({ ref }, { phase }) => {
    if (odds('apiFault')) return false;
    heard.push(`${ref.uid} ${phase}`);
    return true;
  };

  const depsFor = (client: KubeClient): DriverDeps => ({
    kube: client,
    backends,
    settings: testSettings,
    now,
    log: silentLogger,
    announce,
  });

  const handle = (delivery: Delivery, client: KubeClient): Promise<Outcome> => {
    const deps = depsFor(client);
    if (delivery.to === 'initialize') return handleObjectEvent(deps, delivery.event);
    if (delivery.to === 'sidecar-sync') return handleChildEvent(deps, delivery.event);
    return sweep(deps);
  };

  const again = (delivery: Delivery) => {
    if (delivery.to === 'cron-tick' || delivery.attempt >= maxDeliveries) return;
    send(delivery.to, delivery.event, delivery.attempt + 1, 500 * 2 ** (delivery.attempt - 1));
  };

  const deliver = (delivery: Delivery) => {
    let outcome: Outcome | undefined;
    const process = scheduler.spawn(delivery.to, async (client) => {
      outcome = await handle(delivery, client);
    });
    void process.ended.then((end) => {
      if (end === 'killed' || outcome?.kind === 'retry') again(delivery);
      if (typeof end !== 'object') return;
      if (end.error instanceof Conflict || end.error instanceof Unavailable) again(delivery);
      else bugs.push(end.error);
    });
  };

  const judge = (call: string): Verdict => {
    const forced = options.judge?.(call, trace.length - 1);
    if (forced !== undefined) return forced;
    if (odds('death')) return random.chance(0.5) ? { is: 'kill' } : deathAfterEffect;
    if (!odds('apiFault')) return { is: 'go' };
    if (random.chance(0.3)) return { is: 'fault', fault: { error: new Conflict('made up'), when: 'before' } };
    return { is: 'fault', fault: { error: new Unavailable('made up'), when: random.chance(0.5) ? 'before' : 'after' } };
  };

  const releaseOne = async () => {
    const index = isStormy() ? random.below(scheduler.waiting.length) : 0;
    const { process, call } = scheduler.waiting[index]!;
    trace.push(`${process}: ${call}`);
    await scheduler.release(index, judge(call));
  };

  const deliverDue = (): boolean => {
    const due = queue.filter(({ at }) => at <= clock);
    if (due.length === 0) return false;
    const next = due[isStormy() ? random.below(due.length) : 0]!;
    queue = queue.filter((delivery) => delivery !== next);
    deliver(next);
    return true;
  };

  const doDue = (): boolean => {
    const due = agenda.filter(({ at }) => at <= clock);
    agenda = agenda.filter(({ at }) => at > clock);
    for (const { what } of due) what();
    return due.length > 0;
  };

  /** One thing that can happen now; `false` when only time can move on. */
  const happen = async (): Promise<boolean> => {
    await scheduler.settle();
    const isBusy = scheduler.waiting.length > 0;
    if (isBusy && !odds('interleave')) {
      await releaseOne();
      return true;
    }
    if (doDue() || cluster.step() || deliverDue()) return true;
    if (isBusy) await releaseOne();
    return isBusy;
  };

  const advance = (end: number): boolean => {
    if (odds('clockJump')) clock += random.below(600_000);
    const next = Math.min(nextTick, cluster.nextWake(), ...queue.map(({ at }) => at), ...agenda.map(({ at }) => at));
    clock = Math.max(clock, next);
    if (clock > end) return false;
    if (clock >= nextTick) {
      nextTick = clock + tickMs;
      queue.push({ to: 'cron-tick', event: eventOf(eventTypes.ping, {}), at: clock, attempt: 1 });
    }
    return true;
  };

  return {
    kube,
    cluster,
    trace,
    bugs,
    heard,
    elapsed: () => clock - testTime,
    schedule: (afterMs, what) => void agenda.push({ at: testTime + afterMs, what }),
    run: async (limitMs) => {
      let quietSince = { changes: -1, tick: 0 };
      while (clock - testTime < limitMs) {
        if (await happen()) continue;
        if (changes !== quietSince.changes || isStormy() || agenda.length > 0) quietSince = { changes, tick: clock };
        if (clock - quietSince.tick > quietTicks * tickMs) return;
        if (!advance(testTime + limitMs)) return;
      }
    },
  };
};

/** The one image of a world; `undefined` once it is gone. */
export const imageIn = <T extends KubeObject>(world: World): T | undefined =>
  world.kube.all<KubeObject>().find(({ kind }) => kind === 'VirtualMachineImage') as T | undefined;
