// One golden image with channels: what each channel has, which versions there are, and what people decided about them.
import { html } from 'hono/html';
import {
  type ChannelStatus,
  type GoldenImagePolicy,
  type VersionStatus,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import {
  ago,
  channelState,
  endOf,
  minor,
  policyPath,
  readiness,
  section,
  signatureOf,
  checksOf,
} from '#shared/console/golden-page.ts';
import { type Markup, type Page, type Tone, badge, pathOf } from '#shared/console/markup.ts';
import { objectPath, typeName } from '#shared/console/query.ts';

const link = (
  policy: GoldenImagePolicy,
  what: string,
  words: string,
  query: Readonly<Record<string, string>>,
): Markup => html`<a class="button" href="${pathOf(`${policyPath(policy)}/${what}`, query)}">${words}</a>`;

/** What was ended by hand is undone by hand. */
const endLink = (
  policy: GoldenImagePolicy,
  about: { readonly channel: string } | { readonly version: string },
): Markup => {
  const isEnded = policy.spec.deprecated?.some((mark) =>
    'channel' in about ? mark.channel === about.channel : mark.version === about.version,
  );
  return isEnded === true
    ? link(policy, 'undeprecate', 'Not deprecated…', about)
    : link(policy, 'deprecate', 'Deprecate…', about);
};

const channelRow = (policy: GoldenImagePolicy, channel: ChannelStatus, now: Date): Markup => {
  const { name, next, version, since, soakSeconds = 0, soakedSeconds = 0 } = channel;
  const pin = policy.spec.pins?.[name];
  const soak =
    soakSeconds > 0 && next !== undefined
      ? html`<progress max="${soakSeconds}" value="${soakedSeconds}" aria-label="Soak time of ${next}"></progress>`
      : '';
  return html`<tr>
    <th scope="row">${name} <small class="why">DataSource ${channel.dataSource}</small></th>
    <td>
      ${version ?? '–'}
      <small class="why">${ago(since, now)}${pin === undefined ? '' : `, pinned: ${pin.reason}`}</small>
    </td>
    <td>${channelState(policy, channel)} ${soak}</td>
    <td class="actions">
      ${next === undefined ? '' : link(policy, 'promote', 'Promote…', { channel: name, version: next })}
      ${version === undefined ? '' : link(policy, 'rollback', 'Roll back…', { channel: name })}
      ${pin === undefined ? '' : link(policy, 'unpin', 'Unpin…', { channel: name })}
      ${endLink(policy, { channel: name })}
    </td>
  </tr>`;
};

const versionTones: Readonly<Record<VersionStatus['state'], Tone>> = {
  Waiting: 'busy',
  Verified: 'ok',
  Failed: 'bad',
  Bad: 'bad',
  Gone: 'idle',
};

const versionRow = (policy: GoldenImagePolicy, version: VersionStatus, now: Date): Markup => {
  const { name, arrived, state, message, digest } = version;
  const having = (policy.status?.channels ?? []).filter((channel) => channel.version === name);
  const others = (policy.status?.channels ?? []).filter((channel) => channel.version !== name);
  return html`<tr>
    <td class="number"><time datetime="${arrived}">${ago(arrived, now)}</time></td>
    <th scope="row">
      ${name} <small class="why"><code>${digest}</code></small>
    </th>
    <td>${badge(versionTones[state], state)} <small class="why">${message}</small> ${endOf(version.deprecation)}</td>
    <td>${having.length === 0 ? '–' : having.map((channel) => channel.name).join(', ')}</td>
    <td class="minor">${signatureOf(policy, version)}</td>
    <td class="minor">${checksOf(version)}</td>
    <td class="actions">
      ${state === 'Verified' ? others.map((channel) => link(policy, 'pin', `Pin ${channel.name}…`, { channel: channel.name, version: name })) : ''}
      ${state === 'Bad' ? link(policy, 'good', 'Not bad…', { version: name }) : state === 'Gone' ? '' : link(policy, 'mark-bad', 'Mark bad…', { version: name })}
      ${state === 'Gone' ? '' : endLink(policy, { version: name })}
    </td>
  </tr>`;
};

const historyOf = ({ status }: GoldenImagePolicy, now: Date): Markup | '' =>
  section(
    'History',
    [
      { heading: 'When', isNumber: true },
      { heading: 'What' },
      { heading: 'Channel' },
      { heading: 'From' },
      { heading: 'To' },
      { heading: 'Who' },
      { heading: 'Why' },
    ],
    (status?.history ?? []).toReversed().map(
      ({ time, reason, channel, from, to, by, message }) =>
        html`<tr>
          <td class="number">${ago(time, now)}</td>
          <td>${reason}</td>
          <td>${channel ?? '–'}</td>
          <td>${from ?? '–'}</td>
          <td>${to}</td>
          <td>${by ?? 'the policy'}</td>
          <td>${message}</td>
        </tr>`,
    ),
  );

export const policyPage = (policy: GoldenImagePolicy, now: Date): Page => {
  const { metadata, spec, status } = policy;
  const { type } = goldenImagePolicyKind;
  const crons = spec.dataImportCrons.names?.join(', ') ?? JSON.stringify(spec.dataImportCrons.matchLabels);
  const { namespace, name } = metadata;
  return {
    title: name,
    section: '/golden',
    live: pathOf('/live/object', { namespace, name, since: `${typeName(type)}:${metadata.resourceVersion}` }),
    body: html`<h1>${metadata.name}</h1>
      <p>${readiness(status?.conditions)}</p>
      <p>
        Namespace ${metadata.namespace} · follows ${crons} ·
        <a href="${objectPath(type, metadata)}">the whole policy</a>
      </p>
      ${section(
        'Channels',
        [{ heading: 'Channel' }, { heading: 'Version' }, { heading: 'State' }, { heading: 'Decide' }],
        (status?.channels ?? []).map((channel) => channelRow(policy, channel, now)),
      )}
      ${section(
        'Versions, the newest first',
        [
          { heading: 'Arrived', isNumber: true },
          { heading: 'Version' },
          { heading: 'State' },
          { heading: 'In channels' },
          minor('Signature'),
          minor('Checks'),
          { heading: 'Decide' },
        ],
        (status?.versions ?? []).toReversed().map((version) => versionRow(policy, version, now)),
      )}
      ${historyOf(policy, now)}`,
  };
};
