// Leave to send or take the bytes of one thing: a token that the cluster gives, with whatever way of logging in the kubeconfig has.
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { backendNames } from '#shared/api/harvester/image.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { backends, type Registration } from '#shared/backends/registry.ts';
import { type AnyImage, type Found, groupOf, imageTypes, isImage } from './image.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { tolerate } from '#shared/clients/kube/tolerant.ts';
import { type TargetName, uploadTokenResource } from '#shared/exchange/target-name.ts';
import { InvalidInput, isNotFound, NotFound } from '#shared/runtime/errors.ts';

interface TokenRequest extends KubeObject {
  readonly spec: object;
  readonly status?: { readonly token?: string; readonly url?: string };
}

const tokenRequests: ResourceType<TokenRequest> = {
  group: uploadTokenResource.group,
  version: 'v1beta1',
  kind: 'UploadTokenRequest',
  plural: uploadTokenResource.resource,
  namespaced: true,
};

export interface Ticket {
  /** Of the thing: `…/files/datavolumes/ns/name` or `…/downloads/…`. */
  readonly url: string;
  readonly headers: { readonly authorization: string };
}

export interface TicketOptions {
  readonly kube: KubeClient;
  readonly operation: 'upload' | 'download';
  readonly target: TargetName;
  /** URL of the transfer function; left out: the cluster says it. */
  readonly server: string | undefined;
  /** Token that the caller shows the API server; `undefined`: it is known by something else. */
  readonly bearer: () => Promise<string | undefined>;
}

const folders = { upload: 'files', download: 'downloads' } as const;

/** A ticket for this one thing. `undefined`: nobody here gives any, for the API is not there, or a CDI that is installed answers it. */
const askFor = async ({ kube, operation, target }: TicketOptions): Promise<TokenRequest['status'] | undefined> => {
  const { plural, namespace, name } = target;
  const wanted: TokenRequest = {
    apiVersion: `${tokenRequests.group}/${tokenRequests.version}`,
    kind: tokenRequests.kind,
    metadata: { name, namespace },
    spec: { target: { resource: plural, name }, operation },
  };
  const made = await tolerate(kube.create(tokenRequests, wanted), isNotFound);
  return made !== undefined && 'target' in made.spec ? made.status : undefined;
};

/** The caller's own token, as the cluster knows it. */
const ownTicket = async ({ bearer, server }: TicketOptions): Promise<{ url: string; token: string }> => {
  const token = await bearer();
  if (server !== undefined && token !== undefined) return { url: server, token };
  const what =
    server === undefined
      ? 'give the URL of the transfer function with --transfer-url'
      : 'use a kubeconfig whose user has a token (`kubectl create token` makes one)';
  throw new NotFound(`this cluster issues no tokens for the transfer function (infra/apis of Bullion does): ${what}`);
};

/** Good for five minutes: get one for each request. */
export const getTicket = async (options: TicketOptions): Promise<Ticket> => {
  const { operation, target, server } = options;
  const status = await askFor(options);
  const { url = server, token = '' } = status === undefined ? await ownTicket(options) : status;
  const base = server ?? url;
  if (base === undefined)
    throw new InvalidInput(
      'the cluster does not publish the URL of its transfer function: give its URL with --transfer-url',
    );
  const { plural, namespace, name } = target;
  return {
    url: `${base.replace(/\/+$/, '')}/${folders[operation]}/${plural}/${namespace}/${name}`,
    headers: { authorization: `Bearer ${token}` },
  };
};

/** The object whose bytes are taken. A HyperCloud image is its golden volume. Throws InvalidInput where it has none yet. */
export const targetOf = (found: Found): TargetName => {
  const { type, image } = found;
  const { namespace = '', name } = image.metadata;
  if (type.kind === dataVolumeKind.type.kind) return { plural: 'datavolumes', namespace, name };
  if (groupOf(found) === 'harvester') return { plural: 'virtualmachineimages', namespace, name };
  const volume = isImage(type) ? image.status?.children?.volume : name;
  if (volume === undefined)
    throw new InvalidInput(`image ${name} has no volume yet: bullion why ${name} -n ${namespace} says why`);
  return { plural: 'persistentvolumeclaims', namespace, name: volume };
};

// Images that are filled by an upload.

const isResumable = (one: Registration): boolean =>
  one.served && one.backend.capabilities.sources.includes('upload') && one.backend.capabilities.uploadsWhole !== true;

/** Those an interrupted upload resumes into. */
export const resumableBackends = backendNames.filter((name) => isResumable(backends[name]));

export const notForUploads = (what: string): InvalidInput => {
  const message = `${what} is there and is not filled by an upload: choose another name`;
  return new InvalidInput(message, [{ field: 'name', message }]);
};

export const isForUploads = ({ spec = {} }: AnyImage): boolean => 'sourceType' in spec && spec.sourceType === 'upload';

interface UploadWish {
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
