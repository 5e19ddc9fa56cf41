// `bullion promote`, `pin`, `unpin`, `rollback`, `mark-bad`, `deprecate`: what people decide about versions of golden images. Each changes one part of a
// policy; the cluster asks for the right to it, and records who it was. `events` (events.ts) lists what became of it.
import { type Call, type ClusterCommand, type ExitCode, exitCodes, textOf } from '#cli/command.ts';
import {
  decide,
  deprecated,
  goodAgain,
  markedBad,
  pinned,
  promoted,
  undeprecated,
  unpinned,
  versionBefore,
} from '#shared/catalogue/decisions.ts';
import type { DeprecationStatus } from '#shared/api/bullion/lifecycle.ts';
import { annotations } from '#shared/api/names.ts';
import { findImage, groupOf, imageGroups } from '#shared/catalogue/image.ts';
import { listIfAny } from '#shared/catalogue/objects.ts';
import {
  type GoldenImagePolicy,
  type GoldenImagePolicySpec,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { InvalidInput, NotFound, isNotFound } from '#shared/runtime/errors.ts';

type Channel = GoldenImagePolicySpec['channels'][number];

interface Meant {
  readonly policy: GoldenImagePolicy;
  readonly channel: Channel;
}

const { type } = goldenImagePolicyKind;

const policiesIn = (kube: KubeClient, namespace: string): Promise<readonly GoldenImagePolicy[]> =>
  listIfAny(kube, type, namespace);

/** `<channel>`, `<DataSource>` or `<policy>/<channel>`. A DataSource is of one policy; a name of a channel may be of several. */
const findChannel = async ({ kube, namespace }: Call, wanted: string): Promise<Meant> => {
  const [first = '', second] = wanted.split('/');
  const policies = await policiesIn(kube, namespace);
  const asked = second === undefined ? policies : policies.filter(({ metadata }) => metadata.name === first);
  const all = asked.flatMap((policy) => policy.spec.channels.map((channel): Meant => ({ policy, channel })));
  const named = all.filter(({ channel }) => channel.name === (second ?? first));
  const found = named.length > 0 ? named : all.filter(({ channel }) => channel.dataSource === (second ?? first));
  const [only, ...others] = found;
  if (only === undefined) throw new NotFound(nothingThere(namespace, wanted, all));
  if (others.length === 0) return only;
  const forms = found.map(({ policy, channel }) => `${policy.metadata.name}/${channel.name}`);
  throw new InvalidInput(`several policies have a channel ${wanted}: write ${forms.join(' or ')}`);
};

const nothingThere = (namespace: string, wanted: string, all: readonly Meant[]): string => {
  const there = all.map(({ policy, channel }) => `${policy.metadata.name}/${channel.name}`).join(', ');
  return `no GoldenImagePolicy of namespace ${namespace} has a channel or DataSource ${wanted}${there === '' ? '' : `; there is ${there}`}`;
};

/** The policy that has a version; `--policy` says which where several have. */
const findVersion = async ({ kube, namespace, values }: Call, version: string): Promise<GoldenImagePolicy> => {
  const policies = await policiesIn(kube, namespace);
  const named = textOf(values, 'policy');
  const found = policies.filter(({ metadata, spec, status }) =>
    named === undefined
      ? [...(status?.versions ?? []).map(({ name }) => name), ...(spec.bad ?? []).map((mark) => mark.version)].includes(
          version,
        )
      : metadata.name === named,
  );
  const [only, ...others] = found;
  if (only === undefined)
    throw new NotFound(
      named === undefined
        ? `no GoldenImagePolicy of namespace ${namespace} has a version ${version}: bullion get gip -o yaml lists them`
        : `there is no GoldenImagePolicy ${named} in namespace ${namespace}`,
    );
  if (others.length === 0) return only;
  throw new InvalidInput(
    `several policies have ${version}: choose one with --policy ${found.map(({ metadata }) => metadata.name).join(' or --policy ')}`,
  );
};

const reasonOf = ({ values }: Call): string => {
  const reason = textOf(values, 'reason');
  if (reason === undefined || reason === '')
    throw new InvalidInput('--reason TEXT is required: it is recorded with the decision');
  return reason;
};

const report = ({ terminal }: Call, { metadata }: GoldenImagePolicy, text: string): ExitCode => {
  terminal.out(`goldenimagepolicy/${metadata.name}: ${text}\n`);
  return exitCodes.done;
};

const promote = async (call: Call): Promise<ExitCode> => {
  const [wanted = '', version = ''] = call.positionals;
  const { policy, channel } = await findChannel(call, wanted);
  const reason = textOf(call.values, 'reason');
  const skipSoak = call.values['skip-soak'] === true;
  await decide(call.kube, policy, promoted({ channel: channel.name, version, skipSoak, reason }));
  const { after } = channel;
  const soak = after?.soak === undefined ? '' : ` once channel ${after.channel} has had it for ${after.soak}`;
  return report(call, policy, `${version} may enter channel ${channel.name}${skipSoak ? ' at once' : soak}`);
};

const pinTo = async (call: Call, { policy, channel }: Meant, version: string): Promise<ExitCode> => {
  const reason = reasonOf(call);
  await decide(call.kube, policy, pinned(channel.name, version, reason));
  return report(call, policy, `channel ${channel.name} stays at ${version} until bullion unpin ${channel.name}`);
};

const pin = async (call: Call): Promise<ExitCode> => {
  const [wanted = '', version = ''] = call.positionals;
  return pinTo(call, await findChannel(call, wanted), version);
};

const rollback = async (call: Call): Promise<ExitCode> => {
  const meant = await findChannel(call, call.positionals[0] ?? '');
  return pinTo(call, meant, textOf(call.values, 'to') ?? versionBefore(meant.policy, meant.channel.name));
};

const unpin = async (call: Call): Promise<ExitCode> => {
  const { policy, channel } = await findChannel(call, call.positionals[0] ?? '');
  if (policy.spec.pins?.[channel.name] === undefined)
    return report(call, policy, `channel ${channel.name} is not pinned`);
  await decide(call.kube, policy, unpinned(channel.name));
  return report(call, policy, `channel ${channel.name} moves on with the versions that may enter`);
};

const markBad = async (call: Call): Promise<ExitCode> => {
  const [version = ''] = call.positionals;
  const policy = await findVersion(call, version);
  if (call.values['undo'] === true) {
    await decide(call.kube, policy, goodAgain(version));
    return report(call, policy, `${version} may be offered again`);
  }
  const reason = reasonOf(call);
  await decide(call.kube, policy, markedBad(version, reason));
  return report(call, policy, `${version} leaves every channel and is not offered again`);
};

/** A version where one has that name, else a channel. */
const findEnding = async (call: Call, wanted: string) => {
  try {
    return { policy: await findVersion(call, wanted), ending: { version: wanted }, what: wanted };
  } catch (error) {
    if (!isNotFound(error) || textOf(call.values, 'policy') !== undefined) throw error;
    const { policy, channel } = await findChannel(call, wanted).catch(async (fault: unknown) => {
      const image = isNotFound(fault)
        ? await findImage(call.kube, call.namespace, wanted).catch(() => undefined)
        : undefined;
      if (image === undefined) throw fault;
      throw new InvalidInput(`${wanted} is an image: write ${groupOf(image)}/${wanted}`);
    });
    return { policy, ending: { channel: channel.name }, what: `channel ${channel.name}` };
  }
};

/** `harvester/<name>` or `hypercloud/<name>`: an image by itself, whose owners decide. */
const deprecateImage = async (call: Call, wanted: string): Promise<ExitCode> => {
  const { kube, namespace, values, terminal } = call;
  const { type: imageType, image } = await findImage(kube, namespace, wanted);
  const isUndone = values['undo'] === true;
  const state = values['obsolete'] === true ? 'Obsolete' : 'Deprecated';
  const replacement = textOf(values, 'replacement');
  const mark = (): DeprecationStatus => ({
    state,
    since: `${terminal.now().toISOString().slice(0, 19)}Z`,
    message: reasonOf(call),
    ...(replacement === undefined ? {} : { replacement }),
  });
  const { name, resourceVersion } = image.metadata;
  const annotation = { [annotations.deprecation]: isUndone ? null : JSON.stringify(mark()) };
  await kube.mergePatch(imageType, { namespace, name }, { metadata: { resourceVersion, annotations: annotation } });
  const ending =
    state === 'Obsolete'
      ? 'obsolete: no new disks are made from it'
      : 'deprecated: disks are made from it with a warning';
  terminal.out(`image ${name} is ${isUndone ? 'not deprecated any more' : ending}\n`);
  return exitCodes.done;
};

const isImage = (wanted: string): boolean => imageGroups.some((group) => wanted.startsWith(`${group}/`));

const deprecate = async (call: Call): Promise<ExitCode> => {
  const { positionals, values } = call;
  if (isImage(positionals[0] ?? '')) return deprecateImage(call, positionals[0] ?? '');
  const { policy, ending, what } = await findEnding(call, positionals[0] ?? '');
  if (values['undo'] === true) {
    await decide(call.kube, policy, undeprecated(ending));
    return report(call, policy, `${what} is not deprecated by hand any more`);
  }
  const obsolete = values['obsolete'] === true;
  const replacement = textOf(values, 'replacement');
  const mark = {
    reason: reasonOf(call),
    ...(obsolete ? { obsolete } : {}),
    ...(replacement === undefined ? {} : { replacement }),
  };
  await decide(call.kube, policy, deprecated(ending, mark));
  return report(
    call,
    policy,
    `${what} is ${obsolete ? 'obsolete: no new disks are made from it' : 'deprecated: disks are made from it with a warning'}`,
  );
};

const whichChannel =
  '<channel>: name of a channel or of its DataSource, or <policy>/<channel> where several policies have it.';
const why = { reason: { type: 'string', value: 'TEXT', help: 'the reason, recorded with the decision' } } as const;

export const rolloutCommands: readonly ClusterCommand[] = [
  {
    name: 'promote',
    arguments: '<channel> <version>',
    summary: 'Promotes a version of a golden image to a channel.',
    more: `${whichChannel}\nThe other conditions of the channel still apply. Requires the verb promote on goldenimagepolicies.\n\n  bullion promote stable fedora-9ab6e2a1c1f0\n  bullion promote fedora fedora-9ab6e2a1c1f0 --skip-soak --reason 'CVE-2026-1234'`,
    options: {
      'skip-soak': { type: 'boolean', help: 'at once, without the soak time in the channel before' },
      ...why,
    },
    completes: 'datasources',
    run: promote,
  },
  {
    name: 'pin',
    arguments: '<channel> <version>',
    summary: 'Pins a channel to one version.',
    more: `${whichChannel}\nPolls and imports continue. Requires the verb pin on goldenimagepolicies.\n\n  bullion pin stable fedora-9ab6e2a1c1f0 --reason 'until the audit is over'`,
    options: why,
    completes: 'datasources',
    run: pin,
  },
  {
    name: 'unpin',
    arguments: '<channel>',
    summary: 'Unpins a channel, which then follows its versions again.',
    more: `${whichChannel}\n\n  bullion unpin stable`,
    options: {},
    completes: 'datasources',
    run: unpin,
  },
  {
    name: 'rollback',
    arguments: '<channel>',
    summary: 'Returns a channel to an earlier version, and pins it there.',
    more: `${whichChannel}\nBy a pin, which bullion unpin removes. Requires the verb pin on goldenimagepolicies.\n\n  bullion rollback stable --reason 'kernel panic on AMD'\n  bullion rollback stable --to fedora-9ab6e2a1c1f0 --reason 'kernel panic on AMD'`,
    options: {
      to: { type: 'string', value: 'VERSION', help: 'which one (the newest good one it had before)' },
      ...why,
    },
    completes: 'datasources',
    run: rollback,
  },
  {
    name: 'mark-bad',
    arguments: '<version>',
    summary: 'Removes a version of a golden image from every channel, for good.',
    more: "Each channel goes back to the newest good version it had. The same bytes are not offered again, even if their source publishes them again.\nRequires the verb mark-bad on goldenimagepolicies.\n\n  bullion mark-bad fedora-9ab6e2a1c1f0 --reason 'does not boot'\n  bullion mark-bad fedora-9ab6e2a1c1f0 --undo",
    options: {
      undo: { type: 'boolean', help: 'it may be offered again' },
      policy: { type: 'string', value: 'NAME', help: 'where several policies have the version' },
      ...why,
    },
    completes: 'datavolumes',
    run: markBad,
  },
  {
    name: 'deprecate',
    arguments: '<version-channel-or-image>',
    summary:
      'Marks a version, a channel or an image as deprecated, with a warning for new disks, or as obsolete, without new disks.',
    more: "Channels keep what they have, and disks that exist keep their contents. Requires the verb deprecate on goldenimagepolicies.\nAn image that no policy has is written harvester/<name> or hypercloud/<name>, and requires the right to change it.\nNo disk is made from what is obsolete, unless the disk has the annotation bullion.dev/allow-obsolete=true.\n\n  bullion deprecate fedora-9ab6e2a1c1f0 --reason 'support has ended'\n  bullion deprecate stable --obsolete --replacement fedora-42 --reason 'use Fedora 42'\n  bullion deprecate stable --undo\n  bullion deprecate harvester/jammy --replacement noble --reason 'use 24.04'",
    options: {
      obsolete: { type: 'boolean', help: 'no new disks are made from it' },
      replacement: { type: 'string', value: 'NAME', help: 'DataSource or image to use instead' },
      undo: { type: 'boolean', help: 'not deprecated by hand any more; its age counts as before' },
      policy: { type: 'string', value: 'NAME', help: 'where several policies have the version' },
      ...why,
    },
    completes: 'datasources',
    run: deprecate,
  },
];
