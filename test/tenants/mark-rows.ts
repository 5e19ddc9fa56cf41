// What a tenant writes to use the marks: objects with each of them, and with owner references and storage classes of others.
import { annotations, labels, workloadControllers } from '#shared/api/names.ts';
import type { Draft, Loose } from '#test/support/admission.ts';
import { claim, dataSource } from '#test/tenants/drafts.ts';
import { type Maker, type MarkRule, forgedChild, makers, markRules } from '#test/tenants/marks.ts';
import { type ObjectRow, loot, victim } from '#test/tenants/row.ts';

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

/** The same for an object that they have already. Where grants are recorded, one is set to what it was; other marks are only refused. */
const byUpdate = (row: ObjectRow, before: Draft): readonly ObjectRow[] => {
  if (row.holds !== 'stripped') return [row];
  const isRecorded = !['PersistentVolumeClaim', 'VolumeSnapshot'].includes(before.kind);
  const holds = isRecorded && row.reference === `annotations[${annotations.granted}]` ? 'stripped' : 'refused';
  return [row, { ...row, attack: `${row.attack}, by an update`, holds, before }];
};

export const markRows: readonly ObjectRow[] = [
  ...markRules.flatMap((rule) =>
    rule.on.flatMap((on): readonly ObjectRow[] => {
      const object = makers[on](metadataOf(rule, on));
      const { attack, holds, right } = rule;
      const reference = rule.map === 'finalizers' ? `finalizer ${rule.key}` : `${rule.map}[${rule.key}]`;
      return byUpdate({ kind: kindOf(object), reference, attack, holds, right, object }, makers[on]());
    }),
  ),
  ...Object.entries(referrers).flatMap(([what, reference]) =>
    (['claim', 'job'] as const).flatMap((on): readonly ObjectRow[] => {
      const forged = makers[on]({ ...forgedChild, ownerReferences: [reference] });
      const row: ObjectRow = {
        kind: kindOf(forged),
        reference: 'ownerReferences',
        attack: `be a child of ${what}`,
        holds: on === 'claim' ? 'stripped' : 'inert',
        object: forged,
      };
      // The reference alone does nothing: it is the marks that are refused.
      const marked = { ...row, reference: `labels[${labels.ownerUid}]` };
      return [row, ...byUpdate(marked, makers[on]({ ownerReferences: [reference] })).slice(1)];
    }),
  ),
  {
    kind: 'DataSource.cdi.kubevirt.io',
    reference: 'spec.source.pvc.namespace',
    attack: 'learn about an object of another namespace, by a name that is moved there later',
    holds: 'asked',
    right: 'create datavolumes/source',
    before: dataSource(),
    object: { ...dataSource(), spec: { source: { pvc: { namespace: victim, name: loot } } } },
  },
  {
    kind: 'PersistentVolumeClaim',
    reference: 'spec.storageClassName',
    attack: 'copy an image of another tenant by its storage class',
    holds: 'asked',
    right: 'get virtualmachineimages',
    object: claim({}, { storageClassName: 'lh-victim' }),
  },
  ...workloadControllers.flatMap((by): readonly ObjectRow[] => [
    {
      kind: 'PersistentVolumeClaim',
      reference: 'spec.storageClassName',
      attack: 'copy an image of another tenant by its storage class, through a template of a StatefulSet or a pod',
      holds: 'asked',
      right: 'get virtualmachineimages',
      object: claim({}, { storageClassName: 'lh-victim' }),
      by,
    },
    {
      kind: 'PersistentVolumeClaim',
      reference: 'labels',
      attack: 'be treated as a golden volume, through a template of a StatefulSet or a pod',
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
