// Which requests reach a webhook: kinds, selectors and match conditions. Whatever is not said here never leaves the API server, so that an
// outage of ours blocks nobody's pods, volumes or namespaces.
import type { AdmissionFunction, Webhook } from '#infra/generate/wiring.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, secrets, storageClasses } from '#shared/api/foreign/core.ts';
import { templateVersions } from '#shared/api/foreign/harvester.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { harvesterAnnotations, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { clusterControllers, labels, ownAccountPrefix } from '#shared/api/names.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { encryptionKeyFields, neededFields } from '#shared/resources/protected/encryption-key.ts';
import { goldenTypes } from '#shared/resources/protected/golden.ts';
import { keptMarks, ownMarks } from '#shared/resources/protected/marks.ts';

interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

export interface WebhookScope {
  readonly types: readonly unknown[];
  readonly objectSelector?: object;
  readonly conditions: readonly MatchCondition[];
  /** What happens when nobody answers; left out: what suits the function. */
  readonly failurePolicy?: 'Fail' | 'Ignore';
  /** Of mutation; left out: again, where another webhook changes the object. */
  readonly reinvocationPolicy?: 'Never';
}

const live = { name: 'live', expression: '!has(object.metadata.deletionTimestamp)' };

const differs = (field: string): string =>
  `has(object.metadata.${field}) != has(oldObject.metadata.${field}) || ` +
  `(has(object.metadata.${field}) && object.metadata.${field} != oldObject.metadata.${field})`;

/** Deleting objects, and updates of nothing that is looked at, pass without a call. A label may be one that mutation keeps. */
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

/** Children of ours say whose they are; a claim that a CDI made refers to its data volume. */
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

const ownedByTemplate =
  'has(oldObject.metadata.ownerReferences) && ' +
  `oldObject.metadata.ownerReferences.exists(r, r.kind == '${templateVersions.kind}')`;

/** Classes of images are named after them (`lh-<uid>`, as Harvester has them). */
const ofImageClass = "has(object.spec.storageClassName) && object.spec.storageClassName.startsWith('lh-')";

const machineChanged =
  "request.operation == 'CREATE' || object.spec.template != oldObject.spec.template || " + differs('annotations');
const machineUsesClaims =
  '(has(object.spec.template) && has(object.spec.template.spec.volumes) && ' +
  'object.spec.template.spec.volumes.exists(v, has(v.persistentVolumeClaim) || has(v.dataVolume))) || ' +
  `(has(object.metadata.annotations) && '${harvesterAnnotations.claimTemplates}' in object.metadata.annotations)`;

/** Data volumes are ours. Claims say themselves that they are ours, what is made from them, or whose disk they are. */
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
      // A claim that is not completed keeps a size that its disk has no room in: it is refused while nobody can, as a CDI that is away has it.
      profiles: {
        types: [persistentVolumeClaims],
        objectSelector: { matchLabels: { [cdiLabels.applyProfile]: 'true' } },
        conditions: [notByUs],
        failurePolicy: 'Fail',
        // Room for the file system is added once.
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
      // Nobody's machine is held up because we are away: what it may mount is asked again where its disks are made.
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
      // Nothing of a class is lost while we are away: it is looked at again where an image is to be kept in it.
      'class-rules': { types: [storageClasses], conditions: [notByUs], failurePolicy: 'Ignore' },
    } satisfies Record<Webhook['on'], WebhookScope>
  )[on];
