// Checks and boots of versions: which run now, how far they are, what is started and what is removed. Pure; called by plan.ts.
import type { CheckStatus } from '#shared/api/bullion/golden-image-policy.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { type VirtualMachineInstance, virtualMachineInstances } from '#shared/api/foreign/kubevirt.ts';
import { type Action, type PlanContext, remove, removeJob } from '#shared/populate/actions.ts';
import { isoTime } from '#shared/populate/state.ts';
import { badMarkOf } from '#shared/golden/rollout/version.ts';
import { jobProgress, startJob } from '#shared/resources/golden-image-policy/proof/job.ts';
import { bootProgress, startBoot } from '#shared/resources/golden-image-policy/proof/boot.ts';
import {
  type BootRun,
  isReportedByKubeVirt,
  machineProgress,
  startMachine,
} from '#shared/resources/golden-image-policy/proof/machine.ts';
import {
  type Progress,
  type Proof,
  type ProofRun,
  backOffMs,
  cloneProgress,
  startClone,
  isDue,
  proofsOf,
  runOf,
} from '#shared/resources/golden-image-policy/proof/run.ts';
import {
  type ObservedPolicy,
  type PolicyResource,
  type PolicyState,
  wishOf,
} from '#shared/resources/golden-image-policy/policy.ts';
import { candidatesOf } from '#shared/resources/golden-image-policy/versions.ts';
import type { Start } from '#shared/resources/reconciler.ts';
import { messageOf } from '#shared/runtime/errors.ts';

/** Clones that a policy has at one time: newer versions come first. */
const mostRuns = 2;

export interface Proving {
  /** By version. */
  readonly checks: ReadonlyMap<string, readonly CheckStatus[]>;
  readonly actions: readonly Action[];
  readonly starts: readonly Start<PolicyState>[];
  /** Ended in this pass: their clones go in the next one, once that is written. */
  readonly ended: number;
}

type Clone = Pick<ObservedPolicy, 'proofs'>;

const find = <T extends { readonly metadata: { readonly name: string } }>(all: readonly T[], name: string) =>
  all.find(({ metadata }) => metadata.name === name);

const progressOf = (run: ProofRun, { proofs }: Clone, { now, settings }: PlanContext): Progress => {
  const { proof, name } = run;
  const clone = find(proofs.clones, name);
  if (clone === undefined) return startClone(run);
  const claim = proofs.claims.get(name);
  if (clone.status?.phase !== 'Succeeded' || claim === undefined) return cloneProgress(clone);
  const job = find(proofs.jobs, name);
  if (proof.is === 'boot') {
    const boot = { ...run, proof };
    const isMachine = job === undefined && proofs.machines !== undefined && isReportedByKubeVirt(boot);
    if (isMachine) return progressOfMachine(boot, { clone, machine: find(proofs.machines, name), now });
    return job === undefined ? startBoot(boot, { clone, claim }, settings) : bootProgress(boot, job, proofs.pods);
  }
  const check = { ...run, proof };
  return job === undefined ? startJob(check, { clone, claim }, settings) : jobProgress(check, job, proofs.pods);
};

const progressOfMachine = (
  boot: BootRun,
  { clone, machine, now }: { clone: DataVolume; machine: VirtualMachineInstance | undefined; now: number },
): Progress => (machine === undefined ? startMachine(boot, clone) : machineProgress(boot, machine, now));

const states = { passed: 'Passed', failed: 'Failed', running: 'Pending', 'not run': 'Pending' } as const;

const outputOf = (progress: Progress): Pick<CheckStatus, 'output'> =>
  'output' in progress && progress.output !== undefined ? { output: progress.output } : {};

/** How often it could not be carried out, and when it is tried again. */
const triesOf = ({ before }: ProofRun, { is }: Progress, now: number): Pick<CheckStatus, 'attempts' | 'nextTry'> => {
  const attempts = before?.attempts ?? 0;
  if (is === 'not run') return { attempts: attempts + 1, nextTry: isoTime(now + backOffMs(attempts + 1)) };
  return attempts === 0 ? {} : { attempts };
};

/** Since the same time where nothing is new, so that nothing is written. */
const toStatus = (run: ProofRun, progress: Progress, now: number): CheckStatus => {
  const { proof, digest, rule, before } = run;
  const { is, reason, message } = progress;
  const tries = triesOf(run, progress, now);
  const isSame = is === 'running' && before?.reason === reason && before.attempts === tries.attempts;
  const time = isSame ? before.time : isoTime(now);
  return { name: proof.name, state: states[is], reason, message, digest, rule, time, ...outputOf(progress), ...tries };
};

const isFinal = ({ before }: ProofRun): boolean => before?.state === 'Passed' || before?.state === 'Failed';

const waiting = (run: ProofRun, now: number): CheckStatus =>
  run.before ??
  toStatus(run, { is: 'running', reason: 'NotChecked', message: 'waiting for checks of newer versions' }, now);

/** A version that nobody signed is neither started nor shown to anybody. */
const unsigned = (run: ProofRun, now: number): CheckStatus =>
  run.before ??
  toStatus(run, { is: 'running', reason: 'NotChecked', message: 'waiting for its signature to be verified' }, now);

const isSigned = ({ checks }: ObservedPolicy, version: string): boolean =>
  (checks.get(version) ?? []).every(({ state }) => state === 'Passed');

/** Those that have objects already come first, so that none is broken off for another. */
const inOrder = (runs: readonly ProofRun[], { proofs }: Clone): readonly ProofRun[] => {
  const [begun, others] = [true, false].map((is) =>
    runs.filter(({ name }) => (find(proofs.clones, name) !== undefined) === is),
  );
  return [...(begun ?? []), ...(others ?? [])];
};

/** What runs on a clone, and then the clone. */
const removeRun = (clone: DataVolume, { proofs }: Clone): readonly Action[] => {
  const { name } = clone.metadata;
  const machine = find(proofs.machines ?? [], name);
  return [
    ...removeJob(find(proofs.jobs, name)),
    ...remove(virtualMachineInstances, machine),
    ...remove(dataVolumes, clone),
  ];
};

const runsOf = (policy: PolicyResource, observed: ObservedPolicy, proofs: readonly Proof[]): readonly ProofRun[] => {
  const { bad } = wishOf(policy);
  return candidatesOf(policy, observed.crons)
    .filter(({ found, digest }) => badMarkOf({ name: found.name, digest }, bad) === undefined)
    .flatMap((candidate) => proofs.map((proof) => runOf(policy, proof, candidate)));
};

export const planProofs = (policy: PolicyResource, observed: ObservedPolicy, context: PlanContext): Proving => {
  const { now } = context;
  const runs = runsOf(policy, observed, proofsOf(policy));
  const isOpen = (run: ProofRun): boolean =>
    !isFinal(run) && isDue(run.before, now) && isSigned(observed, run.found.name);
  const running = inOrder(runs.filter(isOpen), observed).slice(0, mostRuns);
  const went = running.map((run) => ({ run, progress: progressOf(run, observed, context) }));
  const names = new Set(running.map(({ name }) => name));
  const statusOf = (run: ProofRun): CheckStatus => {
    const progress = went.find((one) => one.run === run)?.progress;
    if (progress !== undefined) return toStatus(run, progress, now);
    return isSigned(observed, run.found.name) ? waiting(run, now) : unsigned(run, now);
  };
  const checks = new Map(
    [...Map.groupBy(runs, ({ found }) => found.name)].map(([name, own]) => [name, own.map(statusOf)]),
  );
  return {
    checks,
    actions: observed.proofs.clones
      .filter(({ metadata }) => !names.has(metadata.name))
      .flatMap((clone) => removeRun(clone, observed)),
    starts: went.flatMap(({ run, progress }) =>
      progress.is === 'running' && progress.action !== undefined ? [startOf(run, progress.action, now)] : [],
    ),
    ended: went.filter(({ progress }) => progress.is !== 'running').length,
  };
};

const startOf = (run: ProofRun, action: Action, now: number): Start<PolicyState> => ({
  action,
  refused: (state, error) => {
    const message = `the cluster refused it: ${messageOf(error)}`;
    const status = toStatus(run, { is: 'not run', reason: 'Refused', message }, now);
    const versions = state.versions.map((version) =>
      version.name === run.found.name
        ? { ...version, checks: (version.checks ?? []).map((one) => (one.name === status.name ? status : one)) }
        : version,
    );
    return { ...state, versions };
  },
});
