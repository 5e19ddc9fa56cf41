// Creates what a command line asks for. The most common mistake is a name that is taken already: the error says how to go on.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Conflict, isConflict, messageOf } from '#shared/runtime/errors.ts';

interface Creating {
  /** What is created, with its name: `image jammy`. */
  readonly what: string;
  /** What to do where it is there already. */
  readonly otherwise: string;
  readonly dryRun?: boolean;
}

/** Throws Conflict where the name is taken. Admission answers with conflicts of its own, in its own words. */
export const createNew = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  object: T,
  { what, otherwise, dryRun = false }: Creating,
): Promise<T> => {
  try {
    return await kube.create(type, object, { dryRun });
  } catch (error) {
    if (!isConflict(error) || !messageOf(error).endsWith(' already exists')) throw error;
    throw new Conflict(`there is ${what} already: ${otherwise}`, { cause: error });
  }
};
