// Reads everything that explains where an object stands, of whichever kind we serve.
import { type KubeEvent, kubeEvents, pods } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import { type Registration, backends } from '#shared/backends/registry.ts';
import type { Found } from '#shared/catalogue/image.ts';
import { listIfAny } from '#shared/catalogue/objects.ts';
import type { Story } from '#shared/catalogue/story.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { reconcilerOf } from '#shared/resources/registry.ts';

const childTypesOf = ({ type }: Found): readonly ResourceType[] => {
  const reconciler = reconcilerOf({ apiVersion: apiVersionOf(type), kind: type.kind });
  const types = [...(reconciler?.watchedChildren(backends) ?? []).map((watchedChild) => watchedChild.type), pods];
  // Backends make some kinds alike, each would be listed as often.
  return [...new Map(types.map((type) => [`${type.group}/${type.plural}`, type])).values()];
};

/** What a product makes for a backend lies in the namespace of the product. */
const placeOf = (type: ResourceType, namespace: string | undefined): string | undefined => {
  const needs = Object.values(backends).flatMap((one: Registration) => (one.served ? (one.backend.needs ?? []) : []));
  const theirs = needs.find((need) => need.type.plural === type.plural && need.type.group === type.group);
  return type.namespaced ? (theirs?.namespace ?? namespace) : undefined;
};

export const gather = async (kube: KubeClient, found: Found): Promise<Story> => {
  const { namespace, uid } = found.image.metadata;
  const selector = `${labels.ownerUid}=${uid}`;
  const lists = await Promise.all(
    childTypesOf(found).map((type) => listIfAny(kube, type, placeOf(type, namespace), selector)),
  );
  const children = lists.flat();
  const concerned = new Set([uid, ...children.map(({ metadata }) => metadata.uid)]);
  const events: readonly KubeEvent[] = await listIfAny(kube, kubeEvents, namespace);
  return { found, children, events: events.filter(({ involvedObject }) => concerned.has(involvedObject.uid)) };
};
