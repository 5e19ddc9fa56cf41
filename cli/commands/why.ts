// `bullion why <image>`: reads everything that tells where an image stands.
import { type Call, type ClusterCommand, exitCodes } from '#cli/command.ts';
import { type Found, findImage } from '#cli/image.ts';
import { outputOf, outputOption, printedList } from '#cli/output.ts';
import { type Story, tellStory } from '#cli/why.ts';
import { type KubeEvent, kubeEvents, pods } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { type KubeObject, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import { backends } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { reconcilerOf } from '#shared/resources/registry.ts';
import { Denied, isNotFound } from '#shared/runtime/errors.ts';

/** Kinds this cluster lacks, or this person may not see, have nothing to tell. */
const listIfAny = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  namespace: string | undefined,
  labelSelector?: string,
): Promise<readonly T[]> => {
  const found: T[] = [];
  try {
    for await (const object of kube.listAll(type, { namespace, labelSelector })) found.push(object);
  } catch (error) {
    if (!isNotFound(error) && !(error instanceof Denied)) throw error;
  }
  return found;
};

const childTypesOf = ({ type }: Found): readonly ResourceType[] => {
  const reconciler = reconcilerOf({ apiVersion: apiVersionOf(type), kind: type.kind });
  const types = [
    ...(reconciler?.watchedChildren(backends) ?? []).map((watchedChild) => watchedChild.type),
    pods as unknown as ResourceType,
  ];
  // Backends make some kinds alike, each would be listed as often.
  return [...new Map(types.map((type) => [`${type.group}/${type.plural}`, type])).values()];
};

const gather = async (kube: KubeClient, found: Found): Promise<Story> => {
  const { namespace, uid } = found.image.metadata;
  const selector = `${labels.ownerUid}=${uid}`;
  const lists = await Promise.all(
    childTypesOf(found).map((type) => listIfAny(kube, type, type.namespaced ? namespace : undefined, selector)),
  );
  const children = lists.flat();
  const concerned = new Set([uid, ...children.map(({ metadata }) => metadata.uid)]);
  const events: readonly KubeEvent[] = await listIfAny(kube, kubeEvents, namespace);
  return { found, children, events: events.filter(({ involvedObject }) => concerned.has(involvedObject.uid)) };
};

const run = async ({ kube, namespace, positionals, values, terminal }: Call) => {
  const found = await findImage(kube, namespace, positionals[0] ?? '');
  const story = await gather(kube, found);
  const format = outputOf(values);
  const printed = printedList([story.found.image, ...story.children, ...story.events], format);
  terminal.out(printed ?? tellStory(story, terminal.now(), { hasAllEvents: format === 'wide' }));
  return exitCodes.done;
};

export const whyCommand: ClusterCommand = {
  name: 'why',
  arguments: '<image>',
  summary: 'Says on one screen where an image stands, why, and what comes next.',
  more: 'With -o json or yaml: the image, what was made for it, and the events of both, as one list. With -o wide: every event, not the newest alone.',
  options: outputOption,
  completes: 'images',
  run,
};
