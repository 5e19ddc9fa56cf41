// What must be so of the channels of a policy, and of what is decided for them, by looking at the object alone. Pure.
import type { GoldenImagePolicy } from '#shared/api/bullion/golden-image-policy.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { type SpecRule, faultIf, faultsOf } from '#shared/resources/rule.ts';
import { parseSpan } from '#shared/runtime/age.ts';
import type { Fault } from '#shared/runtime/errors.ts';

type Check = SpecRule<GoldenImagePolicy>['check'];

const mostCharacters = 63;

/** It is a label of its DataSources. */
const nameFits: Check = ({ metadata }) =>
  faultIf(metadata.name.length > mostCharacters, 'metadata.name', `must have at most ${mostCharacters} characters`);

const selectsSomething: Check = ({ spec: { dataImportCrons } }) =>
  faultIf(
    dataImportCrons.matchLabels !== undefined && Object.keys(dataImportCrons.matchLabels).length === 0,
    'spec.dataImportCrons.matchLabels',
    'selects every cron, and a policy is about one golden image: name a label of its crons',
  );

/** The second one of a kind, by its place. */
const repeated = (field: 'name' | 'dataSource', message: string): Check => {
  return ({ spec: { channels } }) =>
    channels.flatMap((channel, index) =>
      faultIf(
        channels.findIndex((other) => other[field] === channel[field]) < index,
        `spec.channels[${index}].${field}`,
        `${channel[field]} ${message}`,
      ),
    );
};

/** Only earlier ones: so there are neither unknown ones nor circles. */
const comesAfter: Check = ({ spec: { channels } }) =>
  channels.flatMap(({ name, after }, index) => {
    if (after === undefined) return [];
    const place = channels.findIndex((other) => other.name === after.channel);
    const field = `spec.channels[${index}].after.channel`;
    const known = channels
      .slice(0, index)
      .map((one) => one.name)
      .join(', ');
    const advice = known === '' ? 'the first channel has no channel before it: leave it out' : `write one of ${known}`;
    if (place < 0) return [{ field, message: `there is no channel ${after.channel}: ${advice}` }];
    return faultIf(
      place >= index,
      field,
      `${after.channel} does not come before ${name}, so that neither would ever get a version: ${advice}`,
    );
  });

const soakIsSpan: Check = ({ spec: { channels } }) =>
  channels.flatMap(({ after }, index): readonly Fault[] =>
    faultIf(
      after?.soak !== undefined && parseSpan(after.soak) === undefined,
      `spec.channels[${index}].after.soak`,
      `${JSON.stringify(after?.soak)} is not a duration: write one such as 90m, 24h or 7d`,
    ),
  );

/** As soaks: times are written as spans. */
const spansOf = ({
  spec: { verify = {}, deprecation = {}, retention = {}, copies = {} },
}: GoldenImagePolicy): readonly (readonly [string, string | undefined])[] => [
  ['spec.deprecation.after', deprecation.after],
  ['spec.deprecation.obsoleteAfter', deprecation.obsoleteAfter],
  ['spec.retention.maxAge', retention.maxAge],
  ['spec.retention.unusedFor', retention.unusedFor],
  ['spec.retention.undeleteFor', retention.undeleteFor],
  ['spec.copies.unusedFor', copies.unusedFor],
  ['spec.verify.boot.timeout', verify.boot?.timeout],
  ['spec.verify.boot.runningFor', verify.boot?.runningFor],
  ...(verify.checks ?? []).map(({ timeout }, index) => [`spec.verify.checks[${index}].timeout`, timeout] as const),
];

const timesAreSpans: Check = (policy) =>
  spansOf(policy).flatMap(([field, span]) =>
    faultIf(
      span !== undefined && !((parseSpan(span) ?? 0) >= 1000),
      field,
      `${JSON.stringify(span)} is not a duration of a second or more: write one such as 90s, 10m or 1h`,
    ),
  );

/** BIOS and a kernel fit, if barely. */
const leastMemory = 32 * 2 ** 20;

const memoryIsEnough: Check = ({ spec: { verify = {} } }) =>
  faultIf(
    verify.boot?.memory !== undefined && !((parseQuantity(verify.boot.memory) ?? 0) >= leastMemory),
    'spec.verify.boot.memory',
    `${JSON.stringify(verify.boot?.memory)} is not a size of 32Mi or more: write one such as 1Gi`,
  );

const ownNames: readonly string[] = ['signature', 'boot'];

const oneCheckOfName: Check = ({ spec: { verify = {} } }) =>
  (verify.checks ?? []).flatMap(({ name }, index, all) =>
    faultIf(
      ownNames.includes(name) || all.findIndex((other) => other.name === name) < index,
      `spec.verify.checks[${index}].name`,
      `${name} is the name of another check already: write another one`,
    ),
  );

const pinsOfChannels: Check = ({ spec: { channels, pins = {} } }) =>
  Object.keys(pins).flatMap((name) =>
    faultIf(
      !channels.some((channel) => channel.name === name),
      `spec.pins.${name}`,
      `there is no channel ${name}: write one of ${channels.map((one) => one.name).join(', ')}, or remove the pin (bullion unpin ${name}, before the channel)`,
    ),
  );

const approvalsOfChannels: Check = ({ spec: { channels, approvals = [] } }) =>
  approvals.flatMap(({ channel }, index) => {
    const found = channels.find(({ name }) => name === channel);
    const field = `spec.approvals[${index}].channel`;
    if (found === undefined) return [{ field, message: `there is no channel ${channel}: remove the approval with it` }];
    return faultIf(
      found.after === undefined,
      field,
      `${channel} takes each verified version by itself, so that none is promoted to it: leave it out`,
    );
  });

/** A version cannot be what a channel must have and what no channel may have. */
const pinsAreGood: Check = ({ spec: { pins = {}, bad = [] } }) =>
  Object.entries(pins).flatMap(([name, { version }]) =>
    faultIf(
      bad.some((mark) => mark.version === version),
      `spec.pins.${name}.version`,
      `${version} cannot be both pinned and marked as bad: unpin ${name} or pin another version, or leave out the mark`,
    ),
  );

const oneMark: Check = ({ spec: { bad = [] } }) =>
  bad.flatMap(({ version }, index) =>
    faultIf(
      bad.findIndex((other) => other.version === version) < index,
      `spec.bad[${index}].version`,
      `${version} is marked already`,
    ),
  );

const obsoleteIsLater: Check = ({ spec: { deprecation = {} } }) => {
  const [after, obsolete] = [parseSpan(deprecation.after ?? ''), parseSpan(deprecation.obsoleteAfter ?? '')];
  return faultIf(
    after !== undefined && obsolete !== undefined && obsolete <= after,
    'spec.deprecation.obsoleteAfter',
    `${deprecation.obsoleteAfter} is not later than ${deprecation.after}, when a version is deprecated: write a longer time`,
  );
};

const deprecatesOnce: Check = ({ spec: { channels, deprecated = [] } }) =>
  deprecated.flatMap(({ channel, version }, index) => {
    const isKnown = channel === undefined || channels.some(({ name }) => name === channel);
    const first = deprecated.findIndex((one) => one.channel === channel && one.version === version);
    const field = `spec.deprecated[${index}]`;
    return [
      ...faultIf(
        !isKnown,
        `${field}.channel`,
        `there is no channel ${channel}: remove the entry with it (bullion deprecate ${channel} --undo, before the channel)`,
      ),
      ...faultIf(first < index, field, `${channel ?? version} is deprecated by an earlier entry: change that one`),
    ];
  });

export const policySpecRules: readonly SpecRule<GoldenImagePolicy>[] = [
  { id: 'name-length', check: nameFits },
  { id: 'selects-something', check: selectsSomething },
  { id: 'one-channel-of-a-name', check: repeated('name', 'is the name of an earlier channel: write another one') },
  {
    id: 'one-channel-of-a-data-source',
    check: repeated('dataSource', 'is the DataSource of an earlier channel, and can point to one version only'),
  },
  { id: 'after-earlier', check: comesAfter },
  { id: 'soak', check: soakIsSpan },
  { id: 'times-of-checks', check: timesAreSpans },
  { id: 'boot-memory', check: memoryIsEnough },
  { id: 'one-check-of-a-name', check: oneCheckOfName },
  { id: 'pins-of-channels', check: pinsOfChannels },
  { id: 'pins-are-good', check: pinsAreGood },
  { id: 'approvals-of-channels', check: approvalsOfChannels },
  { id: 'one-mark', check: oneMark },
  { id: 'obsolete-later', check: obsoleteIsLater },
  { id: 'one-deprecation', check: deprecatesOnce },
];

export const channelFaults = (policy: GoldenImagePolicy): readonly Fault[] => faultsOf(policySpecRules, policy);
