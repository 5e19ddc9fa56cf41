// Labels, annotations, finalizers and owner references that affect Bullion: the effect when a tenant writes them.
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { harvesterAnnotations, harvesterLabels } from '#shared/api/harvester/image.ts';
import { annotations, finalizers, labels, workloadControllers } from '#shared/api/names.ts';
import { ownMarks } from '#shared/resources/protected/marks.ts';
import type { Draft, Loose } from '#test/support/admission.ts';
import { forgedAnnotations, forgedGrant } from '#test/tenants/fields.ts';
import { type Holds, type ObjectRow, draft, loot, tenant, victim } from '#test/tenants/row.ts';

const gibibyte = { resources: { requests: { storage: '1Gi' } } };
const claim = (metadata: Loose = {}, spec: Loose = {}): Draft =>
  draft(
    'PersistentVolumeClaim',
    'v1',
    { accessModes: ['ReadWriteOnce'], storageClassName: 'local', ...gibibyte, ...spec },
    metadata,
  );
const dataVolume = (metadata: Loose = {}): Draft =>
  draft('DataVolume', 'cdi.kubevirt.io/v1beta1', { source: { blank: {} }, storage: gibibyte }, metadata);
const snapshot = (metadata: Loose = {}): Draft =>
  draft('VolumeSnapshot', 'snapshot.storage.k8s.io/v1', { source: { persistentVolumeClaimName: 'mine' } }, metadata);
const image = (metadata: Loose = {}): Draft =>
  draft(
    'VirtualMachineImage',
    'harvesterhci.io/v1beta1',
    { backend: 'csi', displayName: 'mine', sourceType: 'upload', retry: 0 },
    metadata,
  );
const cron = (metadata: Loose = {}): Draft =>
  draft(
    'DataImportCron',
    'cdi.kubevirt.io/v1beta1',
    {
      schedule: '',
      managedDataSource: 'mine',
      template: { spec: { source: { registry: { url: 'docker://r.example/a:1' } }, storage: gibibyte } },
    },
    metadata,
  );
const dataSource = (metadata: Loose = {}): Draft =>
  draft('DataSource', 'cdi.kubevirt.io/v1beta1', { source: { pvc: { namespace: tenant, name: 'mine' } } }, metadata);
const job = (metadata: Loose = {}): Draft =>
  draft(
    'Job',
    'batch/v1',
    { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'a' }] } } },
    metadata,
  );
const lease = (metadata: Loose = {}): Draft =>
  draft('Lease', 'coordination.k8s.io/v1', { holderIdentity: loot }, metadata);
const machine = (metadata: Loose = {}): Draft =>
  draft('VirtualMachine', 'kubevirt.io/v1', { template: { spec: { volumes: [] } } }, metadata);
const makers = { claim, dataVolume, snapshot, image, cron, dataSource, job, lease, machine };
type Maker = keyof typeof makers;

/** The marks on a child of the victim's golden image. */
const forgedChild: Loose = {
  labels: {
    [labels.ownerUid]: 'uid-loot',
    [labels.ownerKind]: 'VirtualMachineImage.harvesterhci.io',
    [labels.role]: 'import',
  },
  annotations: { [annotations.ownerName]: loot, [annotations.ownerNamespace]: victim },
};

interface MarkRule {
  readonly map: 'labels' | 'annotations' | 'finalizers';
  readonly key: string;
  readonly on: readonly Maker[];
  readonly attack: string;
  readonly holds: Holds;
  readonly value?: string;
  readonly right?: string;
}

const pass = 'pass for what holds an image, or for a child of one';
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
  attack: 'keep what is theirs from its end',
  holds: 'inert',
});
const templates = (template: Loose): string =>
  JSON.stringify([{ metadata: { name: 'root', ...(template['metadata'] as object) }, spec: template['spec'] }]);
const machines = harvesterAnnotations.claimTemplates;

export const markRules: readonly MarkRule[] = [
  ...stripped,
  ...[labels.ownerUid, labels.ownerKind, labels.role].map((key) =>
    label(key, 'job', 'steer an image of another namespace by a Job that says it is its own'),
  ),
  ...[annotations.ownerName, annotations.ownerNamespace].map((key) =>
    note(key, 'job', 'steer an image of another namespace by a Job that says it is its own'),
  ),
  note(annotations.granted, 'image', 'grant themselves what is of others', 'stripped', { value: forgedGrant }),
  note(annotations.granted, 'cron', 'grant themselves what is of others', 'stripped', { value: forgedGrant }),
  note(annotations.granted, 'dataSource', 'grant themselves what is of others', 'stripped', { value: forgedGrant }),
  note(annotations.restore, 'image', 'read a backup of others', 'refused', {
    value: JSON.stringify({
      from: { type: 'nfs', server: 's', path: '/', key: loot },
      target: 't',
      object: loot,
      uid: loot,
    }),
  }),
  label(labels.policy, 'dataSource', 'have a policy of others move what is theirs'),
  label(labels.protected, 'image', 'keep what is of others from being deleted'),
  note(annotations.deprecation, 'dataSource', 'keep others from making disks'),
  ...(['claim', 'dataVolume'] as const).map((on) =>
    note(
      annotations.allowObsolete,
      on,
      'have an obsolete version of others made into a disk, without the right to clone it',
    ),
  ),
  label(labels.storageClass, 'image', 'keep a storage class from being deleted'),
  label(labels.starting, 'job', 'have Jobs of others removed'),
  label(labels.queue, 'job', 'take the turn of others in the queue of transfers'),
  label(labels.optional, 'job', 'have event sources made'),
  label(labels.source, 'image', 'wake what waits for others'),
  note(annotations.retry, 'image', 'start again what is of others'),
  note(annotations.offered, 'image', 'size what is of others'),
  note(annotations.awaited, 'lease', 'hold up who fetches the same in another namespace'),
  note(annotations.fetchReason, 'lease', 'put words into the status of who fetches the same in another namespace'),
  note(annotations.heldUntil, 'lease', 'keep hosts from being polled for others'),
  note(annotations.kept, 'claim', 'have storage of others kept, or claims made from it'),
  note(annotations.undelete, 'cron', 'bring back what others deleted'),
  ...[annotations.template, annotations.templateSpec, annotations.autoUpdate].map((key) =>
    note(key, 'cron', 'pass for what an administrator’s template made'),
  ),
  note(annotations.backup, 'image', 'have what is of others kept'),
  note(annotations.backupTarget, 'job', 'say where a backup lies'),
  note(annotations.sourceHost, 'job', 'use up the limit of a host for others'),
  note(annotations.queuePlace, 'job', 'take the turn of others in the queue of transfers'),
  note(annotations.admitted, 'lease', 'have Jobs of others started'),
  note(annotations.reportKey, 'job', 'sign reports about others'),
  ...[annotations.schedule, annotations.poll].map((key) => note(key, 'cron', 'steer polls for others')),
  note(harvesterAnnotations.imageId, 'claim', 'pass for a disk of an image of others', 'inert', {
    value: `${victim}/${loot}`,
  }),
  note(harvesterAnnotations.storageClassName, 'image', 'make a copy of an image by its storage class', 'asked', {
    value: 'lh-victim',
    right: 'get virtualmachineimages',
  }),
  note(harvesterAnnotations.upgradeImage, 'image', 'be read by every node as the installer of an upgrade', 'inert', {
    value: 'True',
  }),
  note(harvesterAnnotations.removedClaims, 'machine', 'have claims of others deleted'),
  note(harvesterAnnotations.reservedClass, 'claim', 'keep a storage class from being deleted', 'inert', {
    value: 'true',
  }),
  note(harvesterAnnotations.ownedBy, 'claim', 'keep a claim from being deleted', 'inert', {
    value: '[{"schema":"kubevirt.io.virtualmachine","refs":["victim/loot"]}]',
  }),
  note(machines, 'machine', 'have a disk made of an image of others', 'asked', {
    value: templates({
      metadata: { annotations: { [harvesterAnnotations.imageId]: `${victim}/${loot}` } },
      spec: gibibyte,
    }),
    right: 'get virtualmachineimages',
  }),
  note(machines, 'machine', 'have a disk made in the storage class of an image of others', 'inert', {
    value: templates({ spec: { ...gibibyte, storageClassName: 'lh-victim' } }),
  }),
  note(machines, 'machine', 'have our account write the marks of a golden volume', 'inert', {
    value: templates({ metadata: { ...forgedChild, annotations: forgedAnnotations }, spec: gibibyte }),
  }),
  label(harvesterLabels.displayName, 'image', 'take the name of an image of others'),
  label(harvesterLabels.imported, 'machine', 'mount what is golden'),
  ...Object.values(cdiLabels).map((key) => label(key, 'claim', 'pass for a version of a golden image')),
  ...Object.values(cdiAnnotations).map((key) =>
    note(key, 'claim', 'pass for what a cron or a data volume of others keeps'),
  ),
  ...[cdiAnnotations.desiredDigest, cdiAnnotations.nextCronTime, cdiAnnotations.lastCronTime].map((key) =>
    note(key, 'cron', 'steer what others import'),
  ),
  ...Object.values(finalizers).map(finalizer),
];

const metadataOf = ({ map, key, value = loot }: MarkRule, on: Maker): Loose => {
  if (map === 'finalizers') return { finalizers: [key] };
  // A mark is most effective together with the others of a child of a golden image.
  const around = on === 'job' ? forgedChild : {};
  return {
    ...around,
    [map]: { ...(around[map] as object), [key]: key === annotations.ownerNamespace ? victim : value },
  };
};

const referrers: Readonly<Record<string, Loose>> = {
  'an image of another namespace': {
    kind: 'VirtualMachineImage',
    apiVersion: 'harvesterhci.io/v1beta1',
    name: loot,
    uid: 'uid-loot',
    controller: true,
  },
  'a data volume of another namespace': {
    kind: 'DataVolume',
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    name: loot,
    uid: 'uid-volume',
    controller: true,
  },
};

export const markRows: readonly ObjectRow[] = [
  ...markRules.flatMap((rule) =>
    rule.on.map((on): ObjectRow => {
      const object = makers[on](metadataOf(rule, on));
      const { attack, holds, right } = rule;
      const reference = rule.map === 'finalizers' ? `finalizer ${rule.key}` : `${rule.map}[${rule.key}]`;
      return { kind: kindOf(object), reference, attack, holds, right, object };
    }),
  ),
  ...Object.entries(referrers).flatMap(([what, reference]) =>
    (['claim', 'job'] as const).map((on): ObjectRow => {
      const forged = makers[on]({ ...forgedChild, ownerReferences: [reference] });
      return {
        kind: kindOf(forged),
        reference: 'ownerReferences',
        attack: `be a child of ${what}`,
        holds: on === 'claim' ? 'stripped' : 'inert',
        object: forged,
      };
    }),
  ),
  {
    kind: 'DataSource.cdi.kubevirt.io',
    reference: 'spec.source.pvc.namespace',
    attack: 'learn of what lies in another namespace, by a name that is moved there later',
    holds: 'asked',
    right: 'create datavolumes/source',
    before: dataSource(),
    object: { ...dataSource(), spec: { source: { pvc: { namespace: victim, name: loot } } } },
  },
  {
    kind: 'PersistentVolumeClaim',
    reference: 'spec.storageClassName',
    attack: 'make a copy of an image by its storage class',
    holds: 'asked',
    right: 'get virtualmachineimages',
    object: claim({}, { storageClassName: 'lh-victim' }),
  },
  ...workloadControllers.flatMap((by): readonly ObjectRow[] => [
    {
      kind: 'PersistentVolumeClaim',
      reference: 'spec.storageClassName',
      attack: 'make a copy of an image by its storage class, by a template of a StatefulSet or a pod',
      holds: 'asked',
      right: 'get virtualmachineimages',
      object: claim({}, { storageClassName: 'lh-victim' }),
      by,
    },
    {
      kind: 'PersistentVolumeClaim',
      reference: 'labels',
      attack: 'pass for what holds an image, by a template of a StatefulSet or a pod',
      holds: 'stripped',
      object: claim(forgedChild),
      by,
    },
  ]),
];

function kindOf({ apiVersion, kind }: Draft): string {
  const [group] = apiVersion.includes('/') ? apiVersion.split('/') : [''];
  return group === '' ? kind : `${kind}.${group}`;
}
