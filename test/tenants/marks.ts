// Labels, annotations, finalizers and owner references that affect Bullion: the effect when a tenant writes them.
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { harvesterAnnotations, harvesterLabels } from '#shared/api/harvester/image.ts';
import { annotations, finalizers, labels } from '#shared/api/names.ts';
import { ownMarks } from '#shared/resources/protected/marks.ts';
import type { Loose } from '#test/support/admission.ts';
import {
  claim,
  gibibyte,
  dataVolume,
  snapshot,
  image,
  cron,
  dataSource,
  job,
  lease,
  machine,
} from '#test/tenants/drafts.ts';
import { forgedAnnotations, forgedGrant } from '#test/tenants/fields.ts';
import { type Holds, loot, victim } from '#test/tenants/row.ts';

export const makers = { claim, dataVolume, snapshot, image, cron, dataSource, job, lease, machine };
export type Maker = keyof typeof makers;

/** The marks on a child of the victim's golden image. */
export const forgedChild: Loose = {
  labels: {
    [labels.ownerUid]: 'uid-loot',
    [labels.ownerKind]: 'VirtualMachineImage.harvesterhci.io',
    [labels.role]: 'import',
  },
  annotations: { [annotations.ownerName]: loot, [annotations.ownerNamespace]: victim },
};

export interface MarkRule {
  readonly map: 'labels' | 'annotations' | 'finalizers';
  readonly key: string;
  readonly on: readonly Maker[];
  readonly attack: string;
  readonly holds: Holds;
  readonly value?: string;
  readonly right?: string;
}

const pass = 'be treated as a golden volume, or as a child of an image';
const golden: readonly Maker[] = ['claim', 'dataVolume', 'snapshot'];
const stripped = (['labels', 'annotations'] as const).flatMap((map) =>
  ownMarks[map].map((key): MarkRule => ({ map, key, on: golden, attack: pass, holds: 'stripped' })),
);
const label = (key: string, on: Maker, attack: string, holds: Holds = 'inert'): MarkRule => ({
  map: 'labels',
  key,
  on: [on],
  attack,
  holds,
});
const note = (
  key: string,
  on: Maker,
  attack: string,
  holds: Holds = 'inert',
  rest: Partial<MarkRule> = {},
): MarkRule => ({
  map: 'annotations',
  key,
  on: [on],
  attack,
  holds,
  ...rest,
});
const finalizer = (key: string): MarkRule => ({
  map: 'finalizers',
  key,
  on: ['claim', 'dataVolume'],
  attack: 'prevent the deletion of their own object',
  holds: 'inert',
});
const templates = (template: Loose): string =>
  JSON.stringify([{ metadata: { name: 'root', ...(template['metadata'] as object) }, spec: template['spec'] }]);
const machines = harvesterAnnotations.claimTemplates;

export const markRules: readonly MarkRule[] = [
  ...stripped,
  ...[labels.ownerUid, labels.ownerKind, labels.role].map((key) =>
    label(key, 'job', 'control an image of another namespace by a Job that claims to belong to it'),
  ),
  ...[annotations.ownerName, annotations.ownerNamespace].map((key) =>
    note(key, 'job', 'control an image of another namespace by a Job that claims to belong to it'),
  ),
  note(annotations.granted, 'image', 'grant themselves access to an object of another tenant', 'stripped', {
    value: forgedGrant,
  }),
  note(annotations.granted, 'cron', 'grant themselves access to an object of another tenant', 'stripped', {
    value: forgedGrant,
  }),
  note(annotations.granted, 'dataSource', 'grant themselves access to an object of another tenant', 'stripped', {
    value: forgedGrant,
  }),
  note(annotations.restore, 'image', 'read a backup of another tenant', 'refused', {
    value: JSON.stringify({
      from: { type: 'nfs', server: 's', path: '/', key: loot },
      target: 't',
      object: loot,
      uid: loot,
    }),
  }),
  note(annotations.offeredTo, 'dataSource', 'offer a volume of another tenant to others', 'refused', { value: '*' }),
  note(annotations.offeredBy, 'dataSource', 'have their DataSource stand for a volume of another tenant', 'refused', {
    value: `${victim}/${loot}`,
  }),
  label(labels.policy, 'dataSource', 'have a policy of another tenant move their DataSource'),
  label(labels.protected, 'image', 'prevent the deletion of an object of another tenant'),
  note(annotations.deprecation, 'dataSource', 'prevent others from making disks'),
  ...(['claim', 'dataVolume'] as const).map((on) =>
    note(
      annotations.allowObsolete,
      on,
      'make a disk from an obsolete version of another tenant, without permission to clone it',
    ),
  ),
  label(labels.storageClass, 'image', 'prevent the deletion of a storage class'),
  label(labels.starting, 'job', 'have Jobs of another tenant removed'),
  label(labels.queue, 'job', 'take the place of another tenant in the queue of transfers'),
  label(labels.optional, 'job', 'have event sources created'),
  label(labels.source, 'image', 'have objects reconciled that wait for another tenant'),
  ...[annotations.secretRef, annotations.certConfigMap].map((key) =>
    note(key, 'image', 'have the storage use credentials or certificates of another namespace', 'refused'),
  ),
  ...(['image', 'dataVolume'] as const).map((on) =>
    note(annotations.workloadIdentity, on, 'use the identity of another tenant', 'refused'),
  ),
  note(annotations.retry, 'image', 'restart an object of another tenant'),
  note(annotations.resumedPause, 'image', 'start the Job of an upload of another tenant'),
  note(annotations.offered, 'image', 'set the size of an object of another tenant'),
  note(annotations.awaited, 'lease', 'delay an object that fetches the same content in another namespace'),
  note(
    annotations.fetchReason,
    'lease',
    'write text into the status of an object that fetches the same content in another namespace',
  ),
  note(annotations.heldUntil, 'lease', 'prevent hosts from being polled for another tenant'),
  note(annotations.kept, 'claim', 'have storage of another tenant kept, or claims made from it'),
  note(annotations.undelete, 'cron', 'restore a version that another tenant deleted'),
  note(annotations.undelete, 'image', 'take the bytes of an image that another tenant deleted'),
  note(annotations.undeleteFor, 'image', 'have storage of another tenant kept', 'inert', { value: '7d' }),
  ...[annotations.template, annotations.templateSpec, annotations.autoUpdate].map((key) =>
    note(key, 'cron', 'be treated as created from a template of an administrator'),
  ),
  note(annotations.backup, 'image', 'have an object of another tenant backed up'),
  note(annotations.backupTarget, 'job', 'set the location of a backup'),
  note(annotations.sourceHost, 'job', 'use up the limit of a host for another tenant'),
  note(annotations.queuePlace, 'job', 'take the place of another tenant in the queue of transfers'),
  note(annotations.admitted, 'lease', 'have Jobs of another tenant started'),
  note(annotations.reportKey, 'job', 'sign reports about another tenant'),
  note(annotations.prewarm, 'cron', 'have a volume made in the storage class of an image of another tenant', 'inert', {
    value: 'lh-victim',
  }),
  note(annotations.copyOnFirstUse, 'cron', 'have a volume made for a disk of another tenant', 'inert', {
    value: 'true',
  }),
  ...[annotations.schedule, annotations.poll].map((key) => note(key, 'cron', 'control polls for another tenant')),
  note(harvesterAnnotations.imageId, 'claim', 'be treated as a disk of an image of another tenant', 'inert', {
    value: `${victim}/${loot}`,
  }),
  note(
    harvesterAnnotations.storageClassName,
    'image',
    'copy an image of another tenant by its storage class',
    'asked',
    {
      value: 'lh-victim',
      right: 'get virtualmachineimages',
    },
  ),
  note(harvesterAnnotations.upgradeImage, 'image', 'be read by every node as the installer of an upgrade', 'inert', {
    value: 'True',
  }),
  note(harvesterAnnotations.removedClaims, 'machine', 'have claims of another tenant deleted'),
  note(harvesterAnnotations.reservedClass, 'claim', 'prevent the deletion of a storage class', 'inert', {
    value: 'true',
  }),
  note(harvesterAnnotations.ownedBy, 'claim', 'prevent the deletion of a claim', 'inert', {
    value: '[{"schema":"kubevirt.io.virtualmachine","refs":["victim/loot"]}]',
  }),
  note(machines, 'machine', 'have a disk made from an image of another tenant', 'asked', {
    value: templates({
      metadata: { annotations: { [harvesterAnnotations.imageId]: `${victim}/${loot}` } },
      spec: gibibyte,
    }),
    right: 'get virtualmachineimages',
  }),
  note(machines, 'machine', 'have a disk made in the storage class of an image of another tenant', 'inert', {
    value: templates({ spec: { ...gibibyte, storageClassName: 'lh-victim' } }),
  }),
  note(machines, 'machine', 'have the account of Bullion write the marks of a golden volume', 'inert', {
    value: templates({ metadata: { ...forgedChild, annotations: forgedAnnotations }, spec: gibibyte }),
  }),
  label(harvesterLabels.displayName, 'image', 'take the name of an image of another tenant'),
  label(harvesterLabels.imported, 'machine', 'mount a golden volume'),
  ...Object.values(cdiLabels).map((key) => label(key, 'claim', 'be treated as a version of a golden image')),
  ...Object.values(cdiAnnotations).map((key) =>
    note(key, 'claim', 'be treated as an object of a cron or a data volume of another tenant'),
  ),
  ...[cdiAnnotations.desiredDigest, cdiAnnotations.nextCronTime, cdiAnnotations.lastCronTime].map((key) =>
    note(key, 'cron', 'control imports of another tenant'),
  ),
  ...Object.values(finalizers).map(finalizer),
];
