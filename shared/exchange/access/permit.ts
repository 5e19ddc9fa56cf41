// Authorizes a caller for an operation on a target. A token of the transfer function was authorized when it was issued, for its target only.
import { type Wish, isAllowed } from '#shared/access/sources.ts';
import { grantFor } from '#shared/access/sources.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Caller } from '#shared/exchange/access/caller.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { type TargetName, downloaderResource, targetText, uploadTokenResource } from '#shared/exchange/target-name.ts';

export type Deed = 'upload' | 'download';

/** An upload changes an image, so it needs that permission; for a volume it needs CDI's. */
const uploadWish = ({ plural, namespace, name }: TargetName): Wish =>
  plural === 'virtualmachineimages'
    ? { verb: 'update', group: 'harvesterhci.io', resource: plural, namespace, name }
    : { verb: 'create', ...uploadTokenResource, namespace };

/** Read access to a disk object does not include its data: a download needs Harvester's permission for downloads, or CDI's for copies. */
const mayDownload = async (
  kube: KubeClient,
  { requester }: Caller & { by: 'cluster' },
  { plural, namespace, name }: TargetName,
): Promise<boolean> => {
  if (plural !== 'virtualmachineimages')
    return (await grantFor(kube, requester, { use: 'clone-claim', namespace, name })) !== undefined;
  return isAllowed(kube, requester, { verb: 'create', ...downloaderResource, namespace });
};

/** Throws a Problem (403). Does not reveal whether the target exists: call it before the look-up. */
export const permit = async (kube: KubeClient, caller: Caller, deed: Deed, target: TargetName): Promise<void> => {
  if (caller.by === 'token') {
    const { verb, target: text } = caller.claims;
    if (verb === deed && text === targetText(target)) return;
    throw new Problem(
      403,
      'Forbidden',
      `this token is for ${verb} of ${text}, not for ${deed} of ${targetText(target)}`,
    );
  }
  const allowed =
    deed === 'upload'
      ? await isAllowed(kube, caller.requester, uploadWish(target))
      : await mayDownload(kube, caller, target);
  if (allowed) return;
  const { username } = caller.requester;
  throw new Problem(
    403,
    'Forbidden',
    `${username} may not ${deed} ${targetText(target)}: ask for a role that allows it`,
  );
};
