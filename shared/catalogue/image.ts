// Images of both groups read as one thing, and found by the name a person types.
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { CommonImageStatus } from '#shared/api/image-status.ts';
import { findCondition } from '#shared/api/conditions.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { type KubeClient, type ListOptions } from '#shared/clients/kube/client.ts';
import { eachIfServed } from '#shared/clients/kube/tolerant.ts';
import { InvalidInput, NotFound } from '#shared/runtime/errors.ts';

/** What the command line reads of an image, whatever its group. */
export interface AnyImage extends KubeObject {
  readonly spec?: object | undefined;
  readonly status?: CommonImageStatus & { readonly phase?: string | undefined };
}

/** By the prefix that tells two images of one name apart: `harvester/jammy`. */
export const imageTypes: Readonly<Record<ImageGroup, ResourceType<AnyImage>>> = {
  hypercloud: hyperCloudImageKind.type,
  harvester: harvesterImageKind.type,
};
export type ImageGroup = 'hypercloud' | 'harvester';
export const imageGroups = Object.keys(imageTypes) as readonly ImageGroup[];

export interface Found {
  readonly type: ResourceType<AnyImage>;
  readonly image: AnyImage;
}

export const isImage = ({ group, kind }: Pick<ResourceType, 'group' | 'kind'>): boolean =>
  Object.values(imageTypes).some((type) => type.group === group && type.kind === kind);

/** A kind the cluster does not have holds nothing; one that may not be listed is an error. */
export const listImages = async (kube: KubeClient, options: ListOptions): Promise<readonly Found[]> => {
  const found: Found[] = [];
  for (const type of Object.values(imageTypes))
    for await (const image of eachIfServed(kube, type, options)) found.push({ type, image });
  return found.toSorted((a, b) => orderOf(a).localeCompare(orderOf(b)));
};

const orderOf = ({ image: { metadata } }: Found): string => `${metadata.namespace}/${metadata.name}`;

/** `<name>`, or `<group>/<name>` where both groups have one. NotFound, or InvalidInput when it is not clear which is meant. */
export const findImage = async (kube: KubeClient, namespace: string, wanted: string): Promise<Found> => {
  const [name, groups] = splitWanted(wanted);
  const found: Found[] = [];
  for (const group of groups) {
    const type = imageTypes[group];
    const image = await kube.get(type, { namespace, name });
    if (image !== undefined) found.push({ type, image });
  }
  const [only, second] = found;
  if (only === undefined) throw new NotFound(`there is no image ${wanted} in namespace ${namespace}`);
  if (second !== undefined)
    throw new InvalidInput(
      `two images are named ${name}: say ${groups.map((group) => `${group}/${name}`).join(' or ')}`,
    );
  return only;
};

const splitWanted = (wanted: string): readonly [string, readonly ImageGroup[]] => {
  const [prefix = '', name, ...rest] = wanted.split('/');
  if (name === undefined) return [prefix, imageGroups];
  const group = imageGroups.find((known) => known === prefix);
  if (group === undefined || rest.length > 0)
    throw new InvalidInput(`${wanted} is not an image: write <name>, or ${imageGroups.join('/<name> or ')}/<name>`);
  return [name, [group]];
};

export const groupOf = ({ type }: Found): string =>
  imageGroups.find((group) => imageTypes[group].group === type.group) ?? type.group;

/** Asks for a retry of what failed: any new value does. Only as it was read, so that nobody restarts what has just been put right. */
export const startAgain = (
  kube: KubeClient,
  { type, image: { metadata } }: Found,
  value: string,
): Promise<AnyImage> => {
  const { namespace, name, resourceVersion } = metadata;
  const patch = { metadata: { resourceVersion, annotations: { [annotations.retry]: value } } };
  return kube.mergePatch(type, { namespace, name }, patch);
};

/** Of a cron, whether its newest version is there. */
export const readyOf = ({ image: { status } }: Found) =>
  findCondition(status?.conditions, 'Ready') ?? findCondition(status?.conditions, 'UpToDate');

export const hasFailed = ({ image: { status } }: Found): boolean => status?.phase === 'Failed';

/** What a person looks for in a list; colours stand for these. */
export const stateNames = ['ready', 'working', 'failed'] as const;
export type StateName = (typeof stateNames)[number];

export const stateOf = (found: Found): StateName => {
  if (hasFailed(found)) return 'failed';
  return readyOf(found)?.status === 'True' ? 'ready' : 'working';
};

/** Whether nothing more happens by itself. */
export const isOver = (found: Found): boolean => {
  const isCurrent = found.image.status?.observedGeneration === (found.image.metadata.generation ?? 0);
  return isCurrent && (readyOf(found)?.status === 'True' || hasFailed(found));
};
