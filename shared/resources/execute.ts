// Executes the actions of a plan. Decides nothing.
import { type Job, jobs } from '#shared/api/foreign/core.ts';
import { checkRole, labels } from '#shared/api/names.ts';
import type { Action } from '#shared/populate/actions.ts';
import { startTransfer } from '#shared/populate/job/start-transfer.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict } from '#shared/runtime/errors.ts';

/**
 * In order, up to the first failure. Conflict means that the observed state is outdated (a name was taken, an object was replaced): the rest of
 * the plan is void, read and plan again.
 */
export const execute = async (kube: KubeClient, actions: readonly Action[]): Promise<void> => {
  for (const action of actions) {
    // Sequential: plans rely on the order in case of a crash.
    await carryOut(kube, action);
  }
};

const carryOut = async (kube: KubeClient, action: Action): Promise<void> => {
  switch (action.do) {
    case 'create':
      await create(kube, action).catch((error: unknown) => {
        if (action.mayExist !== true || !isConflict(error)) throw error;
      });
      return;
    case 'patch':
      await kube.mergePatch(action.type, action.key, withVersion(action.patch, action.resourceVersion));
      return;
    case 'delete':
      await kube.delete(action.type, action.key, { uid: action.uid, propagation: action.propagation });
      return;
  }
};

const create = async (
  kube: KubeClient,
  { type, object }: Extract<Action, { readonly do: 'create' }>,
): Promise<void> => {
  const isJob = type.plural === jobs.plural && type.group === jobs.group;
  if (isJob && object.metadata.labels?.[labels.role] !== checkRole) return startTransfer(kube, object as Job);
  await kube.create(type, object);
};

const withVersion = (patch: object, resourceVersion: string | undefined): object => {
  if (resourceVersion === undefined) return patch;
  const { metadata = {} } = patch as { readonly metadata?: object };
  return { ...patch, metadata: { ...metadata, resourceVersion } };
};
