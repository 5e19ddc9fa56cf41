// A proof that a version starts: a VirtualMachineInstance on a clone of it, and what its state says of the version. Pure.
import { findCondition } from '#shared/api/conditions.ts';
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { type VirtualMachineInstance, virtualMachineInstances } from '#shared/api/foreign/kubevirt.ts';
import { usualRunMs, usualTimeoutMs } from '#shared/boot/report.ts';
import { create } from '#shared/populate/actions.ts';
import {
  type Progress,
  type Proof,
  type ProofRun,
  metadataOf,
  millisecondsOf,
  ownedBy,
  startMs,
} from '#shared/resources/golden-image-policy/proof/run.ts';
import { toSpan } from '#shared/runtime/age.ts';

export type BootRun = ProofRun<Extract<Proof, { readonly is: 'boot' }>>;

/** A busy node may be slow once: a version fails when it did not come up in so many attempts. */
const mostTimeouts = 3;

/** What KubeVirt reports of a machine: of other signs only a Job with QEMU knows (boot.ts). */
export const isReportedByKubeVirt = ({ proof: { spec } }: BootRun): boolean =>
  spec.until === undefined || spec.until === 'AgentConnected' || spec.until === 'Running';

/** A slow attempt says nothing yet. */
export const bootTimedOut = (
  { before }: BootRun,
  message: string,
  output: { readonly output?: string } = {},
): Progress => {
  const isLast = (before?.attempts ?? 0) + 1 >= mostTimeouts;
  return { is: isLast ? 'failed' : 'not run', reason: 'BootTimedOut', message, ...output };
};

/** No network: it is not verified yet, and a guest agent needs none. */
const domainOf = ({ memory = '1Gi', firmware = 'bios' }: BootRun['proof']['spec']): object => ({
  cpu: { cores: 1 },
  memory: { guest: String(memory) },
  ...(firmware === 'efi' ? { firmware: { bootloader: { efi: { secureBoot: false } } } } : {}),
  devices: {
    autoattachPodInterface: false,
    autoattachGraphicsDevice: false,
    rng: {},
    disks: [{ name: 'disk', bootOrder: 1, disk: { bus: 'virtio' } }],
  },
});

export const startMachine = (run: BootRun, clone: DataVolume): Progress => {
  const ownerReferences = ownedBy(clone);
  const machine: VirtualMachineInstance = {
    apiVersion: 'kubevirt.io/v1',
    kind: virtualMachineInstances.kind,
    metadata: { ...metadataOf(run), ownerReferences },
    spec: {
      evictionStrategy: 'None',
      terminationGracePeriodSeconds: 0,
      domain: domainOf(run.proof.spec),
      volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: clone.metadata.name } }],
    },
  };
  const action = create(virtualMachineInstances, machine);
  return { is: 'running', reason: 'Starting', message: 'the machine is being started', action };
};

/** When it came to run; `undefined`: it has not. */
const runningSince = ({ status }: VirtualMachineInstance): number | undefined => {
  const found = status?.phaseTransitionTimestamps?.find(({ phase }) => phase === 'Running');
  const time = Date.parse(found?.phaseTransitionTimestamp ?? '');
  return Number.isNaN(time) ? undefined : time;
};

/** What KubeVirt says is in its way. */
const troubleOf = ({ status }: VirtualMachineInstance): string => {
  const conditions = status?.conditions ?? [];
  const paused = conditions.find(({ type, status: is }) => type === 'Paused' && is === 'True');
  const wrong = conditions.filter(({ type, status: is }) => type !== 'AgentConnected' && is === 'False');
  const condition = [paused, ...wrong].find((one) => one?.message !== undefined && one.message !== '');
  return condition === undefined ? '' : `: ${condition.message}`;
};

const passed = ({ status }: VirtualMachineInstance, how: string): Progress => {
  const name = status?.guestOSInfo?.prettyName;
  return { is: 'passed', reason: 'Booted', message: `${how}${name === undefined ? '' : ` (${name})`}` };
};

/** The end of a machine that nobody ended. */
const ended = (machine: VirtualMachineInstance, phase: 'Succeeded' | 'Failed'): Progress => {
  const trouble = troubleOf(machine);
  if (phase === 'Failed' && runningSince(machine) === undefined)
    return { is: 'not run', reason: 'NotStarted', message: `the machine could not be started${trouble}` };
  const how = phase === 'Failed' ? 'the machine failed while it started' : 'the guest shut down by itself';
  return { is: 'failed', reason: 'BootFailed', message: `${how}${trouble}` };
};

/** Until it runs. */
const starting = ({ before }: BootRun, machine: VirtualMachineInstance, now: number): Progress => {
  const waitedMs = before?.reason === 'Starting' ? now - Date.parse(before.time) : 0;
  const trouble = troubleOf(machine);
  return waitedMs > startMs
    ? { is: 'not run', reason: 'NotStarted', message: `the machine did not run within ${toSpan(startMs)}${trouble}` }
    : { is: 'running', reason: 'Starting', message: `the machine is being started${trouble}` };
};

const staying = ({ proof }: BootRun, machine: VirtualMachineInstance, ranMs: number): Progress => {
  const wantedMs = millisecondsOf(proof.spec.runningFor, usualRunMs);
  return ranMs >= wantedMs
    ? passed(machine, `it has run for ${toSpan(wantedMs)}`)
    : { is: 'running', reason: 'Booting', message: 'the machine runs; waiting whether it stays up' };
};

const answering = (run: BootRun, machine: VirtualMachineInstance, ranMs: number): Progress => {
  const timeoutMs = millisecondsOf(run.proof.spec.timeout, usualTimeoutMs.kvm);
  if (ranMs < timeoutMs)
    return { is: 'running', reason: 'Booting', message: 'the machine runs; waiting for its guest agent' };
  return bootTimedOut(run, `its guest agent did not answer within ${toSpan(timeoutMs)}${troubleOf(machine)}`);
};

const answered = (machine: VirtualMachineInstance, since: number | undefined): Progress | undefined => {
  const agent = findCondition(machine.status?.conditions, 'AgentConnected');
  if (agent?.status !== 'True') return undefined;
  const tookMs = Date.parse(agent.lastTransitionTime ?? '') - (since ?? Number.NaN);
  return passed(machine, `its guest agent answered${tookMs >= 0 ? ` after ${toSpan(tookMs)}` : ''}`);
};

export const machineProgress = (run: BootRun, machine: VirtualMachineInstance, now: number): Progress => {
  const isAsked = (run.proof.spec.until ?? 'AgentConnected') === 'AgentConnected';
  const since = runningSince(machine);
  const answer = isAsked ? answered(machine, since) : undefined;
  if (answer !== undefined) return answer;
  const { phase } = machine.status ?? {};
  if (phase === 'Succeeded' || phase === 'Failed') return ended(machine, phase);
  if (since === undefined) return starting(run, machine, now);
  const ranMs = Math.max(0, now - since);
  return isAsked ? answering(run, machine, ranMs) : staying(run, machine, ranMs);
};
