// Golden images: what each channel has, which versions there are, and what people decided about them.
import { html } from 'hono/html';
import {
  type ChannelStatus,
  type GoldenImagePolicy,
  type VersionStatus,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { findCondition } from '#shared/api/conditions.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { deprecationIn, sentenceOf, stricter } from '#shared/golden/rollout/deprecation.ts';
import { type Markup, type Page, type Tone, badge, pathOf, table } from '#shared/console/markup.ts';
import { objectPath, typeName } from '#shared/console/query.ts';
import { toAge, toSpan } from '#shared/runtime/age.ts';

export interface Golden {
  readonly policies: readonly GoldenImagePolicy[];
  readonly crons: readonly DataImportCron[];
  readonly dataSources: readonly DataSource[];
}

export const policyPath = ({ metadata: { namespace = '', name } }: KubeObject): string =>
  `/golden/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

const ago = (time: string | undefined, now: Date): string => (time === undefined ? '–' : `${toAge(time, now)} ago`);

const until = (time: string | undefined, now: Date): string => {
  if (time === undefined) return '–';
  const span = Date.parse(time) - now.getTime();
  return span > 0 ? `in ${toSpan(span)}` : 'due';
};

/** Whether a channel has what it is to have. */
const toneOf = ({ next, version }: ChannelStatus): Tone =>
  version === undefined ? 'idle' : next === undefined ? 'ok' : 'busy';

const channelState = (policy: GoldenImagePolicy, channel: ChannelStatus): Markup => {
  const end = stricter(channel.deprecation, versionNamed(policy, channel.version)?.deprecation);
  return html`${badge(toneOf(channel), channel.reason)} <small class="why">${channel.message}</small> ${endOf(end)}`;
};

const signatureOf = ({ spec }: GoldenImagePolicy, version: VersionStatus | undefined): Markup | string => {
  if (spec.verify?.signature === undefined) return 'not asked for';
  const check = version?.checks?.find(({ name }) => name === 'signature');
  if (check === undefined) return 'not checked yet';
  const tones = { Passed: 'ok', Failed: 'bad', Pending: 'busy' } as const;
  const attested = (check.attestations ?? []).map(({ predicateType }) => predicateType).join(', ');
  return html`${badge(tones[check.state], check.state)}
    <small class="why">${check.message}${attested === '' ? '' : `; attested: ${attested}`}</small>`;
};

const endOf = (deprecation: VersionStatus['deprecation']): Markup | '' =>
  deprecation === undefined
    ? ''
    : html`${badge(deprecation.state === 'Obsolete' ? 'bad' : 'busy', deprecation.state)}
        <small class="why">${sentenceOf(deprecation)}</small>`;

const versionNamed = ({ status }: GoldenImagePolicy, name: string | undefined): VersionStatus | undefined =>
  status?.versions?.find((version) => version.name === name);

const policyRows = (policy: GoldenImagePolicy, now: Date): readonly Markup[] =>
  (policy.status?.channels ?? []).map(
    (channel) =>
      html`<tr>
        <th scope="row"><a href="${policyPath(policy)}">${policy.metadata.name}</a></th>
        <td class="minor">${policy.metadata.namespace}</td>
        <td>${channel.name}</td>
        <td>${channel.version ?? '–'} <small class="why">${ago(channel.since, now)}</small></td>
        <td>${channelState(policy, channel)}</td>
        <td class="minor">${channel.next ?? '–'}</td>
        <td class="minor">${signatureOf(policy, versionNamed(policy, channel.version))}</td>
      </tr>`,
  );

const freshness = ({ status }: DataImportCron): Markup => {
  const condition = findCondition(status?.conditions, 'UpToDate');
  const isFresh = condition?.status === 'True';
  const words = isFresh ? 'Fresh' : status?.lastImportedPVC === undefined ? 'Not imported yet' : 'Stale';
  return html`${badge(isFresh ? 'ok' : 'busy', words)}
  ${isFresh ? '' : html`<small class="why">${condition?.message}</small>`}`;
};

const cronRow = (cron: DataImportCron, now: Date): Markup => {
  const { metadata, spec, status } = cron;
  return html`<tr>
    <th scope="row"><a href="${objectPath(dataImportCronKind.type, metadata)}">${metadata.name}</a></th>
    <td class="minor">${metadata.namespace}</td>
    <td class="minor">${spec.managedDataSource}</td>
    <td>${status?.lastImportedPVC?.name ?? '–'}</td>
    <td>${freshness(cron)}</td>
    <td class="minor">${status?.lastPoll?.outcome ?? '–'}, ${ago(status?.lastExecutionTimestamp, now)}</td>
    <td class="number minor">${until(status?.nextExecutionTimestamp, now)}</td>
  </tr>`;
};

/** Ready, or why not. */
const readiness = (conditions: Parameters<typeof findCondition>[0]): Markup => {
  const { status, reason = 'Not observed yet', message = '' } = findCondition(conditions, 'Ready') ?? {};
  return status === 'True'
    ? badge('ok', 'Ready')
    : html`${badge('busy', reason)} <small class="why">${message}</small>`;
};

const sourceRow = (source: DataSource, now: Date): Markup => {
  const { metadata, spec, status } = source;
  const { pvc, snapshot, dataSource } = spec.source;
  const path = objectPath(dataSourceKind.type, metadata);
  return html`<tr>
    <th scope="row"><a href="${path}">${metadata.name}</a></th>
    <td class="minor">${metadata.namespace}</td>
    <td>${pvc?.name ?? snapshot?.name ?? dataSource?.name ?? '–'}</td>
    <td>${readiness(status?.conditions)} ${endOf(deprecationIn(source))}</td>
    <td><a href="${path}/consumers">Disks</a></td>
    <td class="number minor">${toAge(metadata.creationTimestamp, now)}</td>
  </tr>`;
};

const minor = (heading: string) => ({ heading, isMinor: true }) as const;

const section = (title: string, columns: Parameters<typeof table>[1], rows: readonly Markup[]): Markup | '' =>
  rows.length === 0
    ? ''
    : html`<h2>${title}</h2>
        ${table(title, columns, rows)}`;

const sourcesSection = (dataSources: Golden['dataSources'], now: Date): Markup | '' =>
  section(
    'DataSources',
    [
      { heading: 'Name' },
      minor('Namespace'),
      { heading: 'Stands for' },
      { heading: 'State' },
      { heading: 'Made from it' },
      { ...minor('Age'), isNumber: true },
    ],
    dataSources.map((source) => sourceRow(source, now)),
  );

export const goldenPage = ({ policies, crons, dataSources }: Golden, namespace: string, now: Date): Page => {
  const nothing = policies.length + crons.length + dataSources.length === 0;
  return {
    title: 'Golden images',
    section: '/golden',
    live: pathOf('/live/golden', { namespace }),
    body: html`<h1>Golden images</h1>
      <form class="filters" method="get" action="/golden" role="search">
        <label>Namespace <input name="namespace" value="${namespace}" placeholder="all" autocomplete="off" /></label>
        <button>Show</button>
      </form>
      ${nothing ? html`<p class="empty">There are no golden images that you may see here.</p>` : ''}
      ${section(
        'Channels',
        [
          { heading: 'Policy' },
          minor('Namespace'),
          { heading: 'Channel' },
          { heading: 'Version' },
          { heading: 'State' },
          minor('Next'),
          minor('Signature'),
        ],
        policies.flatMap((policy) => policyRows(policy, now)),
      )}
      ${section(
        'Sources that are followed',
        [
          { heading: 'Name' },
          minor('Namespace'),
          minor('DataSource'),
          { heading: 'Version' },
          { heading: 'State' },
          minor('Last poll'),
          { ...minor('Next poll'), isNumber: true },
        ],
        crons.map((cron) => cronRow(cron, now)),
      )}
      ${sourcesSection(dataSources, now)}`,
  };
};

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
          { heading: 'Decide' },
        ],
        (status?.versions ?? []).toReversed().map((version) => versionRow(policy, version, now)),
      )}
      ${historyOf(policy, now)}`,
  };
};
