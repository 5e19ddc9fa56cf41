// `npm run test:faults -- [--seeds N] [--from S] [--scenario NAME]`: runs N seeds; a failing seed is reduced and replayed.
// `npm run test:faults -- --list`: names of the scenarios.
// `npm run test:faults -- --backups N [--from S]`, or `--scenario backups --seeds N`: runs N seeds over backups.
// `npm run test:faults -- --soak N [--from S]`: thirty objects in flight on a local cluster, of which everything is killed N times.
// `npm run test:faults -- --kills N [--from S]`: kills the embedded API server N times.
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { runKills } from '#test/faults/api-server-kill/run.ts';
import { copyScenarios, runCopies } from '#test/faults/golden-copies.ts';
import { cronScenarios, runCron } from '#test/faults/golden-cron.ts';
import { expectedSummary, runBackupStorm } from '#test/faults/backup.ts';
import { expectedOfShared, runSharedStorm } from '#test/faults/backup-shared.ts';
import { policyScenarios, runPolicy } from '#test/faults/golden-policy.ts';
import { type Run, runCalm, runScenario } from '#test/faults/image-import.ts';
import { runMachine } from '#test/faults/machine-disks.ts';
import { type Scenario, scenarios, sharedContent } from '#test/faults/scenarios.ts';
import { runSharedContent } from '#test/faults/shared-content.ts';
import { runSoak } from '#test/faults/soak.ts';
import { type Chaos, storm } from '#test/support/simulation/chaos.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '50' },
    from: { type: 'string', default: '1' },
    scenario: { type: 'string' },
    list: { type: 'boolean' },
    kills: { type: 'string' },
    soak: { type: 'string' },
    backups: { type: 'string' },
  },
});

const isGood = (run: Run, expected: Run): boolean =>
  run.violations.length === 0 && isDeepStrictEqual(run.summary, expected.summary);

/** Switches off one kind of fault after the other, and keeps it off if the seed still fails without it. */
const shrink = async (scenario: Scenario, seed: number, expected: Run): Promise<Chaos> => {
  let chaos: Chaos = storm;
  for (const kind of Object.keys(storm) as (keyof Chaos)[]) {
    const less = { ...chaos, [kind]: 0 };
    if (!isGood(await runScenario(scenario, seed, { chaos: less }), expected)) chaos = less;
  }
  return chaos;
};

const describeFailure = async (scenario: Scenario, seed: number, expected: Run): Promise<string> => {
  const chaos = await shrink(scenario, seed, expected);
  const run = await runScenario(scenario, seed, { chaos });
  const needed = Object.entries(chaos).flatMap(([kind, odds]) => (odds > 0 ? [kind] : []));
  const calls = run.world.trace.filter((call) => !call.startsWith('cron-tick: list virtualmachineimages'));
  return [
    `${scenario.name}, seed ${seed}: needs ${needed.join(', ') || 'no fault at all'}`,
    ...run.violations.map((violation) => `  broken: ${violation}`),
    `  expected ${JSON.stringify(expected.summary)}`,
    `  came to  ${JSON.stringify(run.summary)}`,
    ...calls.map((call, index) => `  ${String(index).padStart(4)} ${call}`),
    `  again: npm run test:faults -- --scenario ${scenario.name} --from ${seed} --seeds 1`,
  ].join('\n');
};

const runStorms = async (first: number, count: number): Promise<number> => {
  const chosen = scenarios.filter(({ name }) => values.scenario === undefined || name === values.scenario);
  let failures = 0;
  for (const scenario of chosen) {
    const expected = await runCalm(scenario, first);
    const began = performance.now();
    const failed: number[] = [];
    for (let seed = first; seed < first + count; seed += 1) {
      if (!isGood(await runScenario(scenario, seed), expected)) failed.push(seed);
    }
    failures += failed.length;
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    console.log(`${scenario.name}: ${count} seeds, ${failed.length} failed, ${seconds} s`);
    if (failed[0] !== undefined) console.log(await describeFailure(scenario, failed[0], expected));
  }
  console.log(`${chosen.length * count - failures} passed, ${failures} failed`);
  return failures + (await runJudged(first, count));
};

/** The final place of each version, and which volume fetches, depend on the faults, so these are checked by invariants, not compared with a run without faults. */
const runJudged = async (first: number, count: number): Promise<number> => {
  let failures = 0;
  const judged = [
    ...cronScenarios.map((one) => ({
      name: one.name,
      run: async (seed: number) => (await runCron(one, seed)).violations,
    })),
    ...policyScenarios.map((one) => ({
      name: one.name,
      run: async (seed: number) => (await runPolicy(one, seed)).violations,
    })),
    ...copyScenarios.map((one) => ({
      name: one.name,
      run: async (seed: number) => (await runCopies(one, seed)).violations,
    })),
    { name: 'machine-disks', run: runMachine },
    ...sharedContent.map((one) => ({ name: one.name, run: (seed: number) => runSharedContent(one, seed) })),
  ];
  for (const { name, run } of judged.filter((one) => values.scenario === undefined || one.name === values.scenario)) {
    const began = performance.now();
    const failed: string[] = [];
    for (let seed = first; seed < first + count; seed += 1) {
      const violations = await run(seed);
      if (violations.length > 0) failed.push(`  seed ${seed}: ${violations.join('; ')}`);
    }
    failures += failed.length;
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    console.log([`${name}: ${count} seeds, ${failed.length} failed, ${seconds} s`, ...failed].join('\n'));
  }
  return failures;
};

const runDeaths = async (seed: number, kills: number): Promise<number> => {
  const { faults, ...counts } = await runKills(kills, seed);
  for (const [name, count] of Object.entries(counts)) console.log(`${name.padEnd(16)}${count}`);
  faults.forEach((fault) => console.log(`broken: ${fault}`));
  console.log(`${counts.kills} kills, ${faults.length} faults`);
  return faults.length;
};

const runSoaked = async (seed: number, rounds: number): Promise<number> => {
  const { faults, finished, workers, retried } = await runSoak(rounds, seed);
  console.log(
    `${rounds} rounds, ${workers} processes of Jobs killed, ${retried} objects retried, compared: ${JSON.stringify(finished)}`,
  );
  faults.forEach((fault) => console.log(`broken: ${fault}`));
  console.log(`${faults.length} faults`);
  return faults.length;
};

const runBackups = async (from: number, count: number): Promise<number> => {
  let failures = 0;
  for (let seed = from; seed < from + count; seed += 1) {
    const { violations, summary } = await runBackupStorm(seed);
    const expected = expectedSummary((summary as { readonly isDeleted: boolean }).isDeleted);
    if (violations.length === 0 && isDeepStrictEqual(summary, expected)) continue;
    failures += 1;
    console.log([`backups, seed ${seed}`, ...violations, JSON.stringify(summary)].join('\n  '));
  }
  failures += await runShared(from, count);
  console.log(`${2 * count - failures} passed, ${failures} failed`);
  return failures;
};

const runShared = async (from: number, count: number): Promise<number> => {
  let failures = 0;
  for (let seed = from; seed < from + count; seed += 1) {
    const { violations, summary } = await runSharedStorm(seed);
    if (violations.length === 0 && isDeepStrictEqual(summary, expectedOfShared)) continue;
    failures += 1;
    console.log([`shared target, seed ${seed}`, ...violations, JSON.stringify(summary)].join('\n  '));
  }
  return failures;
};

const first = Number(values.from);

const names = [
  ...[...scenarios, ...cronScenarios, ...policyScenarios, ...copyScenarios, ...sharedContent].map(({ name }) => name),
  'machine-disks',
  'backups',
];

const runAsked = (): Promise<number> => {
  if (values.list === true) {
    for (const name of names) console.log(name);
    return Promise.resolve(0);
  }
  if (values.scenario !== undefined && !names.includes(values.scenario))
    throw new Error(`--scenario ${values.scenario}: there is no scenario of this name; --list has them all`);
  if (values.soak !== undefined) return runSoaked(first, Number(values.soak));
  if (values.kills !== undefined) return runDeaths(first, Number(values.kills));
  if (values.backups !== undefined) return runBackups(first, Number(values.backups));
  if (values.scenario === 'backups') return runBackups(first, Number(values.seeds));
  return runStorms(first, Number(values.seeds));
};

const failures = await runAsked();
process.exitCode = failures === 0 ? 0 : 1;
