// Answers admission reviews by the table of protected objects. Called by admission.ts.
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { clusterControllers, ownAccountPrefix } from '#shared/api/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import { goldenTypes } from '#shared/resources/protected/golden.ts';
import { withoutForeignMarks } from '#shared/resources/protected/marks.ts';
import { protectedRules } from '#shared/resources/protected/rules.ts';
import type { AdmissionAnswer } from '#shared/runtime/admission-function.ts';

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
    // oxlint-disable-next-line no-await-in-loop
    const answer = await check(request, kube);
    if (answer.kind === 'refused') return (await isEnding(request, kube)) ? undefined : answer;
    warnings.push(...(answer.warnings ?? []));
  }
  return warnings.length === 0 ? undefined : { kind: 'allowed', warnings };
};
