// Answers reviews by the table of protected objects. Called by admission.ts.
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { clusterControllers, ownAccountPrefix } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { protectedRules } from '#shared/resources/protected/rules.ts';
import type { AdmissionAnswer } from '#shared/runtime/admission-function.ts';

/** Those who carry out what others decided, and functions of ours. The webhooks do not even ask about them. */
const isTrusted = ({ userInfo }: AdmissionRequest): boolean =>
  (clusterControllers as readonly string[]).includes(userInfo.username) ||
  userInfo.username.startsWith(ownAccountPrefix);

/** The first refusal, or the advice there is; `undefined`: no rule has anything to say. */
export const reviewProtected = async (
  request: AdmissionRequest,
  kube: KubeClient,
): Promise<AdmissionAnswer | undefined> => {
  if (isTrusted(request) || (request.subResource ?? '') !== '') return undefined;
  const { group, resource } = request.resource;
  const warnings: string[] = [];
  for (const { types, on, check } of protectedRules) {
    if (on !== request.operation || !types.some((type) => type.group === group && type.plural === resource)) continue;
    // In the order of the table: who may not use an image learns nothing else.
    // oxlint-disable-next-line no-await-in-loop
    const answer = await check(request, kube);
    if (answer.kind === 'refused') return answer;
    warnings.push(...(answer.warnings ?? []));
  }
  return warnings.length === 0 ? undefined : { kind: 'allowed', warnings };
};
