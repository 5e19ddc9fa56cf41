// Requests that a webhook matches: kinds, selectors and match conditions. Other requests are never sent to us, so that an outage of ours does
// not block pods, volumes or namespaces of others.
import type { AdmissionFunction, Webhook } from '#infra/generate/wiring.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, secrets, storageClasses } from '#shared/api/foreign/core.ts';
import { templateVersions } from '#shared/api/foreign/backup.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { harvesterAnnotations, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { clusterControllers, labels, ownAccountPrefix } from '#shared/api/names.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { encryptionKeyFields, neededFields } from '#shared/resources/protected/storage-class.ts';
import { goldenTypes, lockableTypes } from '#shared/resources/protected/golden.ts';
import { keptMarks, ownMarks } from '#shared/resources/protected/marks.ts';

interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

export interface WebhookScope {
  readonly types: readonly unknown[];
  readonly objectSelector?: object;
  readonly conditions: readonly MatchCondition[];
  /** Policy for an unavailable webhook. Default: depends on the function. */
  readonly failurePolicy?: 'Fail' | 'Ignore';
  /** For mutation. Default: invoked again if another webhook changes the object. */
  readonly reinvocationPolicy?: 'Never';
}

const live = { name: 'live', expression: '!has(object.metadata.deletionTimestamp)' };

const differs = (field: string): string =>
  `has(object.metadata.${field}) != has(oldObject.metadata.${field}) || ` +
  `(has(object.metadata.${field}) && object.metadata.${field} != oldObject.metadata.${field})`;

/** Deletions of objects, and updates of irrelevant fields, pass without a call. Mutation may set some labels. */
const objectConditions = (fn: AdmissionFunction): readonly MatchCondition[] => {
  const aspects = fn.name === 'mutate' ? ['annotations', 'labels'] : ['annotations'];
  const changes = ["request.operation == 'CREATE'", 'object.spec != oldObject.spec', ...aspects.map(differs)];
  return [live, { name: 'changed', expression: changes.join(' || ') }];
};

const notByUs = {
  name: 'not-by-us',
  expression: `!request.userInfo.username.startsWith('${ownAccountPrefix}')`,
};

/** What the cluster makes is looked at: it makes claims for anybody who writes a StatefulSet. */
const notTrusted: readonly MatchCondition[] = [
  {
    name: 'not-by-the-cluster',
    expression: `request.operation != 'DELETE' || !(request.userInfo.username in [${clusterControllers.map((user) => `'${user}'`).join(', ')}])`,
  },
  notByUs,
];

const mapOf = (object: string, map: string): string =>
  `(has(${object}.metadata.${map}) ? ${object}.metadata.${map} : {})`;

/** Our children are labelled; a claim that a CDI created refers to its data volume. */
const ownedByUs =
  `'${labels.ownerUid}' in ${mapOf('oldObject', 'labels')} || ` +
  '(has(oldObject.metadata.ownerReferences) && ' +
  `oldObject.metadata.ownerReferences.exists(r, r.kind == '${dataVolumeKind.type.kind}'))`;

const listOf = (keys: readonly string[]): string => `[${keys.map((key) => `'${key}'`).join(', ')}]`;

const keysDiffer = (map: 'labels' | 'annotations'): string => {
  const [now, before] = [mapOf('object', map), mapOf('oldObject', map)];
  return `${listOf(keptMarks[map])}.exists(k, (k in ${now}) != (k in ${before}) || (k in ${now} && ${now}[k] != ${before}[k]))`;
};

const keysCome = (map: 'labels' | 'annotations'): string =>
  `${listOf(ownMarks[map])}.exists(k, k in ${mapOf('object', map)})`;

const marksChange =
  `request.operation == 'CREATE' ? ${keysCome('labels')} || ${keysCome('annotations')} : ` +
  `${keysDiffer('labels')} || ${keysDiffer('annotations')}`;

/** Kinds of sources that a claim is a copy of. */
const copiedKinds = [persistentVolumeClaims.kind, volumeSnapshots.kind];

const ownedByTemplate =
  'has(oldObject.metadata.ownerReferences) && ' +
  `oldObject.metadata.ownerReferences.exists(r, r.kind == '${templateVersions.kind}')`;

/** Classes of images are named after them (`lh-<uid>`, as in Harvester). */
const ofImageClass = "has(object.spec.storageClassName) && object.spec.storageClassName.startsWith('lh-')";

const namesSource = ['dataSource', 'dataSourceRef']
  .map((field) => `(has(object.spec.${field}) && object.spec.${field}.kind in ${listOf(copiedKinds)})`)
  .join(' || ');

const machineChanged = "request.operation == 'CREATE' || object.spec != oldObject.spec || " + differs('annotations');
const machineUsesClaims =
  '(has(object.spec.template) && has(object.spec.template.spec.volumes) && ' +
  'object.spec.template.spec.volumes.exists(v, has(v.persistentVolumeClaim) || has(v.dataVolume))) || ' +
  `(has(object.metadata.annotations) && '${harvesterAnnotations.claimTemplates}' in object.metadata.annotations)`;

/** Data volumes are ours. Claims have marks if they are ours, sources of an image, or disks. */
const inUse =
  "request.resource.resource == 'datavolumes' || " +
  `'${labels.ownerUid}' in ${mapOf('oldObject', 'labels')} || ` +
  `'${labels.exporting}' in ${mapOf('oldObject', 'labels')} || ` +
  `'${harvesterAnnotations.ownedBy}' in ${mapOf('oldObject', 'annotations')} || ` +
  '(has(oldObject.metadata.ownerReferences) && ' +
  `oldObject.metadata.ownerReferences.exists(r, r.kind == '${virtualMachines.kind}'))`;

const dataOf = (object: string): string => `(has(${object}.data) ? ${object}.data : {})`;
const withKey = `${listOf(encryptionKeyFields)}.exists(k, k in ${dataOf('oldObject')})`;
const keyGoes =
  `request.operation == 'DELETE' || ${listOf(neededFields)}.exists(k, (k in ${dataOf('object')}) != (k in ${dataOf('oldObject')}) || ` +
  `(k in ${dataOf('object')} && ${dataOf('object')}[k] != ${dataOf('oldObject')}[k]))`;

export const scopeOf = (fn: AdmissionFunction, { on }: Webhook, objects: readonly ResourceType[]): WebhookScope =>
  (
    {
      objects: { types: objects, conditions: objectConditions(fn) },
      // A claim that was not completed would be too small for its disk: it is rejected during an outage, as with CDI.
      profiles: {
        types: [persistentVolumeClaims],
        objectSelector: { matchLabels: { [cdiLabels.applyProfile]: 'true' } },
        conditions: [notByUs],
        failurePolicy: 'Fail',
        // Space for the file system must be added only once.
        reinvocationPolicy: 'Never',
      },
      golden: { types: goldenTypes, conditions: [...notTrusted, { name: 'owned', expression: ownedByUs }] },
      marks: { types: goldenTypes, conditions: [notByUs, live, { name: 'marks', expression: marksChange }] },
      templates: {
        types: [harvesterImageKind.type],
        conditions: [...notTrusted, { name: 'of-a-template', expression: ownedByTemplate }],
      },
      classes: { types: [storageClasses], conditions: notTrusted },
      claims: {
        types: [persistentVolumeClaims],
        conditions: [notByUs, { name: 'of-an-image', expression: ofImageClass }],
      },
      // Nothing is lost where a disk is made from an obsolete version: restores of others do not wait for us.
      sources: {
        types: [persistentVolumeClaims],
        conditions: [notByUs, { name: 'with-a-source', expression: namesSource }],
        failurePolicy: 'Ignore',
      },
      // Machines must not be blocked by an outage of ours: permissions are checked again when their disks are created.
      machines: {
        types: [virtualMachines],
        conditions: [
          notByUs,
          live,
          { name: 'changed', expression: machineChanged },
          { name: 'with-claims', expression: machineUsesClaims },
        ],
        failurePolicy: 'Ignore',
      },
      disks: {
        types: [persistentVolumeClaims, dataVolumeKind.type],
        conditions: [...notTrusted, { name: 'in-use', expression: inUse }],
        failurePolicy: 'Ignore',
      },
      keys: {
        types: [secrets],
        conditions: [
          ...notTrusted,
          { name: 'with-a-key', expression: withKey },
          { name: 'that-goes', expression: keyGoes },
        ],
      },
      locks: {
        types: lockableTypes,
        objectSelector: { matchLabels: { [labels.protected]: 'true' } },
        conditions: notTrusted,
      },
      // An outage does no harm: a class is checked again when an image is created in it.
      'class-rules': { types: [storageClasses], conditions: [notByUs], failurePolicy: 'Ignore' },
    } satisfies Record<Webhook['on'], WebhookScope>
  )[on];
