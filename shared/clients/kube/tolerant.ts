// Requests of which some failures are expected: a kind that the cluster does not serve has no objects, and another client may have been first.
import { namespaces } from '#shared/api/foreign/core.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient, ListOptions } from '#shared/clients/kube/client.ts';
import { isConflict, isNotFound } from '#shared/runtime/errors.ts';

/** The result of `work`; `undefined` if it fails as expected. Other errors are thrown. */
export const tolerate = async <T>(
  work: Promise<T>,
  isExpected: (error: unknown) => boolean,
): Promise<T | undefined> => {
  try {
    return await work;
  } catch (error) {
    if (!isExpected(error)) throw error;
    return undefined;
  }
};

/** Another client has changed or deleted the object. */
export const isChangedMeanwhile = (error: unknown): boolean => isConflict(error) || isNotFound(error);

/** Every object, page by page; none if the kind is not served. */
export async function* eachIfServed<T extends KubeObject>(
  kube: Pick<KubeClient, 'listAll'>,
  type: ResourceType<T>,
  options: ListOptions = {},
): AsyncIterable<T> {
  try {
    yield* kube.listAll(type, options);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** All of them. */
export const allIfServed = async <T extends KubeObject>(
  ...request: Parameters<typeof eachIfServed<T>>
): Promise<readonly T[]> => Array.fromAsync(eachIfServed(...request));

/** The first page. */
export const listIfServed = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  options?: ListOptions,
): Promise<readonly T[]> => (await tolerate(kube.list(type, options), isNotFound))?.items ?? [];

export const ensureNamespace = async (kube: KubeClient, name: string): Promise<void> => {
  if ((await kube.get(namespaces, { name })) !== undefined) return;
  const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  await tolerate(kube.create(namespaces, object), isConflict);
};

/** Reads, decides and writes again, up to `rounds` times in all, while another client is first. Then throws its error. */
export const retryConflicts = async <T>(
  rounds: number,
  work: (round: number) => Promise<T>,
  isExpected: (error: unknown) => boolean = isConflict,
): Promise<T> => {
  for (let round = 1; ; round += 1) {
    try {
      return await work(round);
    } catch (error) {
      if (!isExpected(error) || round === rounds) throw error;
    }
  }
};
