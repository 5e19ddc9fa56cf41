// The rule table, one rule per line. Called by admission.ts; infra/generate/wiring.ts defines the requests that get here.
import { serviceAccountRequester } from '#shared/access/permissions.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { virtualMachinePvcKind, virtualMachineVolumeKind } from '#shared/api/hypercloud/volume.ts';
import { isTrue } from '#shared/api/conditions.ts';
import { templateVersions } from '#shared/api/foreign/backup.ts';
import { namespaces, persistentVolumeClaims, secrets, storageClasses } from '#shared/api/foreign/core.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations, clusterControllers, labels, ownAccountPrefix, workloadControllers } from '#shared/api/names.ts';
import type { KubeObject, ObjectMeta, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { reviewUses } from '#shared/resources/access-rule.ts';
import { imagesOfClasses } from '#shared/resources/image-rules.ts';
import { checkClass } from './class-rules.ts';
import { goldenTypes, keepGolden, keepLocked, lockableTypes, whatOf } from './golden.ts';
import { keepGoldenUnmounted, keepMachineDisk, mayUseImages } from './machine.ts';
import { keepMarks, withoutForeignMarks } from './marks.ts';
import { keepFromObsolete } from './obsolete.ts';
import { keepClassInUse, keepEncryptionKey, keepReservedClass } from './storage-class.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

// The form of rules about objects of other products that an image or its users depend on.

interface ProtectedRule {
  /** Unique in its table; RULES.md has a row for each. */
  readonly id: string;
  readonly types: readonly ResourceType[];
  readonly on: AdmissionRequest['operation'];
  /** One look-up or one page for each named object at most. Throws AppErrors of the client. */
  readonly check: (request: AdmissionRequest, kube: KubeClient) => Promise<AdmissionAnswer> | AdmissionAnswer;
}

// An image that is used by a version of a virtual machine template must not be deleted while that version exists (protected/image-of-template).

/** Limit of owners that are checked; more than one is rare. */
const mostOwners = 8;

const hasClass = (image: KubeObject | undefined): boolean =>
  ((image as HarvesterImage | undefined)?.status?.storageClassName ?? '') !== '';

const keepImageOfTemplate = async (
  { oldObject, namespace = '' }: AdmissionRequest,
  kube: KubeClient,
): Promise<AdmissionAnswer> => {
  // Nothing can have been made from it.
  if (!hasClass(oldObject)) return allowed;
  const owners = (oldObject?.metadata.ownerReferences ?? []).filter(({ kind }) => kind === templateVersions.kind);
  const found = await Promise.all(
    owners.slice(0, mostOwners).map(async ({ name, uid }) => {
      const version = await kube.get(templateVersions, { namespace, name });
      return version?.metadata.uid === uid && version.metadata.deletionTimestamp === undefined ? [name] : [];
    }),
  );
  const users = found.flat();
  if (users.length === 0) return allowed;
  const message = `the image is used by ${templateVersions.kind} ${users.join(', ')}: delete it first`;
  return refused('Forbidden', [], message);
};

// A claim must not be deleted while an image is exported from it (protected/exported-claim). It is marked when the export starts
// (`shared/backends/source-claim.ts`).

/** Whether that image is still being exported from this claim. An image with the same name and another UID is another image. */
const isBeingMade = (image: HarvesterImage | undefined, uid: string, claim: ObjectMeta | undefined): boolean => {
  if (image?.metadata.uid !== uid || image.metadata.deletionTimestamp !== undefined) return false;
  const { pvcName, pvcNamespace } = image.spec;
  if (pvcName !== claim?.name || pvcNamespace !== claim?.namespace) return false;
  const conditions = image.status?.conditions;
  return !isTrue(conditions, 'Imported') && !isTrue(conditions, 'RetryLimitExceeded');
};

const keepExported = async (request: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const { metadata } = request.oldObject ?? {};
  const uid = metadata?.labels?.[labels.exporting];
  const [namespace = '', name = ''] = (metadata?.annotations?.[annotations.exporting] ?? '').split('/');
  if (uid === undefined || name === '') return allowed;
  if (!isBeingMade(await kube.get(harvesterImageKind.type, { namespace, name }), uid, metadata)) return allowed;
  const message = `${whatOf(request)} is being exported to the image ${namespace}/${name}: wait for its end, or delete that image first`;
  return refused('Forbidden', [], message);
};

// A claim in the storage class of an image is a copy of that image (protected/image-class-allowed).

/** The author of a StatefulSet or a pod is unknown once its claims are created: the workloads of the namespace use them, so their permissions count. */
const mayUseClass = async (request: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const named = request.object === undefined ? [] : await imagesOfClasses(request.object, kube);
  const { namespace = '', userInfo } = request;
  if (!workloadControllers.includes(userInfo.username)) return (await reviewUses(request, named, [], kube)) ?? allowed;
  const foreign = named.filter((image) => image.namespace !== namespace);
  return (await reviewUses({ userInfo: serviceAccountRequester(namespace, 'default') }, foreign, [], kube)) ?? allowed;
};

const machines = [virtualMachines];
const imageVolumes = [virtualMachineVolumeKind.type, virtualMachinePvcKind.type];
const classes = [storageClasses];

export const protectedRules: readonly ProtectedRule[] = [
  { id: 'locked', types: lockableTypes, on: 'DELETE', check: keepLocked },
  { id: 'image-of-template', types: [harvesterImageKind.type], on: 'DELETE', check: keepImageOfTemplate },
  { id: 'image-class-allowed', types: [persistentVolumeClaims], on: 'CREATE', check: mayUseClass },
  { id: 'marks-are-ours', types: goldenTypes, on: 'CREATE', check: keepMarks },
  { id: 'marks-are-ours', types: goldenTypes, on: 'UPDATE', check: keepMarks },
  { id: 'golden-volume-in-use', types: goldenTypes, on: 'DELETE', check: keepGolden },
  { id: 'golden-volume-unmounted', types: machines, on: 'CREATE', check: keepGoldenUnmounted },
  { id: 'golden-volume-unmounted', types: machines, on: 'UPDATE', check: keepGoldenUnmounted },
  { id: 'machine-image-allowed', types: machines, on: 'CREATE', check: mayUseImages },
  { id: 'machine-image-allowed', types: machines, on: 'UPDATE', check: mayUseImages },
  { id: 'class-in-use', types: classes, on: 'DELETE', check: keepClassInUse },
  { id: 'reserved-class', types: classes, on: 'DELETE', check: keepReservedClass },
  { id: 'exported-claim', types: [persistentVolumeClaims], on: 'DELETE', check: keepExported },
  {
    id: 'machine-disk',
    types: [persistentVolumeClaims, dataVolumeKind.type],
    on: 'DELETE',
    check: keepMachineDisk,
  },
  {
    id: 'obsolete-version',
    types: [persistentVolumeClaims, dataVolumeKind.type, ...imageVolumes, ...machines],
    on: 'CREATE',
    check: keepFromObsolete,
  },
  { id: 'obsolete-version', types: machines, on: 'UPDATE', check: keepFromObsolete },
  // The table of class-rules.ts.
  { id: 'class', types: classes, on: 'CREATE', check: checkClass },
  { id: 'class', types: classes, on: 'UPDATE', check: checkClass },
  { id: 'encryption-key-in-use', types: [secrets], on: 'UPDATE', check: keepEncryptionKey },
  { id: 'encryption-key-in-use', types: [secrets], on: 'DELETE', check: keepEncryptionKey },
];

// Answers admission reviews by the table of protected objects.

/**
 * Controllers that delete on behalf of others, and our own functions. The webhooks do not match their requests. Objects that controllers create
 * are checked: any user may write a StatefulSet.
 */
const isTrusted = ({ userInfo, operation }: AdmissionRequest): boolean =>
  (operation === 'DELETE' && (clusterControllers as readonly string[]).includes(userInfo.username)) ||
  userInfo.username.startsWith(ownAccountPrefix);

const isAbout = ({ resource }: AdmissionRequest, types: readonly ResourceType[]): boolean =>
  types.some(({ group, plural }) => group === resource.group && plural === resource.resource);

/** Objects of a namespace that is being deleted may always be deleted, so that it can end. */
const isEnding = async ({ operation, namespace = '' }: AdmissionRequest, kube: KubeClient): Promise<boolean> => {
  if (operation !== 'DELETE' || namespace === '') return false;
  return (await kube.get(namespaces, { name: namespace }))?.metadata.deletionTimestamp !== undefined;
};

/** The object without the marks that its author may not write. */
export const unmarked = async (request: AdmissionRequest, kube: KubeClient): Promise<KubeObject | undefined> => {
  const { object, operation, subResource = '' } = request;
  const isAsked = operation === 'CREATE' && subResource === '' && isAbout(request, goldenTypes);
  return object === undefined || !isAsked || isTrusted(request) ? object : withoutForeignMarks(object, kube);
};

/** The first rejection, or all warnings; `undefined`: no rule applies. */
export const reviewProtected = async (
  request: AdmissionRequest,
  kube: KubeClient,
): Promise<AdmissionAnswer | undefined> => {
  if (isTrusted(request) || (request.subResource ?? '') !== '') return undefined;
  const warnings: string[] = [];
  for (const { types, on, check } of protectedRules) {
    if (on !== request.operation || !isAbout(request, types)) continue;
    // In the order of the table: users without permission for an image learn nothing else.
    const answer = await check(request, kube);
    if (answer.kind === 'refused') return (await isEnding(request, kube)) ? undefined : answer;
    warnings.push(...(answer.warnings ?? []));
  }
  return warnings.length === 0 ? undefined : { kind: 'allowed', warnings };
};
