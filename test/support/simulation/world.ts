// A whole cluster on a virtual clock: the functions over an in-memory API, the controllers around them, the product's own forwarder and
// Triggers between, and a broker, an API and webhooks that can be as unreliable as a seed asks for.
import { buildTransferProgressed } from '#events/build.ts';
import { eventTypes } from '#events/catalogue.ts';
import type { Sleep } from '#events/delivery.ts';
import type { CloudEvent } from '#events/event.ts';
import { parseEvent } from '#events/receive.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { ownAccountPrefix } from '#shared/api/names.ts';
import { type BackendRegistry, backends } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Observation } from '#shared/golden/poll/observation.ts';
import type { ObserveRequest } from '#shared/golden/poll/observe.ts';
import type { Announce } from '#shared/resources/announcer.ts';
import type { DriverDeps } from '#shared/resources/driver.ts';
import { handleChildEvent, handleObjectEvent } from '#shared/resources/handle.ts';
import { tick } from '#shared/resources/tick.ts';
import { AppError, Unavailable, isRetryable } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';
import { testSettings, testTime } from '#test/support/builders.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';
import { type Random, createRandom } from '#test/support/random.ts';
import { type Chaos, calm, drawApiFault } from '#test/support/simulation/chaos.ts';
import {
  type AttemptScript,
  type SimulatedCluster,
  type WorkMode,
  createCluster,
} from '#test/support/simulation/cluster.ts';
import { type Route, createRoutes, startWatching } from '#test/support/simulation/eventing.ts';
import { type Verdict, createScheduler, deathAfterEffect } from '#test/support/simulation/scheduler.ts';
import { createWebhooks } from '#test/support/simulation/webhooks.ts';

export interface WorldOptions {
  readonly seed?: number;
  readonly chaos?: Chaos;
  /** Milliseconds of virtual time until the chaos stops. */
  readonly stormMs?: number;
  readonly attempt: (mode: WorkMode, attempt: number) => AttemptScript;
  readonly snapshotError?: string;
  /** Left out: those of the product. */
  readonly backends?: BackendRegistry;
  /** What sources of golden images say when they are asked, `now` ms since the epoch; left out: they are not asked. */
  readonly observe?: (request: ObserveRequest, now: number) => Observation;
  /** Decides each call instead of the seed: for tests that kill at one exact place. */
  readonly judge?: (call: string, index: number) => Verdict | undefined;
}

interface Delivery {
  readonly route: Route;
  readonly event: CloudEvent;
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
  /** Nobody answers admission reviews until this many milliseconds since the world began. */
  webhooksDownUntil(ms: number): void;
  /** Runs until nothing is left to happen but ticks that change nothing, or until `limitMs` of virtual time. */
  run(limitMs: number): Promise<void>;
  /** Kubernetes calls made by functions, in order. */
  readonly trace: string[];
  /** Throws of functions that were no AppError: bugs. */
  readonly bugs: unknown[];
  /** Final transitions the outside has heard of: `<uid> <phase>`. */
  readonly heard: string[];
  /** Writes that were refused since nobody answered admission reviews. */
  readonly refused: readonly string[];
}

const tickMs = 60_000;
/** Ticks in a row that changed nothing, after which nothing ever will. */
const quietTicks = 15;
const maxWatchOutageMs = 40_000;
const maxWebhookOutageMs = 120_000;

/** Seconds after which the chassis of event functions asks for another attempt when a fault names none. */
const retryAfterSeconds = 5;

const source = 'simulation';

const accepted = {
  kind: 'answered',
  answer: { status: 202, headers: new Headers(), body: new Uint8Array() },
} as const;

export const createWorld = (options: WorldOptions): World => {
  const { seed = 1, chaos = calm, stormMs = 0 } = options;
  const random: Random = createRandom(seed);
  let clock = testTime;
  let webhooksDownUntil = clock;
  const now = () => clock;
  const webhooks = createWebhooks(() => clock < webhooksDownUntil);
  const protect = { persistentvolumeclaims: ['kubernetes.io/pvc-protection'], backingimages: ['longhorn.io'] };
  const kube = createMemoryKube({ now, protect, admit: webhooks.admit });
  const scheduler = createScheduler((name) => kube.as(`${ownAccountPrefix}${name}`));
  const routes = createRoutes(now);
  let queue: Delivery[] = [];
  let agenda: { readonly at: number; readonly what: () => void }[] = [];
  /** What waits for the clock and is no news when it comes. */
  let alarms: typeof agenda = [];
  let nextTick = clock + tickMs;
  let changes = 0;
  const trace: string[] = [];
  const bugs: unknown[] = [];
  const heard: string[] = [];
  kube.onChange(() => (changes += 1));

  const isStormy = () => clock - testTime < stormMs;
  const odds = (name: keyof Chaos) => isStormy() && random.chance(chaos[name]);
  const alarm = (afterMs: number, what: () => void) => void alarms.push({ at: clock + afterMs, what });
  const sleep: Sleep = (ms) => new Promise((resolve) => alarm(ms, resolve));

  const send = (route: Route, event: CloudEvent, attempt = 1, after = 0) => {
    const times = odds('drop') ? 0 : odds('repeat') ? 2 : 1;
    for (let index = 0; index < times; index += 1) {
      const delay = odds('delay') ? random.below(90_000) : 0;
      queue.push({ route, event, attempt, at: clock + after + delay });
    }
  };
  const publish = (event: CloudEvent) => {
    for (const route of routes) if (route.wants(event)) send(route, event);
  };

  const cluster = createCluster({
    kube,
    now,
    attempt: options.attempt,
    ...(options.snapshotError === undefined ? {} : { snapshotError: options.snapshotError }),
    onProgress: (owner, progress) =>
      publish(buildTransferProgressed({ owner, progress }, { source, now: new Date(clock) })),
  });

  /** The forwarder asks an API as unreliable as everybody's, once it is there. */
  let isBegun = false;
  const watched: KubeClient = {
    ...kube,
    list: (type, listOptions) =>
      isBegun && odds('apiFault') ? Promise.reject(drawApiFault(random, 'list').error) : kube.list(type, listOptions),
  };

  /** The sink of the functions: deaf at times. */
  const announce: Announce = async ({ ref }, { phase }) => {
    if (odds('apiFault')) return false;
    heard.push(`${ref.uid} ${phase}`);
    return true;
  };

  const { observe } = options;
  /** Answers go over the broker, and may be lost there. */
  const polling: Pick<DriverDeps, 'observe' | 'send'> =
    observe === undefined
      ? {}
      : {
          observe: async (request) => observe(request, clock),
          send: async (event) => {
            publish(event);
            return { isDelivered: true, attempts: 1, last: accepted };
          },
        };

  const depsFor = (client: KubeClient): DriverDeps => ({
    kube: client,
    backends: options.backends ?? backends,
    settings: testSettings,
    now,
    log: silentLogger,
    announce,
    ...polling,
  });

  const handle = ({ route, event }: Delivery, client: KubeClient): Promise<Outcome> => {
    const deps = depsFor(client);
    if (route.to === 'initialize') return handleObjectEvent(deps, parseEvent(event));
    if (route.to === 'sidecar-sync') return handleChildEvent(deps, parseEvent(event));
    if (route.to === 'cron-tick') return tick(deps);
    // Functions that drive nothing of what scenarios hold.
    return Promise.resolve(done);
  };

  const again = ({ route, event, attempt }: Delivery, afterSeconds?: number) => {
    const delayMs = route.again(attempt, afterSeconds);
    if (delayMs !== undefined) send(route, event, attempt + 1, delayMs);
  };

  const deliver = (delivery: Delivery) => {
    let outcome: Outcome | undefined;
    const process = scheduler.spawn(delivery.route.to, async (client) => {
      outcome = await handle(delivery, client);
    });
    void process.ended.then((end) => {
      if (end === 'killed') again(delivery);
      else if (outcome?.kind === 'retry') again(delivery, outcome.afterSeconds);
      if (typeof end !== 'object') return;
      const { error } = end;
      if (!isRetryable(error)) return void bugs.push(error);
      again(delivery, (error instanceof AppError ? error.retryAfterSeconds : undefined) ?? retryAfterSeconds);
    });
  };

  const judge = (call: string): Verdict => {
    const forced = options.judge?.(call, trace.length - 1);
    if (forced !== undefined) return forced;
    if (odds('death')) return random.chance(0.5) ? { is: 'kill' } : deathAfterEffect;
    return odds('apiFault') ? { is: 'fault', fault: drawApiFault(random, call) } : { is: 'go' };
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
    const due = [...agenda, ...alarms].filter(({ at }) => at <= clock);
    agenda = agenda.filter(({ at }) => at > clock);
    alarms = alarms.filter(({ at }) => at > clock);
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

  /** Some watches break at once, and all changes until they are back can be lost. */
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
    if (odds('clockJump')) clock += random.below(600_000);
    if (odds('watchCut')) cutWatches();
    if (odds('webhookDown')) downWebhooks();
  };

  const advance = (end: number): boolean => {
    disturb();
    const due = [...queue, ...agenda, ...alarms].map(({ at }) => at);
    clock = Math.max(clock, Math.min(nextTick, cluster.nextWake(), ...due));
    if (clock > end) return false;
    if (clock >= nextTick) {
      nextTick = clock + tickMs;
      publish({ id: `tick-${clock}`, source, type: eventTypes.ping, extensions: {} });
    }
    return true;
  };

  return {
    kube,
    cluster,
    trace,
    bugs,
    heard,
    refused: webhooks.refused,
    elapsed: () => clock - testTime,
    schedule: (afterMs, what) => void agenda.push({ at: testTime + afterMs, what }),
    webhooksDownUntil: (ms) => void (webhooksDownUntil = testTime + ms),
    run: async (limitMs) => {
      await startWatching({ client: watched, onEvent: publish, sleep, now }).ready;
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

/** The one image of a world; `undefined` once it is gone. */
export const imageIn = <T extends KubeObject>(world: World): T | undefined =>
  world.kube.all<KubeObject>().find(({ kind }) => kind === 'VirtualMachineImage') as T | undefined;
