// What channels do whatever comes, in whichever order: arrivals, checks, bad marks, pins, approvals, clocks that jump.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CheckStatus, GoldenImagePolicy, GoldenImagePolicySpec } from '#shared/api/bullion/golden-image-policy.ts';
import type { DataImportCron } from '#shared/api/cdi/data-import-cron.ts';
import type { Verdict } from '#shared/golden/rollout/version.ts';
import { mostStep } from '#shared/golden/rollout/version.ts';
import { type ObservedVersion, readCron } from '#shared/resources/data-import-cron/cron.ts';
import { goldenImagePolicyReconciler } from '#shared/resources/golden-image-policy/index.ts';
import { plan } from '#shared/resources/golden-image-policy/plan.ts';
import { type ObservedPolicy, readPolicy } from '#shared/resources/golden-image-policy/policy.ts';
import { isoTime } from '#shared/populate/state.ts';
import { testSettings, testTime } from '#test/support/builders.ts';

const soakSeconds = 1800;
const channels: GoldenImagePolicySpec['channels'] = [
  { name: 'edge', dataSource: 'edge' },
  { name: 'candidate', dataSource: 'candidate', after: { channel: 'edge', soak: '30m' } },
  { name: 'stable', dataSource: 'stable', after: { channel: 'candidate', approval: 'manual' } },
];
const names = ['edge', 'candidate', 'stable'] as const;

const volume = (name: string): ObservedVersion => ({
  volume: {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'golden', labels: {} },
    spec: {},
    status: { phase: 'Bound' },
  } as NonNullable<ObservedVersion['volume']>,
});

/** A policy, its versions and the clocks around it; `pass` is what one reconcile does, without the API. */
class Rollout {
  policy: GoldenImagePolicy = {
    apiVersion: 'bullion.dev/v1alpha1',
    kind: 'GoldenImagePolicy',
    metadata: { namespace: 'golden', name: 'fedora', uid: 'uid', generation: 1 },
    spec: { dataImportCrons: { names: ['cron'] }, channels },
  };
  arrived: string[] = [];
  lost = new Set<string>();
  checks = new Map<string, readonly CheckStatus[]>();
  /** What the clock says, in milliseconds. */
  clock = testTime;
  /** Seconds that really went by while the edge had a version. */
  really = new Map<string, number>();
  jumps = 0;

  spec(change: Partial<GoldenImagePolicySpec>): void {
    const { metadata, spec } = this.policy;
    this.policy = {
      ...this.policy,
      metadata: { ...metadata, generation: (metadata.generation ?? 1) + 1 },
      spec: { ...spec, ...change },
    };
  }

  observed(): ObservedPolicy {
    const cron = readCron({
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataImportCron',
      metadata: { namespace: 'golden', name: 'cron' },
      spec: { schedule: '', managedDataSource: 'edge' },
      status: this.arrived.length === 0 ? {} : { lastImportedPVC: { namespace: 'golden', name: this.arrived.at(-1)! } },
    } as DataImportCron);
    const there = this.arrived.filter((name) => !this.lost.has(name));
    return {
      sources: new Map(),
      crons: [{ cron, versions: new Map(there.map((name) => [name, volume(name)])) }],
      taken: [],
      allCrons: [],
      policies: new Set(['fedora']),
      checks: this.checks,
      proofs: { clones: [], claims: new Map(), jobs: [], pods: [], machines: [] },
    };
  }

  pass(): void {
    const resource = readPolicy(this.policy);
    const { state } = plan(resource, this.observed(), { now: this.clock, settings: testSettings });
    const status = goldenImagePolicyReconciler.toStatus(this.policy, resource, state, isoTime(this.clock));
    this.policy = { ...this.policy, status } as GoldenImagePolicy;
  }

  wait(seconds: number): void {
    for (let left = seconds; left > 0; left -= 60) {
      const step = Math.min(60, left);
      const edge = this.versionOf('edge');
      if (edge !== undefined) this.really.set(edge, (this.really.get(edge) ?? 0) + step);
      this.clock += step * 1000;
      this.pass();
    }
  }

  versionOf(channel: string): string | undefined {
    return this.policy.status?.channels?.find(({ name }) => name === channel)?.version;
  }

  isGood = (version: string): boolean => {
    const isPassed = (this.checks.get(version) ?? []).every(({ state }) => state === 'Passed');
    return isPassed && !this.lost.has(version) && this.policy.spec.bad?.some((one) => one.version === version) !== true;
  };
}

const results = { passed: 'Passed', failed: 'Failed', pending: 'Pending' } as const;
const checked = (is: Verdict['is']): readonly CheckStatus[] => [
  { name: 'boot', state: results[is], reason: 'Tested', message: `it ${is}`, digest: '', rule: '', time: '' },
];
const pick = (all: readonly string[], index: number): string | undefined => all[index % Math.max(1, all.length)];

type Doing =
  | { readonly do: 'arrive' | 'check'; readonly is: Verdict['is']; readonly index: number }
  | { readonly do: 'mark' | 'unmark' | 'approve' | 'lose' | 'skip'; readonly index: number }
  | { readonly do: 'pin' | 'unpin'; readonly channel: (typeof names)[number]; readonly index: number }
  | { readonly do: 'wait' | 'jump'; readonly minutes: number };

const index = fc.nat(20);
const anything: fc.Arbitrary<Doing> = fc.oneof(
  fc.record({
    do: fc.constantFrom('arrive' as const, 'arrive' as const, 'check' as const),
    is: fc.constantFrom('passed' as const, 'passed' as const, 'failed' as const, 'pending' as const),
    index,
  }),
  fc.record({
    do: fc.constantFrom('mark' as const, 'unmark' as const, 'approve' as const, 'skip' as const, 'lose' as const),
    index,
  }),
  fc.record({ do: fc.constantFrom('pin' as const, 'unpin' as const), channel: fc.constantFrom(...names), index }),
  fc.record({ do: fc.constant('wait' as const), minutes: fc.integer({ min: 1, max: 30 }) }),
  fc.record({ do: fc.constant('jump' as const), minutes: fc.integer({ min: -3000, max: 3000 }) }),
);

/** Each minute is looked at by itself. */
const minuteByMinute = (doing: Doing): readonly Doing[] =>
  doing.do === 'wait' ? Array.from({ length: doing.minutes }, () => ({ do: 'wait', minutes: 1 })) : [doing];

const without = <T>(all: readonly T[], at: number): T[] => all.filter((_, place) => place !== at % all.length);

const carryOut = (rollout: Rollout, doing: Doing): void => {
  const version = 'index' in doing ? pick(rollout.arrived, doing.index) : undefined;
  switch (doing.do) {
    case 'arrive': {
      const name = `v${rollout.arrived.length}`;
      rollout.checks.set(name, checked(doing.is));
      rollout.arrived.push(name);
      return;
    }
    case 'check':
      // A check that ended does not end otherwise.
      if (version !== undefined && rollout.checks.get(version)?.[0]?.state === 'Pending')
        rollout.checks.set(version, checked(doing.is));
      return;
    case 'wait':
      return rollout.wait(doing.minutes * 60);
    case 'jump':
      rollout.clock += doing.minutes * 60_000;
      rollout.jumps += 1;
      return;
    default:
      if (version !== undefined) decideOf(rollout, doing, version);
  }
};

type Decision = 'lose' | 'mark' | 'unmark' | 'pin' | 'unpin' | 'approve' | 'skip';

const decideOf = (rollout: Rollout, doing: Extract<Doing, { readonly do: Decision }>, version: string): void => {
  const { bad = [], pins = {}, approvals = [] } = rollout.policy.spec;
  const reason = 'so';
  const channel = 'channel' in doing ? doing.channel : 'edge';
  const changes: Readonly<Record<Decision, () => Partial<GoldenImagePolicySpec>>> = {
    lose: () => {
      rollout.lost.add(version);
      return {};
    },
    mark: () => ({ bad: [...bad, { version, reason }] }),
    unmark: () => ({ bad: without(bad, doing.index) }),
    pin: () => ({ pins: { ...pins, [channel]: { version, reason } } }),
    unpin: () => ({ pins: Object.fromEntries(Object.entries(pins).filter(([name]) => name !== channel)) }),
    approve: () => ({ approvals: [...approvals, { channel: 'stable', version }] }),
    skip: () => ({ approvals: [...approvals, { channel: 'candidate', version, skipSoak: true }] }),
  };
  rollout.spec(changes[doing.do]());
};

type Moved = Readonly<Record<'name' | 'version', string>> & { readonly from: string | undefined };

/** How people had their hands in a move. */
const handsIn = ({ policy: { spec }, isGood }: Rollout, { name, from, version }: Moved) => {
  const pin = spec.pins?.[name]?.version;
  const isEscape = spec.bad?.some((one) => one.version === from) === true;
  const approval = spec.approvals?.find((one) => one.channel === name && one.version === version);
  return { isByHand: pin === version || isEscape, isPinned: pin !== undefined && isGood(pin), approval };
};

/** Why a channel may not have moved so. */
const faultsOf = (rollout: Rollout, moved: Moved): readonly string[] => {
  const { name, from, version } = moved;
  const { isByHand, isPinned, approval } = handsIn(rollout, moved);
  const order = (one = '') => rollout.arrived.indexOf(one);
  const most = (rollout.really.get(version) ?? 0) + rollout.jumps * mostStep;
  const isFree = isByHand || approval?.skipSoak === true;
  const faults: Readonly<Record<string, boolean>> = {
    'is not good': !rollout.isGood(version),
    'is older, and nobody wanted it': order(version) < order(from) && !isByHand,
    'is not what is pinned': !isByHand && isPinned,
    [`soaked for ${most} s at most`]: !isFree && name === 'candidate' && most < soakSeconds,
    'was not approved': !isFree && name === 'stable' && approval === undefined,
  };
  return Object.keys(faults).flatMap((fault) => (faults[fault] === true ? [`${name}: ${version} ${fault}`] : []));
};

/** What no pass may do. */
const violations = (rollout: Rollout, before: GoldenImagePolicy): readonly string[] => {
  const old = new Map(before.status?.channels?.map(({ name, version }) => [name, version]));
  return (rollout.policy.status?.channels ?? []).flatMap(({ name, version, reason, message }) => {
    const from = old.get(name);
    const silent = reason === '' || message === '' ? [`${name} does not say where it stands`] : [];
    if (from === version) return silent;
    return [
      ...silent,
      ...(version === undefined ? [`${name} came to nothing`] : faultsOf(rollout, { name, from, version })),
    ];
  });
};

describe('channels', () => {
  it('never go back by themselves, nor to what is not good, nor to nothing, nor before their time', () => {
    fc.assert(
      fc.property(fc.array(anything, { minLength: 5, maxLength: 25 }), (story) => {
        const rollout = new Rollout();
        for (const doing of story.flatMap(minuteByMinute)) {
          const before = rollout.policy;
          carryOut(rollout, doing);
          const then = { ...rollout.policy, status: before.status } as GoldenImagePolicy;
          if (doing.do !== 'wait') rollout.pass();
          expect(violations(rollout, then)).toEqual([]);
          // A second look changes nothing.
          const { channels: once } = rollout.policy.status ?? {};
          rollout.pass();
          expect(rollout.policy.status?.channels).toEqual(once);
        }
      }),
      { numRuns: 80 },
    );
  });

  it('take each version in the end, where nothing is said against it', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.integer({ min: -3000, max: 3000 }), { maxLength: 5 }),
        (count, jumps) => {
          const rollout = new Rollout();
          for (let arrival = 0; arrival < count; arrival += 1)
            carryOut(rollout, { do: 'arrive', is: 'passed', index: 0 });
          for (const minutes of jumps) {
            carryOut(rollout, { do: 'jump', minutes });
            rollout.wait(300);
          }
          rollout.wait(soakSeconds + 3 * mostStep);
          const last = `v${count - 1}`;
          expect(names.map((name) => rollout.versionOf(name))).toEqual([last, last, undefined]);
          decideOf(rollout, { do: 'approve', index: 0 }, last);
          rollout.pass();
          expect(rollout.versionOf('stable')).toBe(last);
        },
      ),
      { numRuns: 15 },
    );
  });

  it('count a jump of the clock as one step', () => {
    const rollout = new Rollout();
    carryOut(rollout, { do: 'arrive', is: 'passed', index: 0 });
    rollout.wait(120);
    carryOut(rollout, { do: 'jump', minutes: 100_000 });
    rollout.pass();
    const [, candidate] = rollout.policy.status?.channels ?? [];
    expect(candidate).toMatchObject({ reason: 'Soaking', soakSeconds, next: 'v0' });
    expect(candidate?.soakedSeconds).toBeLessThanOrEqual(120 + mostStep);
    expect(candidate?.version).toBe(undefined);
  });

  it('ask for an approval as soon as a short soak is over', () => {
    const rollout = new Rollout();
    const after = { channel: 'edge', soak: '30s', approval: 'manual' as const };
    rollout.spec({ channels: [channels[0]!, { name: 'stable', dataSource: 'stable', after }] });
    carryOut(rollout, { do: 'arrive', is: 'passed', index: 0 });
    rollout.wait(60);
    expect(rollout.policy.status?.channels?.[1]?.reason).toBe('Soaking');
    rollout.wait(30);
    expect(rollout.policy.status?.channels?.[1]).toMatchObject({ reason: 'WaitingForApproval', next: 'v0' });
  });

  it('write nothing more often than every other minute while a soak runs', () => {
    const rollout = new Rollout();
    carryOut(rollout, { do: 'arrive', is: 'passed', index: 0 });
    rollout.pass();
    rollout.pass();
    const statuses = new Set<string>();
    for (let minute = 0; minute < 20; minute += 1) {
      rollout.wait(60);
      statuses.add(JSON.stringify(rollout.policy.status));
    }
    expect(statuses.size).toBeLessThanOrEqual(11);
    expect(statuses.size).toBeGreaterThan(5);
  });
});
