// Golden images: the list of policies, of sources that are followed, and of DataSources; and what it has in common with the page of one policy.
import { html } from 'hono/html';
import {
  type ChannelStatus,
  type GoldenImagePolicy,
  type VersionStatus,
} from '#shared/api/bullion/golden-image-policy.ts';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { findCondition } from '#shared/api/conditions.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { deprecationIn, sentenceOf, stricter } from '#shared/golden/rollout/deprecation.ts';
import { type Markup, type Page, type Tone, badge, pathOf, table } from '#shared/console/markup.ts';
import { objectPath } from '#shared/console/query.ts';
import { toAge, toSpan } from '#shared/runtime/age.ts';

export interface Golden {
  readonly policies: readonly GoldenImagePolicy[];
  readonly crons: readonly DataImportCron[];
  readonly dataSources: readonly DataSource[];
}

export const policyPath = ({ metadata: { namespace = '', name } }: KubeObject): string =>
  `/golden/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

export const ago = (time: string | undefined, now: Date): string =>
  time === undefined ? '–' : `${toAge(time, now)} ago`;

const until = (time: string | undefined, now: Date): string => {
  if (time === undefined) return '–';
  const span = Date.parse(time) - now.getTime();
  return span > 0 ? `in ${toSpan(span)}` : 'due';
};

const toneOf = ({ next, version }: ChannelStatus): Tone =>
  version === undefined ? 'idle' : next === undefined ? 'ok' : 'busy';

export const channelState = (policy: GoldenImagePolicy, channel: ChannelStatus): Markup => {
  const end = stricter(channel.deprecation, versionNamed(policy, channel.version)?.deprecation);
  return html`${badge(toneOf(channel), channel.reason)} <small class="why">${channel.message}</small> ${endOf(end)}`;
};

export const signatureOf = ({ spec }: GoldenImagePolicy, version: VersionStatus | undefined): Markup | string => {
  if (spec.verify?.signature === undefined) return 'not asked for';
  const check = version?.checks?.find(({ name }) => name === 'signature');
  if (check === undefined) return 'not checked yet';
  const tones = { Passed: 'ok', Failed: 'bad', Pending: 'busy' } as const;
  const attested = (check.attestations ?? []).map(({ predicateType }) => predicateType).join(', ');
  return html`${badge(tones[check.state], check.state)}
    <small class="why">${check.message}${attested === '' ? '' : `; attested: ${attested}`}</small>`;
};

export const endOf = (deprecation: VersionStatus['deprecation']): Markup | '' =>
  deprecation === undefined
    ? ''
    : html`${badge(deprecation.state === 'Obsolete' ? 'bad' : 'busy', deprecation.state)}
        <small class="why">${sentenceOf(deprecation)}</small>`;

const versionNamed = ({ status }: GoldenImagePolicy, name: string | undefined): VersionStatus | undefined =>
  status?.versions?.find((version) => version.name === name);

const checkTones = { Passed: 'ok', Failed: 'bad', Pending: 'busy' } as const;

/** Results of checks other than of signatures, which have a column of their own. */
export const checksOf = (version: VersionStatus | undefined): Markup | string => {
  const checks = (version?.checks ?? []).filter(({ name }) => name !== 'signature');
  return checks.length === 0
    ? '–'
    : html`${checks.map(({ name, state, message }) => html`${badge(checkTones[state], name)} <small class="why">${state === 'Passed' ? '' : message}</small> `)}`;
};

const bootOf = (version: VersionStatus | undefined): Markup | string => {
  const boot = version?.checks?.find(({ name }) => name === 'boot');
  return boot === undefined ? 'not tried' : badge(checkTones[boot.state], boot.state);
};

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
        <td class="minor">${bootOf(versionNamed(policy, channel.version))}</td>
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
export const readiness = (conditions: Parameters<typeof findCondition>[0]): Markup => {
  const { status, reason = 'Not observed yet', message = '' } = findCondition(conditions, 'Ready') ?? {};
  return status === 'True'
    ? badge('ok', 'Ready')
    : html`${badge('busy', reason)} <small class="why">${message}</small>`;
};

/** How KubeVirt knows the system on a disk. */
const preferenceLabel = 'instancetype.kubevirt.io/default-preference';

const sourceRow = (source: DataSource, now: Date): Markup => {
  const { metadata, spec, status } = source;
  const { pvc, snapshot, dataSource } = spec.source;
  const path = objectPath(dataSourceKind.type, metadata);
  return html`<tr>
    <th scope="row"><a href="${path}">${metadata.name}</a></th>
    <td class="minor">${metadata.namespace}</td>
    <td class="minor">${metadata.labels?.[preferenceLabel] ?? '–'}</td>
    <td>${pvc?.name ?? snapshot?.name ?? dataSource?.name ?? '–'}</td>
    <td>${readiness(status?.conditions)} ${endOf(deprecationIn(source))}</td>
    <td><a href="${path}/consumers">Disks</a></td>
    <td class="number minor">${toAge(metadata.creationTimestamp, now)}</td>
  </tr>`;
};

export const minor = (heading: string) => ({ heading, isMinor: true }) as const;

export const section = (title: string, columns: Parameters<typeof table>[1], rows: readonly Markup[]): Markup | '' =>
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
      minor('OS'),
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
          minor('Boots'),
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
