// Whether a caller may do something to a target. A token of ours was permitted when it was issued, for its target alone.
import { type Wish, isAllowed } from '#shared/access/sources.ts';
import { grantFor } from '#shared/access/sources.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Caller } from '#shared/exchange/access/caller.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { type TargetName, downloaderResource, targetText, uploadTokenResource } from '#shared/exchange/target-name.ts';

export type Deed = 'upload' | 'download';

/** To send bytes is to change an image; into a volume it takes CDI's right. */
const uploadWish = ({ plural, namespace, name }: TargetName): Wish =>
  plural === 'virtualmachineimages'
    ? { verb: 'update', group: 'harvesterhci.io', resource: plural, namespace, name }
    : { verb: 'create', ...uploadTokenResource, namespace };

/** To see that a disk is there is not to have it: it takes Harvester's right to a download, or CDI's to make a copy. */
const mayDownload = async (
  kube: KubeClient,
  { requester }: Caller & { by: 'cluster' },
  { plural, namespace, name }: TargetName,
): Promise<boolean> => {
  if (plural !== 'virtualmachineimages')
    return (await grantFor(kube, requester, { use: 'clone-claim', namespace, name })) !== undefined;
  return isAllowed(kube, requester, { verb: 'create', ...downloaderResource, namespace });
};

/** Throws a Problem (403). Says nothing of whether the target exists: ask this before you look. */
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
    `${username} may not ${deed} ${targetText(target)}: ask for a role that lets you`,
  );
};
