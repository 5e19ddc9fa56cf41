// One row for each rule of GoldenImagePolicies: about the object alone, and about conflicts with others.
import type { Draft, Loose } from '#test/support/admission.ts';
import { type AdmissionRow, type ExemptRow, type ProtectedRow, exempt, row, update } from '#test/support/rule-row.ts';

const candidate = { name: 'candidate', dataSource: 'fedora-candidate' };
const stable = { name: 'stable', dataSource: 'fedora', after: { channel: 'candidate', soak: '24h' } };

export const aPolicy = (spec: Loose = {}, metadata: Loose = {}): Draft => ({
  apiVersion: 'bullion.dev/v1alpha1',
  kind: 'GoldenImagePolicy',
  metadata: { name: 'fedora', namespace: 'default', ...metadata },
  spec: { dataImportCrons: { names: ['fedora'] }, channels: [candidate, stable], ...spec },
});

const after = (over: Loose): Draft =>
  aPolicy({ channels: [candidate, { ...stable, after: { ...stable.after, ...over } }] });
const boots = (boot: Loose): Draft => aPolicy({ verify: { boot } });
const checks = (...all: readonly Loose[]): Draft =>
  aPolicy({ verify: { checks: all.map((over) => ({ name: 'scan', image: 'registry.example/scan', ...over })) } });
const reason = 'kernel panic on AMD';
const bad = [{ version: 'fedora-1', digest: 'sha256:1', reason }];
const approval = { channel: 'stable', version: 'fedora-1' };

export const policyRows: readonly AdmissionRow[] = [
  row('policy/name-length', aPolicy(), aPolicy({}, { name: 'x'.repeat(64) }), /metadata\.name.*63/),
  row('policy/one-way-to-select', aPolicy(), aPolicy({ dataImportCrons: {} }), /exactly one of names and matchLabels/),
  row(
    'policy/selects-something',
    aPolicy({ dataImportCrons: { matchLabels: { os: 'fedora' } } }),
    aPolicy({ dataImportCrons: { matchLabels: {} } }),
    /spec\.dataImportCrons\.matchLabels.*selects every cron/,
  ),
  row(
    'policy/one-channel-of-a-name',
    aPolicy(),
    aPolicy({ channels: [candidate, { ...candidate, dataSource: 'other' }] }),
    /spec\.channels\[1\]\.name.*earlier channel/,
  ),
  row(
    'policy/one-channel-of-a-data-source',
    aPolicy(),
    aPolicy({ channels: [candidate, { ...stable, dataSource: candidate.dataSource }] }),
    /spec\.channels\[1\]\.dataSource/,
  ),
  row('policy/after-earlier', aPolicy(), after({ channel: 'edge' }), /channels\[1\]\.after\.channel.*no channel edge/),
  row('policy/after-earlier', aPolicy(), after({ channel: 'stable' }), /channels\[1\]\.after\.channel.*before stable/),
  row(
    'policy/after-earlier',
    aPolicy(),
    aPolicy({ channels: [stable, candidate] }),
    /channels\[0\]\.after\.channel.*does not come before/,
  ),
  row('policy/soak', after({ soak: '7d' }), after({ soak: 'a day' }), /channels\[1\]\.after\.soak.*not a duration/),
  row('policy/times-of-checks', boots({ timeout: '10m' }), boots({ timeout: 'soon' }), /boot\.timeout/),
  row('policy/boot-memory', boots({ memory: '64Mi' }), boots({ memory: 'lots' }), /boot\.memory.*"lots" is not a size/),
  row(
    'policy/times-of-checks',
    boots({ until: 'Running', runningFor: '30s' }),
    boots({ runningFor: '0s' }),
    /runningFor/,
  ),
  row(
    'policy/times-of-checks',
    checks({ timeout: '1h' }),
    checks({ timeout: '1' }),
    /checks\[0\]\.timeout.*not a duration/,
  ),
  row('policy/one-check-of-a-name', checks({}), checks({ name: 'boot' }), /checks\[0\]\.name.*boot is the name/),
  row('policy/one-check-of-a-name', checks({}), checks({}, {}), /checks\[1\]\.name.*scan is the name/),
  row(
    'policy/pins-of-channels',
    aPolicy({ pins: { stable: { version: 'fedora-1', reason } } }),
    aPolicy({ pins: { edge: { version: 'fedora-1', reason } } }),
    /spec\.pins\.edge.*no channel edge/,
  ),
  row(
    'policy/pins-are-good',
    aPolicy({ bad, pins: { stable: { version: 'fedora-2', reason } } }),
    aPolicy({ bad, pins: { stable: { version: 'fedora-1', reason } } }),
    /spec\.pins\.stable\.version.*marked as bad/,
  ),
  row(
    'policy/approvals-of-channels',
    aPolicy({ approvals: [approval] }),
    aPolicy({ approvals: [{ ...approval, channel: 'candidate' }] }),
    /spec\.approvals\[0\]\.channel.*by itself/,
  ),
  row('policy/one-mark', aPolicy({ bad }), aPolicy({ bad: [...bad, ...bad] }), /spec\.bad\[1\]\.version.*already/),
  row(
    'policy/times-of-checks',
    aPolicy({ retention: { maxAge: '90d', unusedFor: '30d' }, deprecation: { after: '60d' } }),
    aPolicy({ retention: { unusedFor: 'a month' } }),
    /spec\.retention\.unusedFor.*not a duration/,
  ),
  row(
    'policy/obsolete-later',
    aPolicy({ deprecation: { after: '60d', obsoleteAfter: '120d' } }),
    aPolicy({ deprecation: { after: '60d', obsoleteAfter: '60d' } }),
    /spec\.deprecation\.obsoleteAfter.*not later than 60d/,
  ),
  row(
    'policy/one-deprecation',
    aPolicy({ deprecated: [{ channel: 'stable', reason }] }),
    aPolicy({ deprecated: [{ channel: 'edge', reason }] }),
    /spec\.deprecated\[0\]\.channel.*no channel edge/,
  ),
  row(
    'policy/one-deprecation',
    aPolicy({ deprecated: [{ version: 'fedora-1', reason }] }),
    aPolicy({
      deprecated: [
        { version: 'fedora-1', reason },
        { version: 'fedora-1', reason, obsolete: true },
      ],
    }),
    /spec\.deprecated\[1\].*earlier entry/,
  ),
  update(
    'policy/known-versions',
    aPolicy(),
    aPolicy({ bad }),
    aPolicy({ bad: [{ version: 'fedora-1', reason }] }),
    /spec\.bad\[0\]\.version.*no version fedora-1/,
  ),
];

const inNamespace = (draft: Draft, namespace: string): Draft => ({
  ...draft,
  metadata: { ...draft.metadata, namespace },
});
const version = (name: string, state: string): Loose => ({
  name,
  cron: 'fedora',
  arrived: '2026-01-01T00:00:00Z',
  state,
});
const known: Draft = {
  ...aPolicy(),
  status: { versions: [version('fedora-1', 'Verified'), version('fedora-2', 'Failed')] },
};
const inChannel: Draft = {
  ...known,
  status: {
    ...known.status,
    channels: [
      {
        name: 'stable',
        dataSource: 'fedora',
        version: 'fedora-1',
        reason: 'UpToDate',
        message: 'it has the newest version',
      },
    ],
  },
};
const pinned = (name: string): Draft => ({
  ...known,
  ...aPolicy({ pins: { stable: { version: name, reason, by: 'jane' } } }),
});
const other = aPolicy({ channels: [{ name: 'edge', dataSource: 'edge' }] }, { name: 'other' });
const mine = (spec: Loose): Draft => aPolicy({ channels: [{ name: 'a', dataSource: 'a' }], ...spec }, { name: 'mine' });
const debian = { dataImportCrons: { names: ['debian'] } };
/** What a channel of the policy has, pointed somewhere else, or to a version. */
export const pointing = (namespace: string, name = 'of-jane'): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataSource',
  metadata: { name: stable.dataSource, namespace },
  spec: { source: { pvc: { namespace, name } } },
});

const ended = (name: string, state: string): Draft => ({
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind: 'VolumeSnapshot',
  metadata: {
    name,
    namespace: 'default',
    annotations: {
      'bullion.dev/deprecation': JSON.stringify({ policy: 'fedora', version: name, state, message: reason }),
    },
  },
  spec: { source: { persistentVolumeClaimName: name } },
});
const diskOf = (name: string): Draft => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'disk', namespace: 'default' },
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '1Gi' } },
    dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name },
  },
});

export const policyObjectRows: readonly ProtectedRow[] = [
  {
    id: 'policy/usable-pins',
    what: 'a pin of a version that failed',
    given: [],
    allowed: { object: pinned('fedora-1'), oldObject: known },
    denied: { object: pinned('fedora-2'), oldObject: known },
    says: /spec\.pins\.stable\.version.*cannot be used/,
  },
  {
    id: 'protected/obsolete-version',
    what: 'disks from being made of an obsolete version',
    given: [aPolicy(), ended('fedora-1', 'Deprecated'), ended('fedora-2', 'Obsolete')],
    allowed: { object: diskOf('fedora-1') },
    denied: { object: diskOf('fedora-2') },
    says: /spec\.dataSource.*fedora-2 of GoldenImagePolicy .*fedora is obsolete.*allow-obsolete=true/,
  },
  {
    id: 'policy/one-policy-of-a-cron',
    what: 'a cron that another policy has',
    given: [other],
    allowed: { object: mine(debian) },
    denied: { object: mine({}) },
    says: /DataImportCron fedora is GoldenImagePolicy other's already/,
  },
  {
    id: 'policy/one-policy-of-a-data-source',
    what: 'a DataSource that is a channel of another policy',
    given: [other],
    allowed: { object: mine(debian) },
    denied: { object: mine({ ...debian, channels: [{ name: 'a', dataSource: 'edge' }] }) },
    says: /spec\.channels\[0\]\.dataSource.*GoldenImagePolicy other/,
  },
  {
    id: 'policy/rights',
    what: 'how versions are promoted, of who may not decide it',
    given: [],
    rights: ['promote goldenimagepolicies open/fedora'],
    allowed: { object: aPolicy({}, { namespace: 'open' }) },
    denied: { object: aPolicy({}, { namespace: 'vault' }) },
    says: /spec.*user jane is not allowed to decide how versions go through channels.*promote goldenimagepolicies/,
  },
  {
    id: 'policy/channel-source',
    what: 'a DataSource of a channel, by who may not promote',
    given: [aPolicy({}, { namespace: 'mine' }), aPolicy({}, { namespace: 'theirs' })],
    rights: ['promote goldenimagepolicies mine/fedora'],
    allowed: { object: pointing('mine') },
    denied: { object: pointing('theirs') },
    says: /spec\.source.*channel of GoldenImagePolicy fedora.*jane is not allowed to decide.*promote goldenimagepolicies/,
  },
  {
    id: 'policy/rights',
    what: 'the end of versions, of who may not decide it',
    given: [],
    rights: [
      'promote goldenimagepolicies open/fedora',
      'deprecate goldenimagepolicies open/fedora',
      'promote goldenimagepolicies shut/fedora',
    ],
    allowed: { object: inNamespace(aPolicy({ deprecated: [{ channel: 'stable', reason }] }), 'open') },
    denied: { object: inNamespace(aPolicy({ deprecation: { after: '60d' } }), 'shut') },
    says: /spec\.deprecated.*user jane is not allowed to deprecate versions and channels.*deprecate goldenimagepolicies/,
  },
  {
    id: 'policy/may-run',
    what: 'Jobs of who may not create any',
    given: [],
    rights: [
      'promote goldenimagepolicies open/fedora',
      'create jobs open/*',
      'promote goldenimagepolicies shut/fedora',
    ],
    allowed: { object: inNamespace(checks({}), 'open') },
    denied: { object: inNamespace(checks({}), 'shut') },
    says: /spec\.verify\.checks.*user jane is not allowed to run Jobs here.*create jobs of batch/,
  },
  {
    id: 'policy/may-run',
    what: 'a boot of who may create neither machines nor Jobs',
    given: [],
    rights: [
      'promote goldenimagepolicies open/fedora',
      'create virtualmachineinstances open/*',
      'promote goldenimagepolicies shut/fedora',
    ],
    allowed: { object: inNamespace(boots({}), 'open') },
    denied: { object: inNamespace(boots({}), 'shut') },
    says: /spec\.verify\.boot.*create virtualmachineinstances of kubevirt\.io or jobs of batch/,
  },
];

export const exemptPolicyRows: readonly ExemptRow[] = [
  exempt('policy/channel-source', 'a DataSource of a channel, as the policy has it', [inChannel], {
    object: pointing('default', 'fedora-1'),
  }),
  exempt('policy/channel-source', 'a DataSource that no channel of the policy has', [known], {
    object: { ...pointing('default', 'fedora-1'), metadata: { name: 'debian', namespace: 'default' } },
  }),
];
