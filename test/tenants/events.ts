// Events that a user who is not an event source posts to a function, about objects of another user; and tokens used for what they were not issued for.
import { generateKeyPairSync } from 'node:crypto';
import { type EventType, eventTypes } from '#events/catalogue.ts';
import { buildTransferProgressed } from '#events/build.ts';
import { signEvent } from '#events/signature.ts';
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { annotations } from '#shared/api/names.ts';
import { type KubeObject, type ObjectRef, refOf } from '#shared/api/object.ts';
import type { Deed } from '#shared/exchange/access/caller.ts';
import { forgedGrant } from '#test/tenants/fields.ts';
import { loot, tenant, victim } from '#test/tenants/row.ts';
import type { World } from '#test/tenants/world.ts';

export interface EventRow {
  readonly type: EventType;
  readonly to: 'initialize' | 'sidecar-sync';
  readonly attack: string;
  /** The existing objects, unknown to all functions. */
  readonly given: KubeObject;
  /** The real event about it, and the forged one. */
  readonly data: (object: KubeObject) => unknown;
  readonly forge: (object: KubeObject) => unknown;
}

const storage = { resources: { requests: { storage: '1Gi' } }, storageClassName: 'local' };
const aVolume = (namespace: string): DataVolume => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name: 'new', namespace },
  spec: { source: { http: { url: 'https://images.example/new.qcow2' } }, storage } as DataVolume['spec'],
});
const aCron = {
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataImportCron',
  metadata: { name: 'new', namespace: victim },
  spec: {
    schedule: '0 0 * * *',
    managedDataSource: 'new',
    template: { spec: { source: { registry: { url: 'docker://r.example/a:1' } }, storage } },
  },
};

const itself = (object: KubeObject): unknown => object;
const changed = (object: KubeObject, over: object, marks: Readonly<Record<string, string>> = {}): unknown => ({
  ...object,
  ...over,
  metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, ...marks } },
});
const stolen = { spec: { source: { pvc: { namespace: victim, name: loot } }, storage } };
const granted = { [annotations.granted]: forgedGrant };
const done = { status: { phase: 'Succeeded', claimName: loot, progress: '100.0%' } };
const observation = { is: 'found', digest: `sha256:${'f'.repeat(64)}`, message: 'forged', memory: {} };

const otherSource = 'have something imported that was not admitted';
export const eventRows: readonly EventRow[] = [
  ...([eventTypes.objectAdded, eventTypes.objectUpdated] as const).flatMap((type): readonly EventRow[] => [
    {
      type,
      to: 'initialize',
      attack: otherSource,
      given: aVolume(victim),
      data: itself,
      forge: (one) => changed(one, { spec: { source: { http: { url: 'https://evil.example' } }, storage } }),
    },
    {
      type,
      to: 'initialize',
      attack: 'have their own volume made from an object of another tenant, with a forged grant',
      given: aVolume(tenant),
      data: itself,
      forge: (one) => changed(one, stolen, granted),
    },
    {
      type,
      to: 'initialize',
      attack: 'have an object of another tenant refused, with an invalid spec',
      given: aVolume(victim),
      data: itself,
      forge: (one) => changed(one, { spec: {} }),
    },
    {
      type,
      to: 'initialize',
      attack: 'have an object of another tenant treated as done',
      given: aVolume(victim),
      data: itself,
      forge: (one) => changed(one, done),
    },
    {
      type,
      to: 'initialize',
      attack: 'have an object of another tenant treated as deleted',
      given: aVolume(victim),
      data: itself,
      forge: (one) => ({ ...one, metadata: { ...one.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }),
    },
  ]),
  ...([eventTypes.objectAdded, eventTypes.objectUpdated, eventTypes.objectDeleted] as const).map((type): EventRow => ({
    type,
    to: 'sidecar-sync',
    attack: 'have an object of another tenant treated as done, with a Job that does not exist',
    given: aVolume(victim),
    data: (one) => ({ ...jobOf(one), status: { failed: 1, conditions: [{ type: 'Failed', status: 'True' }] } }),
    forge: (one) => ({ ...jobOf(one), status: { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] } }),
  })),
  {
    type: eventTypes.sourcePolled,
    to: 'initialize',
    attack: 'have a cron import something that its source does not contain',
    given: aCron,
    data: (one) => ({ cron: refOf(one), observation: { is: 'same', message: '' } }),
    forge: (one) => ({ cron: refOf(one), observation }),
  },
];

function jobOf({ metadata, apiVersion, kind }: KubeObject) {
  const { name, namespace = '', uid = '' } = metadata;
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: `import-${uid}`,
      namespace,
      labels: {
        'bullion.dev/owner-uid': uid,
        'bullion.dev/owner-kind': `${kind}.${apiVersion.split('/')[0]}`,
        'bullion.dev/role': 'import',
      },
      annotations: { 'bullion.dev/owner-name': name, 'bullion.dev/owner-namespace': namespace },
    },
    spec: {},
  };
}

/** Types that contain only a reference, or that no function of Bullion accepts; and why. */
export const hintsAlone: Partial<Record<EventType, string>> = {
  [eventTypes.referenceAdded]: 'names an object, which is read',
  [eventTypes.referenceUpdated]: 'names an object, which is read',
  [eventTypes.referenceDeleted]: 'names an object, which is read',
  [eventTypes.ping]: 'a minute has passed: everything is looked at',
  [eventTypes.imageReady]: 'names an image, which is read',
  [eventTypes.imageFailed]: 'names an image, which is read',
  [eventTypes.storedObjectChanged]: 'names an object of a store, which is asked',
  [eventTypes.versionImported]: 'for others: no function takes it',
  [eventTypes.versionFailed]: 'for others: no function takes it',
  [eventTypes.versionSuperseded]: 'for others: no function takes it',
  [eventTypes.versionCollected]: 'for others: no function takes it',
  [eventTypes.versionPromoted]: 'for others: no function takes it',
  [eventTypes.versionPinned]: 'for others: no function takes it',
  [eventTypes.versionRolledBack]: 'for others: no function takes it',
  [eventTypes.versionMarkedBad]: 'for others: no function takes it',
  [eventTypes.versionDeprecated]: 'for others: no function takes it',
  [eventTypes.backupCompleted]: 'for others: no function takes it',
  [eventTypes.backupFailed]: 'for others: no function takes it',
  [eventTypes.backupRestored]: 'for others: no function takes it',
};

const strangersKey = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

/** A report about the victim's volume, as its own pod would send it. */
export const forgedReports: Readonly<
  Record<string, (world: World, owner: ObjectRef, run: string) => Parameters<typeof signEvent>[0]>
> = {
  'report the progress of a transfer of another tenant, unsigned': (_world, owner, run) => report(owner, run),
  'report the progress of a transfer of another tenant, signed with a key of their own': (_world, owner, run) =>
    signEvent(report(owner, run), strangersKey),
};

const report = (owner: ObjectRef, run: string) =>
  buildTransferProgressed(
    {
      owner,
      progress: {
        run,
        startedAt: '2026-01-02T03:04:05.000Z',
        sequence: 9,
        phase: 'Downloading',
        percent: 99,
        receivedBytes: 9,
      },
    },
    { source: 'bullion.dev/transfer-job' },
  );

export interface TokenRow {
  readonly token: string;
  readonly attack: string;
  readonly holds: 'refused' | 'asked';
  /** What the token is for; default: a token of the cluster, of a user without permissions there. */
  readonly claims?: { readonly verb: Deed; readonly target: string };
  readonly deed: Deed;
  readonly target: string;
}

const own = `datavolumes/${tenant}/mine`;
const kinds = ['datavolumes', 'persistentvolumeclaims', 'virtualmachineimages'] as const;
const deeds: readonly Deed[] = ['upload', 'download'];
export const tokenRows: readonly TokenRow[] = deeds.flatMap((deed) => [
  ...kinds.flatMap((plural): readonly TokenRow[] => {
    const target = `${plural}/${victim}/${loot}`;
    return [
      {
        token: `${deed} token`,
        attack: `${deed} ${plural} of another namespace`,
        holds: 'refused',
        claims: { verb: deed, target: own },
        deed,
        target,
      },
      { token: 'token of the cluster', attack: `${deed} ${plural} of another namespace`, holds: 'asked', deed, target },
    ];
  }),
  {
    token: `${deed} token`,
    attack: `do something other than ${deed}`,
    holds: 'refused',
    claims: { verb: deed, target: own },
    deed: deed === 'upload' ? 'download' : 'upload',
    target: own,
  },
]);
