// Which policy a cron's versions go through, and which of them it needs. Pure; asked by crons and by policies.
import { createHash } from 'node:crypto';
import type { ChannelStatus, GoldenImagePolicy, VersionStatus } from '#shared/api/bullion/golden-image-policy.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { RetentionLimits } from '#shared/golden/version.ts';
import { parseSpan } from '#shared/runtime/age.ts';

export const selects = ({ spec: { dataImportCrons } }: GoldenImagePolicy, { metadata }: KubeObject): boolean => {
  const { names, matchLabels } = dataImportCrons;
  if (names !== undefined) return names.includes(metadata.name);
  const wanted = Object.entries(matchLabels ?? {});
  return wanted.length > 0 && wanted.every(([key, value]) => metadata.labels?.[key] === value);
};

const ageOf = ({ metadata }: KubeObject): string => `${metadata.creationTimestamp ?? ''}/${metadata.name}`;

/** Of several, where a race let them through, the oldest has the cron. `policies`: those of the cron's namespace. */
export const policyOf = (cron: KubeObject, policies: readonly GoldenImagePolicy[]): GoldenImagePolicy | undefined =>
  policies.filter((policy) => selects(policy, cron)).toSorted((a, b) => ageOf(a).localeCompare(ageOf(b)))[0];

type Kept = readonly [version: string | undefined, why: string];

/** What a channel would go back to, and what was approved for it that it has not had yet. */
const wantedBy = (
  { spec: { approvals = [] }, status: { versions = [] } = {} }: GoldenImagePolicy,
  { name, version: current }: ChannelStatus,
): readonly Kept[] => {
  const hasHeld = ({ held }: VersionStatus): boolean => held?.some(({ channel }) => channel === name) === true;
  const isApproved = (one: VersionStatus): boolean =>
    approvals.some(({ channel, version }) => channel === name && version === one.name);
  const before = versions.findLast((one) => one.name !== current && one.state === 'Verified' && hasHeld(one));
  const newer = versions.slice(versions.findIndex((one) => one.name === current) + 1);
  const approved = newer.filter((one) => isApproved(one) && !hasHeld(one));
  return [
    [before?.name, `channel ${name} would go back to it`],
    ...approved.map((one): Kept => [one.name, `it is approved for channel ${name}`]),
  ];
};

const keptBy = (policy: GoldenImagePolicy): readonly Kept[] => {
  const { spec, status: { channels = [] } = {} } = policy;
  return [
    ...channels.map(({ name, version }): Kept => [version, `channel ${name} has it`]),
    ...Object.entries(spec.pins ?? {}).map(([name, { version }]): Kept => [version, `channel ${name} is pinned to it`]),
    ...channels.map(({ name, next }): Kept => [next, `channel ${name} waits for it`]),
    ...channels.flatMap((channel) => wantedBy(policy, channel)),
  ];
};

/**
 * What needs a version: a channel that has it, waits for it, may take it, is pinned to it or would go back to it; and the policy, while it has not taken
 * note of it. `undefined`: nothing.
 */
export const keeperOf = (policy: GoldenImagePolicy): ((version: string) => string | undefined) => {
  const { metadata, status: { versions = [] } = {} } = policy;
  const kept = keptBy(policy);
  const known = new Set(versions.map(({ name }) => name));
  return (version) =>
    kept.find(([name]) => name === version)?.[1] ??
    (known.has(version) ? undefined : `GoldenImagePolicy ${metadata.name} has not observed it yet`);
};

/** Fingerprint of what a policy keeps: after a change its crons judge their versions again. Of one that asks for nothing, that it is there. */
export const ruleOf = (policy: GoldenImagePolicy): string => {
  if (policy.spec.retention === undefined) return `none/${policy.metadata.name}`;
  const names = [...new Set(keptBy(policy).map(([version = '']) => version))].toSorted((a, b) => a.localeCompare(b));
  const known = (policy.status?.versions ?? []).map(({ name }) => name);
  const text = JSON.stringify([policy.metadata.name, policy.spec.retention, names, known]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
};

/** What a policy asks for in place of importsToKeep. */
export interface PolicyRetention extends RetentionLimits {
  readonly keep?: number | undefined;
  /** Milliseconds before a version that nothing keeps goes for good. */
  readonly undeleteFor?: number | undefined;
}

/** `undefined`: nothing. */
export const retentionOf = ({ spec: { retention } }: GoldenImagePolicy): PolicyRetention | undefined =>
  retention && {
    keep: retention.keep,
    maxAge: parseSpan(retention.maxAge ?? ''),
    unusedFor: parseSpan(retention.unusedFor ?? ''),
    undeleteFor: parseSpan(retention.undeleteFor ?? ''),
  };
