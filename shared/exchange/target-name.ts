// Names of upload and download targets in paths and tokens.
import { ObjectName } from '#shared/api/kind.ts';

export const targetPlurals = ['datavolumes', 'persistentvolumeclaims', 'virtualmachineimages'] as const;
export type TargetPlural = (typeof targetPlurals)[number];

export interface TargetName {
  readonly plural: TargetPlural;
  readonly namespace: string;
  readonly name: string;
}

/** CDI's permission for uploads. */
export const uploadTokenResource = { group: 'upload.cdi.kubevirt.io', resource: 'uploadtokenrequests' } as const;

/** Harvester's permission to download an image. */
export const downloaderResource = { group: 'harvesterhci.io', resource: 'virtualmachineimagedownloaders' } as const;

export const targetText = ({ plural, namespace, name }: TargetName): string => `${plural}/${namespace}/${name}`;

export const isTargetPlural = (text: string): text is TargetPlural =>
  (targetPlurals as readonly string[]).includes(text);

export const parseTarget = (text: string): TargetName | undefined => {
  const [plural = '', namespace = '', name = '', ...more] = text.split('/');
  if (!isTargetPlural(plural) || namespace === '' || name === '' || more.length > 0) return undefined;
  return { plural, namespace, name };
};

/** Valid names of objects and namespaces (RFC 1123). */
export const isObjectName = (text: string): boolean => text !== '' && ObjectName.safeParse(text).success;
