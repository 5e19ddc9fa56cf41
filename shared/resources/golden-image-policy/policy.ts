// A GoldenImagePolicy as the reconciler sees it.
import type {
  ChannelStatus,
  CheckStatus,
  GoldenImagePolicy,
  HistoryEntry,
  VersionStatus,
} from '#shared/api/bullion/golden-image-policy.ts';
import { findCondition } from '#shared/api/conditions.ts';
import type { DataImportCron } from '#shared/api/cdi/data-import-cron.ts';
import type { DataSource } from '#shared/api/cdi/data-source.ts';
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import type { Job, PersistentVolumeClaim, Pod } from '#shared/api/foreign/core.ts';
import type { VirtualMachineInstance } from '#shared/api/foreign/kubevirt.ts';
import type { RolloutChannel, RolloutWish } from '#shared/golden/rollout/decide.ts';
import type { CronResource, ObservedVersion } from '#shared/resources/data-import-cron/cron.ts';
import { readResource } from '#shared/resources/dialect.ts';
import { channelFaults } from '#shared/resources/golden-image-policy/channels.ts';
import type { ReconciledState, Resource } from '#shared/resources/reconciler.ts';
import type { Note } from '#shared/resources/transitions.ts';
import { parseSpan } from '#shared/runtime/age.ts';
import type { Fault } from '#shared/runtime/errors.ts';

export interface PolicyState extends ReconciledState {
  /**
   * `Moving`: decided, and DataSources are to follow; `Waiting`: for something that is looked for again and again; `Attention`: somebody has to do
   * something; `Ready`: each channel has what it may have.
   */
  readonly phase: 'Pending' | 'Moving' | 'Waiting' | 'Attention' | 'Ready';
  readonly observedGeneration?: number | undefined;
  /** RFC 3339. */
  readonly observedAt?: string | undefined;
  readonly channels: readonly ChannelStatus[];
  readonly versions: readonly VersionStatus[];
  readonly history: readonly HistoryEntry[];
  /** How many checks have ended whose clones are to be removed. */
  readonly pendingRemovals: number;
  /** How many of them, the newest, have no Event yet. */
  readonly pendingEvents: number;
  /** What this step is worth telling; never kept. */
  readonly notes?: readonly Note[];
}

export interface PolicyResource extends Resource<PolicyState> {
  readonly object: GoldenImagePolicy;
  readonly namespace: string;
  readonly faults: readonly Fault[];
}

/** A cron whose versions are this policy's. */
export interface PolicyCron {
  readonly cron: CronResource;
  readonly versions: ReadonlyMap<string, ObservedVersion>;
}

export interface ObservedPolicy {
  /** By name: DataSources of its channels. */
  readonly sources: ReadonlyMap<string, DataSource>;
  readonly crons: readonly PolicyCron[];
  /** Crons that it selects and an older policy has: names of both. */
  readonly taken: readonly { readonly cron: string; readonly policy: string }[];
  /** Every cron of the namespace. */
  readonly allCrons: readonly DataImportCron[];
  /** Names of every policy of the namespace. */
  readonly policies: ReadonlySet<string>;
  /** By version: who signed it, where spec.verify asks for that. */
  readonly checks: ReadonlyMap<string, readonly CheckStatus[]>;
  readonly proofs: ObservedProofs;
}

/** Throw-away clones of versions, and what runs on them: all of one name. */
export interface ObservedProofs {
  readonly clones: readonly DataVolume[];
  /** By name: the claims of clones that are filled. */
  readonly claims: ReadonlyMap<string, PersistentVolumeClaim>;
  readonly jobs: readonly Job[];
  readonly pods: readonly Pod[];
  /** `undefined`: the cluster has no KubeVirt. */
  readonly machines: readonly VirtualMachineInstance[] | undefined;
}

const phases = ['Moving', 'Waiting', 'Attention', 'Ready'] as const;

const readState = ({ status = {} }: GoldenImagePolicy): PolicyState => {
  const ready = findCondition(status.conditions, 'Ready');
  return {
    phase: phases.find((phase) => phase === status.phase) ?? 'Pending',
    reason: ready?.reason ?? 'Pending',
    message: ready?.message ?? 'waiting to be processed',
    observedGeneration: status.observedGeneration,
    observedAt: status.observedAt,
    channels: status.channels ?? [],
    versions: status.versions ?? [],
    history: status.history ?? [],
    pendingRemovals: status.pendingRemovals ?? 0,
    pendingEvents: status.pendingEvents ?? 0,
  };
};

export const readPolicy = (object: GoldenImagePolicy): PolicyResource => ({
  ...readResource(object),
  state: readState(object),
  object,
  namespace: object.metadata.namespace ?? '',
  faults: channelFaults(object),
});

/** Only of what has no faults. */
const toChannel = ({ name, dataSource, after }: GoldenImagePolicy['spec']['channels'][number]): RolloutChannel => ({
  name,
  dataSource,
  after: after && {
    channel: after.channel,
    soakSeconds: Math.ceil((parseSpan(after.soak ?? '0s') ?? 0) / 1000),
    approval: after.approval ?? 'auto',
  },
});

/** Digests that were not recorded with a mark are those of its version. */
export const wishOf = ({ object: { spec }, state }: PolicyResource): RolloutWish => ({
  channels: spec.channels.map(toChannel),
  pins: new Map(Object.entries(spec.pins ?? {})),
  bad: (spec.bad ?? []).map((mark) => ({
    ...mark,
    digest: mark.digest ?? state.versions.find(({ name }) => name === mark.version)?.digest,
  })),
  approvals: spec.approvals ?? [],
});
