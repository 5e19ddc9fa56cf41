// Roles against what functions do: nothing is called that is not granted, nothing is granted that is never called. The comparison needs the calls
// of a whole run of flow tests: `npm run test:roles` makes one, `.ci/run` takes its own.
import { parseAllDocuments } from 'yaml';
import { describe, expect, it } from 'vitest';
import type { GeneratedManifest } from '#infra/generate/manifest.ts';
import { eventFunctions } from '#infra/generate/event-functions.ts';
import { manifestOutputs } from '#infra/generate/outputs.ts';
import { single } from '#infra/generate/single.ts';
import { type AccountCall, readCalls } from '#test/roles/calls.ts';
import { missing, unused } from '#test/roles/rights.ts';
import { type Right, rightsOf } from '#infra/generate/rights.ts';
import { findShared } from '#test/support/shared-folder.ts';

const manifests = Object.values(manifestOutputs()).flatMap((text) =>
  parseAllDocuments(text).map((document) => document.toJS() as GeneratedManifest),
);
/** Those that say no access of their own reconcile images, all by the same driver. */
const drivers = eventFunctions.filter(({ access }) => access === undefined).map(({ name }) => name);

const right = (account: string, verb: string, resource: string, more: Partial<Right> = {}): Right => ({
  account,
  verb,
  group: '',
  resource,
  names: [],
  ...more,
});
const call = (account: string, verb: string, resource: string, more: Partial<AccountCall> = {}): AccountCall => ({
  account,
  verb,
  group: '',
  resource,
  namespace: '*',
  name: '',
  ...more,
});

describe('the comparison', () => {
  it('reads the roles of each account, by binding', () => {
    const rights = rightsOf(manifests);
    expect(rights).toContainEqual(
      right('transfer', 'get', 'secrets', { namespace: 'bullion-system', names: ['transfer-keys'] }),
    );
    expect(rights).toContainEqual(right('cron-tick', 'patch', 'events', { namespace: undefined }));
    expect(drivers).toEqual(['initialize', 'sidecar-sync', 'cron-tick']);
  });

  it('names a call that no right covers: another verb, another place, another name', () => {
    const rights = [
      right('a', 'get', 'pods'),
      right('a', 'get', 'secrets', { namespace: 'bullion-system', names: ['keys'] }),
    ];
    const own = { namespace: 'bullion-system' };
    expect(missing(rights, [call('a', 'get', 'pods'), call('a', 'get', 'secrets', { ...own, name: 'keys' })])).toEqual(
      [],
    );
    expect(missing(rights, [call('a', 'list', 'pods'), call('b', 'get', 'pods')])).toEqual([
      'a: list pods',
      'b: get pods',
    ]);
    expect(missing(rights, [call('a', 'get', 'secrets', { ...own, name: 'other' })])).toEqual([
      'a: get secrets in bullion-system',
    ]);
    expect(missing(rights, [call('a', 'get', 'secrets', { name: 'keys' })])).toEqual(['a: get secrets']);
  });

  it('names a right that nobody used; within a group one use is enough for all that share it', () => {
    const rights = [
      right('a', 'get', 'pods'),
      right('b', 'get', 'pods'),
      right('b', 'list', 'pods'),
      right('c', 'get', 'pods'),
    ];
    const calls = [call('a', 'get', 'pods'), call('a', 'list', 'pods')];
    expect(unused(rights, calls, ['a', 'b'])).toEqual(['b: list pods', 'c: get pods']);
    expect(unused(rights, calls, [])).toEqual(['b: get pods', 'b: list pods', 'c: get pods']);
  });
});

const driver = '(?:initialize|sidecar-sync|cron-tick)';

/** Rights that a run of flows may end without, each with who needs it and when, and where that is shown. */
const unreached: readonly (readonly [RegExp, string])[] = [
  [/^sources: get /, 'Knative lets a source work only when its account may `get` what it watches'],
  [new RegExp(`^${driver}: patch backingimages`), 'marks of what was made before them: backingimage/plan.test'],
  [
    new RegExp(`^${driver}: patch volumesnapshots`),
    'the size a restored disk needs: data-import-cron/rights-and-sizes.test',
  ],
  [
    new RegExp(`^${driver}: (?:create|patch|delete) volumesnapshotcontents`),
    'snapshots that can be brought back: data-import-cron/undelete.test',
  ],
  [new RegExp(`^${driver}: delete virtualmachineimagedownloaders`), 'a day later: downloader/downloader.test'],
  [new RegExp(`^${driver}: delete pods`), 'the pod that shows a local export: volume-export/ending.test'],
  [new RegExp(`^${driver}: update leases`), 'a name whose holder is gone: resources/name-claim.test'],
  [/^(?:initialize|cron-tick): get secrets$/, 'sources that want a login: golden/poll/observe.test'],
  [
    /^(?:initialize|cron-tick): (?:get events|create namespaces)$/,
    'a template that nobody can carry out; a namespace that is missing',
  ],
  [
    /^cron-tick: (?:list|create|patch|delete) apiserversources/,
    'sources of kinds that come and go, which Knative has: resources/event-sources.test',
  ],
  [
    new RegExp(`^${driver}: get virtualmachineinstances`),
    'of a policy they are listed: golden-image-policy/proof/proof.test',
  ],
  [/^import-object: delete datasources/, 'the last image of a name: shared/object-import'],
  [/^backup-metadata: delete jobs/, 'a backup whose image is gone: backup/backup.test'],
  [
    /^backup-metadata: get (?:virtualmachinebackups|backupbackingimages)/,
    'backups of machines and of their images: shared/backup/handle.test',
  ],
  [
    /^admission: get (?:virtualmachinepvcs|virtualmachinevolumes|datavolumes|dataimportcrons|virtualmachinevolumeexports|goldenimagepolicies)/,
    'whose is what is to go: functions/validate/protected.test',
  ],
  [
    /^admission: (?:get namespaces|list persistentvolumes|get cdiconfigs)/,
    'forged marks, encryption keys and claims that ask for a profile: functions/validate, functions/mutate',
  ],
  [/^admission: list dataimportcrons/, 'a second policy in a namespace: functions/validate/protected.test'],
  [new RegExp(`^${driver}: patch storageprofiles`), 'annotations of a class of GKE: storage-profile/ensure.test'],
  [/^admission: get virtualmachinetemplateversions/, 'images of a template: functions/validate/protected.test'],
  [
    /^admission: (?:get|list) virtualmachines\.|^admission: get volumesnapshotclasses/,
    'what machines and classes hold: functions/validate/protected.test',
  ],
  [
    /^(?:initialize|cron-tick): patch hyperconvergeds\/status/,
    'a schedule that is drawn: resources/templates/sync.test',
  ],
  [
    /^admission: get secrets \(admission-tls\)/,
    'the certificate, where admission has pods of its own: certificate/served.test',
  ],
  [/^transfer: delete jobs/, 'a download that is cancelled: flows/download'],
  [
    /^transfer: patch datavolumes/,
    'a volume that failed although another file may follow: nobody was there to be told: exchange/upload/offer.test',
  ],
  [/^transfer: update secrets/, 'keys that have had their time, a day later: exchange/access/keys.test'],
];

const folder = process.env['BULLION_CALLS_OF'] ?? '';
const hasExamples = findShared('examples') !== undefined;

describe.skipIf(folder === '')('roles and the calls of a whole run', () => {
  const calls = folder === '' ? [] : readCalls(folder);
  const ownRights = rightsOf(manifests);
  // The one account of the overlay `single` has those of all others: infra/generate/single.test.ts.
  const rights = [...ownRights, ...ownRights.map((one) => ({ ...one, account: single }))];

  it('every account was observed', () => {
    expect([...new Set(calls.map(({ account }) => account))].toSorted()).toEqual(
      [...new Set(rights.map(({ account }) => account))].toSorted(),
    );
  });

  it('nothing was called that is not granted', () => {
    expect(missing(rights, calls)).toEqual([]);
  });

  // Flows of examples reach what others do not, and are left out where there are none.
  it.skipIf(!hasExamples)('nothing is granted that was never called, but what flows are known not to reach', () => {
    const left = unused(ownRights, calls, drivers).filter((text) => !unreached.some(([pattern]) => pattern.test(text)));
    expect(left).toEqual([]);
  });
});
