// Applies manifests to the local cluster. Called by cluster.ts and tests.
import { setTimeout as sleep } from 'node:timers/promises';
import { type CustomResourceDefinition, crds } from '#shared/api/foreign/kubernetes.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { InvalidInput, Unavailable, isNotFound } from '#shared/runtime/errors.ts';
import { discoverVersion } from '#local-cluster/controllers/discovery.ts';

const applying = { fieldManager: 'bullion-local', force: true } as const;

/** Applies the CRDs and waits until their kinds are served. Throws Unavailable if one is not after `seconds`. */
export const installCrds = async (
  kube: KubeClient,
  definitions: readonly KubeObject[],
  seconds = 30,
): Promise<void> => {
  for (const definition of definitions) await kube.apply(crds, definition, applying);
  const deadline = Date.now() + seconds * 1000;
  for (const { metadata } of definitions) {
    while (!isEstablished(await kube.get(crds, { name: metadata.name }))) {
      if (Date.now() > deadline)
        throw new Unavailable(`the kinds of ${metadata.name} are not served after ${seconds} s`);
      await sleep(50);
    }
  }
};

const isEstablished = (crd: CustomResourceDefinition | undefined): boolean =>
  crd?.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True') ?? false;

/** Applies objects of any served kind, in the given order. Throws InvalidInput for a kind that is not served. */
export const applyObjects = async (kube: KubeClient, objects: readonly KubeObject[]): Promise<void> => {
  // Only for their versions: full discovery takes one request per API group.
  const served = new Map<string, readonly ResourceType[]>();
  for (const object of objects) {
    const [version = '', group = ''] = object.apiVersion.split('/').toReversed();
    const types = served.get(object.apiVersion) ?? (await servedIn(kube, group, version));
    served.set(object.apiVersion, types);
    const type = types.find(({ kind }) => kind === object.kind);
    if (type === undefined) throw new InvalidInput(`${object.apiVersion} ${object.kind} is not served by this cluster`);
    await kube.apply(type, object, applying);
  }
};

const servedIn = async (kube: KubeClient, group: string, version: string): Promise<readonly ResourceType[]> => {
  try {
    return await discoverVersion(kube, group, version);
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
};
