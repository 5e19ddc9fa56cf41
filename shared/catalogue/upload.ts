// Images that are filled by an upload.
import { backendNames } from '#shared/api/harvester/image.ts';
import { type Registration, backends } from '#shared/backends/registry.ts';
import { type AnyImage, imageTypes } from '#shared/catalogue/image.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

const isResumable = (one: Registration): boolean =>
  one.served && one.backend.capabilities.sources.includes('upload') && one.backend.capabilities.uploadsWhole !== true;

/** Those an interrupted upload resumes into. */
export const resumableBackends = backendNames.filter((name) => isResumable(backends[name]));

export const notForUploads = (what: string): InvalidInput => {
  const message = `${what} is there and is not filled by an upload: choose another name`;
  return new InvalidInput(message, [{ field: 'name', message }]);
};

export const isForUploads = ({ spec = {} }: AnyImage): boolean => 'sourceType' in spec && spec.sourceType === 'upload';

export interface UploadWish {
  readonly name: string;
  readonly namespace: string;
  readonly storageClass?: string | undefined;
  readonly backend?: string | undefined;
  readonly displayName?: string | undefined;
}

/** The image, made where it is missing. Throws InvalidInput where one of the name is there that takes no upload. */
export const ensureUploadImage = async (kube: KubeClient, wish: UploadWish): Promise<AnyImage> => {
  const { name, namespace, storageClass, backend, displayName = name } = wish;
  const wanted: AnyImage = {
    apiVersion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImage',
    metadata: { name, namespace },
    spec: {
      backend: resumableBackends.find((known) => known === backend) ?? 'csi',
      displayName,
      sourceType: 'upload',
      ...(storageClass === undefined ? {} : { targetStorageClassName: storageClass }),
    },
  };
  const type = imageTypes.harvester;
  const found = await kube.get(type, { namespace, name });
  if (found !== undefined && !isForUploads(found)) throw notForUploads(`image ${name}`);
  return found ?? kube.create(type, wanted);
};
