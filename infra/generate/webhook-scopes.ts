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
import { encryptionKeyField } from '#shared/resources/protected/encryption-key.ts';
import { goldenMarks } from '#shared/resources/protected/golden.ts';
import { goldenKinds } from '#shared/resources/protected/rules.ts';

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

const notTrusted: readonly MatchCondition[] = [
  {
    name: 'not-by-the-cluster',
    expression: `!(request.userInfo.username in [${clusterControllers.map((user) => `'${user}'`).join(', ')}])`,
  },
  notByUs,
];

/** Told by label, on the object as it is or as it was. */
const goldenSelector = {
  matchExpressions: [
    { key: labels.ownerUid, operator: 'Exists' },
    { key: labels.role, operator: 'In', values: ['volume', 'snapshot', 'class'] },
  ],
};

const mapOf = (object: string, map: string): string =>
  `(has(${object}.metadata.${map}) ? ${object}.metadata.${map} : {})`;

const keysDiffer = (map: 'labels' | 'annotations'): string => {
  const [now, before] = [mapOf('object', map), mapOf('oldObject', map)];
  const keys = goldenMarks[map].map((key) => `'${key}'`).join(', ');
  return `[${keys}].exists(k, (k in ${now}) != (k in ${before}) || (k in ${now} && ${now}[k] != ${before}[k]))`;
};

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

const withKey = `has(oldObject.data) && '${encryptionKeyField}' in oldObject.data`;

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
      golden: { types: goldenKinds, objectSelector: goldenSelector, conditions: notTrusted },
      marks: {
        types: goldenKinds,
        objectSelector: goldenSelector,
        conditions: [
          ...notTrusted,
          live,
          { name: 'marks', expression: `${keysDiffer('labels')} || ${keysDiffer('annotations')}` },
        ],
      },
      templates: {
        types: [harvesterImageKind.type],
        conditions: [...notTrusted, { name: 'of-a-template', expression: ownedByTemplate }],
      },
      classes: { types: [storageClasses], conditions: notTrusted },
      claims: {
        types: [persistentVolumeClaims],
        conditions: [...notTrusted, { name: 'of-an-image', expression: ofImageClass }],
      },
      // Nobody's machine is held up because we are away: what it may mount is asked again where its disks are made.
      machines: {
        types: [virtualMachines],
        conditions: [
          ...notTrusted,
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
      keys: { types: [secrets], conditions: [...notTrusted, { name: 'with-a-key', expression: withKey }] },
      // Nothing of a class is lost while we are away: it is looked at again where an image is to be kept in it.
      'class-rules': { types: [storageClasses], conditions: notTrusted, failurePolicy: 'Ignore' },
    } satisfies Record<Webhook['on'], WebhookScope>
  )[on];
