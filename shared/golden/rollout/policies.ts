// Which policy a cron's versions go through, and which of them it needs. Pure; asked by crons and by policies.
import type { GoldenImagePolicy } from '#shared/api/bullion/golden-image-policy.ts';
import type { KubeObject } from '#shared/api/object.ts';

/** Whether a policy names a cron of its namespace. */
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

/**
 * Whether a version must stay: a channel has it, waits for it or is pinned to it, or would go back to it; and what the policy has not taken note of
 * yet.
 */
export const isKeptBy = ({ spec, status = {} }: GoldenImagePolicy): ((version: string) => boolean) => {
  const { channels = [], versions = [] } = status;
  const backTo = channels.map(
    ({ name, version }) =>
      versions.findLast(
        ({ name: other, state, held }) =>
          other !== version && state === 'Verified' && held?.some(({ channel }) => channel === name) === true,
      )?.name,
  );
  const pinned = Object.values(spec.pins ?? {}).map(({ version }) => version);
  const kept = new Set([...channels.flatMap(({ version, next }) => [version, next]), ...backTo, ...pinned]);
  const known = new Set(versions.map(({ name }) => name));
  return (version) => kept.has(version) || !known.has(version);
};
