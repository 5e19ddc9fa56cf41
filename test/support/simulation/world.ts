// A whole cluster on a virtual clock: the functions over an in-memory API, the controllers, the product's own forwarder and Triggers, and a
// broker, an API and webhooks that are as unreliable as a seed determines.
import { eventTypes } from '#events/catalogue.ts';
import type { Sleep } from '#events/sender.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { ownAccountPrefix } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Announce } from '#shared/resources/announcer.ts';
import { AppError, Unavailable, isRetryable } from '#shared/runtime/errors.ts';
import type { Outcome } from '#shared/runtime/outcome.ts';
import { testTime } from '#test/support/builders.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';
import { createRandom } from '#test/support/random.ts';
import type { Attempts } from '#test/support/simulation/attempts.ts';
import { type Delivery, createBroker } from '#test/support/simulation/broker.ts';
import { installCdi } from '#test/support/simulation/cdi.ts';
import { type Chaos, calm, drawApiFault } from '#test/support/simulation/chaos.ts';
import { type SimulatedCluster, createCluster } from '#test/support/simulation/cluster.ts';
import { startWatching } from '#test/support/simulation/eventing.ts';
import { type FunctionsOptions, createFunctions } from '#test/support/simulation/functions.ts';
import { type Verdict, createScheduler, deathAfterEffect } from '#test/support/simulation/scheduler.ts';
import { createWebhooks } from '#test/support/simulation/webhooks.ts';
import { signedProgress } from '#test/support/transfer-secret.ts';

export interface WorldOptions extends Pick<FunctionsOptions, 'backends' | 'observe' | 'cdi'> {
  readonly seed?: number;
  readonly chaos?: Chaos;
  /** Milliseconds of virtual time until the storm ends. */
  readonly stormMs?: number;
  readonly attempt: Attempts;
  readonly snapshotError?: string;
  readonly hasVolumes?: boolean;
  /** Decides about each call instead of the seed: for tests that kill at one exact call. */
  readonly judge?: (call: string, index: number) => Verdict | undefined;
}

export interface World {
  readonly kube: MemoryKube;
  readonly cluster: SimulatedCluster;
  /** Milliseconds since the world began. */
  elapsed(): number;
  /** Calls the function at that time. */
  schedule(elapsedMs: number, what: () => void): void;
  /** Admission is unavailable until this many milliseconds since the world began. */
  webhooksDownUntil(ms: number): void;
  /** Runs until only ticks without changes are left, or until `limitMs` of virtual time. */
  run(limitMs: number): Promise<void>;
  /** Kubernetes calls made by functions, in order. */
  readonly trace: string[];
  /** Exceptions of functions that are not an AppError: bugs. */
  readonly bugs: unknown[];
  /** Announced final transitions: `<uid> <phase>`. */
  readonly announced: string[];
  /** Writes that were rejected because admission was unavailable. */
  readonly refused: readonly string[];
}

const tickMs = 60_000;
/** Consecutive ticks without a change, after which no change is expected. */
const quietTicks = 15;
const maxWatchOutageMs = 40_000;
const maxWebhookOutageMs = 120_000;

/** Seconds after which event functions request a retry if a fault names no delay. */
const retryAfterSeconds = 5;

const source = 'simulation';

export const createWorld = (options: WorldOptions): World => {
  const { seed = 1, chaos = calm, stormMs = 0 } = options;
  const random = createRandom(seed);
  let clock = testTime;
  let webhooksDownUntil = clock;
  const now = () => clock;
  const webhooks = createWebhooks(() => clock < webhooksDownUntil);
  const protect = { persistentvolumeclaims: ['kubernetes.io/pvc-protection'], backingimages: ['longhorn.io'] };
  const kube = createMemoryKube({ now, protect, admit: webhooks.admit });
  const scheduler = createScheduler((name) => kube.as(`${ownAccountPrefix}${name}`));
  let agenda: { readonly at: number; readonly what: () => void }[] = [];
  /** Timers that cause no change by themselves. */
  let alarms: typeof agenda = [];
  let nextTick = clock + tickMs;
  let changes = 0;
  const trace: string[] = [];
  const bugs: unknown[] = [];
  const announced: string[] = [];
  kube.onChange(() => (changes += 1));

  const isStormy = () => clock - testTime < stormMs;
  const strikes = (kind: keyof Chaos) => isStormy() && random.chance(chaos[kind]);
  const broker = createBroker(now, { random, isStormy, strikes });
  const alarm = (afterMs: number, what: () => void) => void alarms.push({ at: clock + afterMs, what });
  const sleep: Sleep = (ms) => new Promise((resolve) => alarm(ms, resolve));

  const cluster = createCluster({
    kube,
    now,
    attempt: options.attempt,
    hasVolumes: options.hasVolumes,
    ...(options.snapshotError === undefined ? {} : { snapshotError: options.snapshotError }),
    onProgress: (owner, progress) => broker.publish(signedProgress(kube, owner, progress, new Date(clock))),
  });

  /** The forwarder uses the unreliable API, too, after its start. */
  let isBegun = false;
  const watched: KubeClient = {
    ...kube,
    list: (type, listOptions) =>
      isBegun && strikes('apiFault')
        ? Promise.reject(drawApiFault(random, 'list').error)
        : kube.list(type, listOptions),
  };

  /** The sink of the functions: unavailable at times. */
  const announce: Announce = async ({ ref }, { phase }) => {
    if (strikes('apiFault')) return false;
    announced.push(`${ref.uid} ${phase}`);
    return true;
  };

  const { backends, observe, cdi } = options;
  if (cdi === 'use') installCdi(kube, alarm);
  const callFunction = createFunctions({ now, backends, observe, cdi, publish: broker.publish, announce });

  const deliver = (delivery: Delivery) => {
    let outcome: Outcome | undefined;
    const { route, event } = delivery;
    const process = scheduler.spawn(route.to, async (client) => {
      outcome = await callFunction(route.to, event, client);
    });
    void process.ended.then((end) => {
      if (end === 'killed') broker.again(delivery);
      else if (outcome?.kind === 'retry') broker.again(delivery, outcome.afterSeconds);
      if (typeof end !== 'object') return;
      const { error } = end;
      if (!isRetryable(error)) return void bugs.push(error);
      broker.again(delivery, (error instanceof AppError ? error.retryAfterSeconds : undefined) ?? retryAfterSeconds);
    });
  };

  const judge = (call: string): Verdict => {
    const forced = options.judge?.(call, trace.length - 1);
    if (forced !== undefined) return forced;
    if (strikes('death')) return random.chance(0.5) ? { is: 'kill' } : deathAfterEffect;
    return strikes('apiFault') ? { is: 'fault', fault: drawApiFault(random, call) } : { is: 'go' };
  };

  const releaseOne = async () => {
    const index = isStormy() ? random.below(scheduler.waiting.length) : 0;
    const { process, call } = scheduler.waiting[index]!;
    trace.push(`${process}: ${call}`);
    await scheduler.release(index, judge(call));
  };

  const deliverDue = (): boolean => {
    const delivery = broker.take();
    if (delivery !== undefined) deliver(delivery);
    return delivery !== undefined;
  };

  const doDue = (): boolean => {
    const due = [...agenda, ...alarms].filter(({ at }) => at <= clock);
    agenda = agenda.filter(({ at }) => at > clock);
    alarms = alarms.filter(({ at }) => at > clock);
    for (const { what } of due) what();
    return due.length > 0;
  };

  /** One possible action now; `false` if only time can advance. */
  const happen = async (): Promise<boolean> => {
    await scheduler.settle();
    const isBusy = scheduler.waiting.length > 0;
    if (isBusy && !strikes('interleave')) {
      await releaseOne();
      return true;
    }
    if (doDue() || cluster.step() || deliverDue()) return true;
    if (isBusy) await releaseOne();
    return isBusy;
  };

  /** Some watches are interrupted at once, and all changes until they resume can be lost. */
  const cutWatches = () => {
    const isLost = random.chance(chaos.watchExpiry);
    kube.watches.cut(() => random.chance(0.5));
    kube.watches.refuse(new Unavailable('made up'));
    alarm(random.below(maxWatchOutageMs), () => {
      if (isLost) kube.watches.compact();
      kube.watches.refuse();
    });
  };

  const downWebhooks = () => (webhooksDownUntil = clock + random.below(maxWebhookOutageMs));

  const disturb = () => {
    if (strikes('clockJump')) clock += random.below(600_000);
    if (strikes('watchCut')) cutWatches();
    if (strikes('webhookDown')) downWebhooks();
  };

  const advance = (end: number): boolean => {
    disturb();
    const due = [...broker.times(), ...[...agenda, ...alarms].map(({ at }) => at)];
    clock = Math.max(clock, Math.min(nextTick, cluster.nextWake(), ...due));
    if (clock > end) return false;
    if (clock >= nextTick) {
      nextTick = clock + tickMs;
      broker.publish({ id: `tick-${clock}`, source, type: eventTypes.ping, extensions: {} });
    }
    return true;
  };

  return {
    kube,
    cluster,
    trace,
    bugs,
    announced,
    refused: webhooks.refused,
    elapsed: () => clock - testTime,
    schedule: (elapsedMs, what) => void agenda.push({ at: testTime + elapsedMs, what }),
    webhooksDownUntil: (ms) => void (webhooksDownUntil = testTime + ms),
    run: async (limitMs) => {
      await startWatching({ client: watched, onEvent: broker.publish, sleep, now }).ready;
      isBegun = true;
      if (isStormy() && random.chance(chaos.webhookDown * 10)) downWebhooks();
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

/** The image of a world, of several the first by name; `undefined` once it is gone. */
export const imageIn = <T extends KubeObject>(world: World): T | undefined =>
  world.kube
    .all<KubeObject>()
    .filter(({ kind }) => kind === 'VirtualMachineImage')
    .toSorted((a, b) => a.metadata.name.localeCompare(b.metadata.name))[0] as T | undefined;
