// Kills the embedded API server repeatedly at any moment, and compares its state after the restart with the responses that clients received. Called by
// the test next to it and by `npm run test:faults -- --kills N`.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Ledger, createLedger } from '#test/faults/api-server-kill/ledger.ts';
import { type Follower, createFollower, markName } from '#test/faults/api-server-kill/follower.ts';
import { type ConfigMap, collection, selector, toShown, writeUntilCut } from '#test/faults/api-server-kill/writers.ts';
import { type Http, createHttp } from '#test/support/api-server/http.ts';
import { type ServerProcess, startServerProcess } from '#test/support/api-server/process.ts';
import { type Random, createRandom } from '#test/support/random.ts';

export interface KillsReport {
  /** Kills while clients were writing. */
  readonly kills: number;
  /** Kills before the server had answered anything. */
  readonly killsAtStart: number;
  readonly acknowledged: number;
  /** Writes whose response was lost, and how many of these had happened. */
  readonly cutOff: number;
  readonly cutOffButDone: number;
  /** Watches that resumed, and those that had to start over. */
  readonly resumed: number;
  readonly expired: number;
  /** What was lost, duplicated, incomplete or out of order. */
  readonly faults: readonly string[];
}

const writers = 4;
const namesEach = 6;
/** Maximum time in milliseconds that clients write before the server is killed. */
const longestLife = 250;
/** Small, so that the server compacts its history all the time, and is killed while it does. */
const historyLimit = 40;

interface Scene {
  readonly random: Random;
  readonly ledger: Ledger;
  readonly follower: Follower;
  readonly start: () => ServerProcess;
}

/** Kills `kills` times; stops early at the first fault. */
export const runKills = async (kills: number, seed: number): Promise<KillsReport> => {
  const folder = await mkdtemp(join(tmpdir(), 'bullion-kill-'));
  const codeCache = process.env['NODE_COMPILE_CACHE'] ?? join(folder, 'code');
  const options = { dataDir: join(folder, 'data'), codeCache, historyLimit };
  const ledger = createLedger();
  const scene: Scene = {
    ledger,
    random: createRandom(seed),
    follower: createFollower(ledger),
    start: () => startServerProcess(options),
  };
  let done = 0;
  let killsAtStart = 0;
  try {
    for (; done < kills && ledger.faults.length === 0; done += 1) {
      killsAtStart += await killWhileStarting(scene, done);
      await live(scene);
    }
    await look(scene);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return { kills: done, killsAtStart, ...ledger.counts, ...scene.follower.counts, faults: ledger.faults };
};

/** The first starts create keys and the database: these are killed more often. Returns how many were killed. */
const killWhileStarting = async ({ random, start }: Scene, round: number): Promise<number> => {
  let count = 0;
  while (random.chance(round < 3 ? 0.6 : 0.1)) {
    const server = start();
    await Promise.race([server.ready, sleep(300 + random.below(1_500))]);
    await server.kill();
    count += 1;
  }
  return count;
};

const withServer = async (scene: Scene, use: (http: Http, server: ServerProcess) => Promise<void>): Promise<void> => {
  const server = scene.start();
  let http: Http | undefined;
  try {
    http = createHttp(await server.ready);
    await use(http, server);
  } finally {
    await server.kill();
    await http?.close();
  }
};

/** One run of the server: its state is compared with the ledger, then clients write until it is killed. */
const live = (scene: Scene): Promise<void> =>
  withServer(scene, async (http, server) => {
    const { random, ledger, follower } = scene;
    await compare(http, ledger);
    // A watch that is not resumed for some runs finds its version expired.
    if (random.chance(0.5)) await follower.follow(http);
    const writing = Promise.allSettled(
      Array.from({ length: writers }, (_, writer) => {
        const names = Array.from({ length: namesEach }, (__, index) => `w${writer}-${index}`);
        return writeUntilCut(http, ledger, random, names);
      }),
    );
    await sleep(random.below(longestLife));
    if (!server.isAlive()) ledger.report('the server ended by itself');
    await server.kill();
    for (const ended of await writing) if (ended.status === 'rejected') throw ended.reason;
    await follower.ended();
  });

/** The last check, of a server that is not killed. */
const look = (scene: Scene): Promise<void> =>
  withServer(scene, async (http) => {
    await compare(http, scene.ledger);
    await scene.follower.follow(http);
  });

const compare = async (http: Http, ledger: Ledger): Promise<void> => {
  const { status, text } = await http.call('GET', `${collection}?${selector}`);
  if (status !== 200) throw new Error(`the list after a restart was answered with ${status}: ${text}`);
  const list = JSON.parse(text) as { items: ConfigMap[]; metadata: { resourceVersion: string } };
  const shown = list.items.map(toShown).filter(({ name }) => name !== markName);
  ledger.settle(shown, Number(list.metadata.resourceVersion));
};
