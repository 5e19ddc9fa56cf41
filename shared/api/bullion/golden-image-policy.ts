// bullion.dev GoldenImagePolicy: how versions of one golden image reach its users, channel by channel, and how they are taken back.
import { z } from 'zod';
import { CopiesRule, DeprecationRule, DeprecationStatus, RetentionRule } from '#shared/api/bullion/lifecycle.ts';
import { Attestation, Boot, Check, SignatureRule } from './verify.ts';
import { ConditionSchema } from '#shared/api/image-status.ts';
import { Int64, ObjectName, type ServedKind, withRules } from '#shared/api/kind.ts';
import type { KubeObject } from '#shared/api/object.ts';

const by = z.string().optional().describe('who wrote this; filled in at admission, and never by hand');
const at = z.string().optional().describe('RFC 3339: when it was written; filled in at admission');
const Version = ObjectName.min(1).describe('name of a version, as status.versions lists it');
const Reason = z.string().max(1024).describe('the reason, recorded with the decision');

const ChannelName = ObjectName.min(1).max(63);

const After = z
  .object({
    channel: ChannelName.describe('the channel that a version must pass first; it must come earlier in the list'),
    soak: z
      .string()
      .optional()
      .describe('how long that channel must have had the version, such as 24h or 7d; left out: no time'),
    approval: z
      .enum(['auto', 'manual'])
      .optional()
      .describe('manual: only once a person approved the version for this channel (bullion promote); left out: auto'),
  })
  .describe('what a version must have passed; left out: the newest verified version enters at once');

const Channel = z.object({
  name: ChannelName.describe('name of the channel'),
  dataSource: ObjectName.min(1).max(63).describe('DataSource of this namespace that points to its version'),
  after: After.optional(),
});
export type Channel = z.infer<typeof Channel>;

const Pin = z.object({ version: Version, reason: Reason, by, at });
const Bad = z.object({
  version: Version,
  digest: z
    .string()
    .optional()
    .describe('what it holds: the same bytes are bad under any name; filled in at admission where it is known'),
  reason: Reason,
  by,
  at,
});
const Approval = z.object({
  channel: ChannelName.describe('the channel that it may enter'),
  version: Version,
  skipSoak: z.boolean().optional().describe('true: it need not have been in the channel before, nor soaked there'),
  reason: Reason.optional(),
  by,
  at,
});

const Retired = z
  .object({
    version: Version.optional(),
    channel: ChannelName.optional().describe('a channel, whatever version it has'),
    obsolete: z.boolean().optional().describe('true: no new disks; left out: disks are made, with a warning'),
    replacement: ObjectName.optional().describe('DataSource of this namespace to use instead'),
    reason: Reason,
    by,
    at,
  })
  .meta(
    withRules({
      rule: 'has(self.version) != has(self.channel)',
      message: 'exactly one of version and channel must be set',
    }),
  );
export type RetiredMark = z.infer<typeof Retired>;

export const GoldenImagePolicySpec = z
  .object({
    dataImportCrons: z
      .object({
        names: z.array(ObjectName.min(1)).min(1).max(32).optional().describe('names of crons'),
        matchLabels: z.record(z.string(), z.string()).optional().describe('labels that a cron must have, all of them'),
      })
      .describe('the DataImportCrons of this namespace that import the image: their versions go through these channels')
      .meta(
        withRules({
          rule: 'has(self.names) != has(self.matchLabels)',
          message: 'exactly one of names and matchLabels must be set',
        }),
      ),
    channels: z.array(Channel).min(1).max(16).describe('in the order in which a version goes through them'),
    verify: z
      .object({
        signature: SignatureRule.optional(),
        boot: Boot.optional(),
        checks: z
          .array(Check)
          .min(1)
          .max(16)
          .optional()
          .describe(
            'Jobs in this namespace, each with a throw-away clone of the version: exit code 0 passes. They run with the account default, whose token they are not given',
          ),
      })
      .optional()
      .describe(
        'what a version must pass before a channel takes it; default: nothing. Where a signature is asked for, it comes first',
      ),
    pins: z
      .record(z.string(), Pin)
      .optional()
      .describe('by channel: the version at which it stays (bullion pin, rollback, unpin)'),
    bad: z
      .array(Bad)
      .max(256)
      .optional()
      .describe('versions that no channel may have; those that have one leave it at once (bullion mark-bad)'),
    approvals: z
      .array(Approval)
      .max(64)
      .optional()
      .describe('versions that may enter a channel whose approval is manual (bullion promote)'),
    deprecation: DeprecationRule.optional(),
    deprecated: z
      .array(Retired)
      .max(64)
      .optional()
      .describe('versions and channels that are deprecated or obsolete by hand (bullion deprecate)'),
    retention: RetentionRule.optional(),
    copies: CopiesRule.optional(),
  })
  .describe('which crons, through which channels, and what people decided about versions');
export type GoldenImagePolicySpec = z.infer<typeof GoldenImagePolicySpec>;

const Held = z.object({
  channel: z.string().describe('name of the channel'),
  seconds: Int64.describe('how long it was observed there; counted only while a version waits for it'),
});

const ChannelStatus = z.object({
  name: z.string().describe('name of the channel'),
  dataSource: z.string().describe('the DataSource that points to its version'),
  version: z.string().optional().describe('the version it has'),
  since: z.string().optional().describe('RFC 3339: since when'),
  next: z.string().optional().describe('the version that is to enter'),
  soakSeconds: Int64.optional().describe('how long the next version must have been in the channel before'),
  soakedSeconds: Int64.optional().describe('how much of that has passed'),
  reason: z.string().describe('its state, in one CamelCase word'),
  message: z.string().describe('why the next version does not enter, and what to do'),
  deprecation: DeprecationStatus.optional().describe('of the channel, whatever version it has'),
});
export type ChannelStatus = z.infer<typeof ChannelStatus>;

const CheckStatus = z.object({
  name: z.string().describe('the check: signature, boot, or the name of one of spec.verify.checks'),
  state: z.enum(['Passed', 'Failed', 'Pending']).describe('its result; Pending: it is repeated'),
  reason: z.string().describe('one CamelCase word'),
  message: z.string().describe('what was found, where, and what to do'),
  digest: z.string().describe('the digest that was checked'),
  rule: z.string().describe('fingerprint of the rule in spec.verify: after a change the check runs again'),
  time: z.string().describe('RFC 3339: since when it is so'),
  output: z.string().optional().describe('the end of its log, or its termination message'),
  attestations: z.array(Attestation).optional().describe('of a signature: what else its signers say of the image'),
  attempts: z.int().optional().describe('how often it could not be carried out'),
  nextTry: z.string().optional().describe('RFC 3339: when it is retried'),
});
export type CheckStatus = z.infer<typeof CheckStatus>;

const VersionStatus = z.object({
  name: z.string().describe('name of its volume or snapshot'),
  cron: z.string().describe('the DataImportCron that imported it'),
  digest: z.string().optional().describe('what it holds'),
  arrived: z.string().describe('RFC 3339: when it was observed first'),
  state: z.enum(['Waiting', 'Verified', 'Failed', 'Bad', 'Gone']).describe('whether it may be offered'),
  message: z.string().optional().describe('why it may not'),
  checks: z.array(CheckStatus).optional().describe('results of spec.verify'),
  held: z.array(Held).optional().describe('channels that have or had it'),
  deprecation: DeprecationStatus.optional().describe(
    'whether disks should still be made from it; left out: they should',
  ),
});
export type VersionStatus = z.infer<typeof VersionStatus>;

const HistoryEntry = z.object({
  time: z.string().describe('RFC 3339'),
  channel: z.string().optional().describe('the channel that moved; left out if the entry is about a version alone'),
  from: z.string().optional().describe('the version it had'),
  to: z.string().describe('the version it has since then, or that the entry is about'),
  reason: z
    .enum(['Adopted', 'Promoted', 'Pinned', 'RolledBack', 'MarkedBad', 'Deprecated', 'Obsolete', 'Restored'])
    .describe('what happened'),
  by: z.string().optional().describe('who decided it; left out: the policy itself'),
  message: z.string().describe('why'),
});
export type HistoryEntry = z.infer<typeof HistoryEntry>;

export const GoldenImagePolicyStatus = z.object({
  observedGeneration: Int64.optional().describe('the generation of spec this status was decided for'),
  phase: z.string().optional().describe('its state, in one word'),
  observedAt: z.string().optional().describe('RFC 3339: until when the time of versions in channels is counted'),
  channel: z.string().optional().describe('the last channel'),
  version: z.string().optional().describe('the version of the last channel'),
  newest: z.string().optional().describe('the version that arrived last'),
  lifecycle: z
    .enum(['Deprecated', 'Obsolete'])
    .optional()
    .describe('of the last channel or its version; left out: neither'),
  disks: z
    .object({
      total: z.int().describe('disks made from the DataSources of its channels'),
      outdated: z.int().describe('those of them that hold another version than their channel has'),
      time: z.string().describe('RFC 3339: when they were counted; written when a count or a channel has changed'),
    })
    .optional()
    .describe('who uses its versions; counted every ten minutes (bullion consumers, bullion outdated)'),
  channels: z.array(ChannelStatus).optional().describe('in the order of spec.channels'),
  versions: z.array(VersionStatus).optional().describe('in the order of arrival; the newest 50 and what is held'),
  history: z.array(HistoryEntry).optional().describe('who moved what, when and why: the last 50'),
  pendingRemovals: z.int().optional().describe('how many checks have ended whose clones are yet to be removed'),
  pendingEvents: z.int().optional().describe('how many of the newest entries of history are yet to be sent as events'),
  conditions: z.array(ConditionSchema).optional(),
});
export type GoldenImagePolicyStatus = z.infer<typeof GoldenImagePolicyStatus>;

export interface GoldenImagePolicy extends KubeObject {
  readonly spec: GoldenImagePolicySpec;
  readonly status?: GoldenImagePolicyStatus;
}

/** What a user may be allowed beside writing the object: admission asks for it when that part changes. */
export const policyVerbs = ['promote', 'pin', 'mark-bad', 'deprecate'] as const;
export type PolicyVerb = (typeof policyVerbs)[number];

export const goldenImagePolicyKind: ServedKind<GoldenImagePolicy> = {
  type: {
    group: 'bullion.dev',
    version: 'v1alpha1',
    kind: 'GoldenImagePolicy',
    plural: 'goldenimagepolicies',
    namespaced: true,
  },
  singular: 'goldenimagepolicy',
  shortNames: ['gip'],
  categories: [],
  description:
    'Rolls out the versions of one golden image through channels, each of which is a DataSource. Versions are pinned, approved and rolled back here.',
  spec: GoldenImagePolicySpec,
  status: GoldenImagePolicyStatus,
  columns: [
    { name: 'Channel', type: 'string', jsonPath: '.status.channel', description: 'The last channel' },
    { name: 'Version', type: 'string', jsonPath: '.status.version', description: 'The version of the last channel' },
    { name: 'Newest', type: 'string', jsonPath: '.status.newest', description: 'The version that arrived last' },
    { name: 'State', type: 'string', jsonPath: '.status.phase' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    {
      name: 'Outdated',
      type: 'integer',
      jsonPath: '.status.disks.outdated',
      description: 'Disks that hold another version than their channel has',
    },
    {
      name: 'Lifecycle',
      type: 'string',
      jsonPath: '.status.lifecycle',
      description: 'Deprecated, Obsolete or neither',
    },
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};
