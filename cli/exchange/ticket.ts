// Leave to send or take the bytes of one thing: a token that the cluster gives, with whatever way of logging in the kubeconfig has.
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { uploadTokenResource, type TargetName } from '#shared/exchange/target-name.ts';
import { InvalidInput, NotFound, isNotFound } from '#shared/runtime/errors.ts';

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
}

const folders = { upload: 'files', download: 'downloads' } as const;

/** Good for five minutes: get one for each request. */
export const getTicket = async ({ kube, operation, target, server }: TicketOptions): Promise<Ticket> => {
  const { plural, namespace, name } = target;
  const wanted: TokenRequest = {
    apiVersion: `${tokenRequests.group}/${tokenRequests.version}`,
    kind: tokenRequests.kind,
    metadata: { name, namespace },
    spec: { target: { resource: plural, name }, operation },
  };
  const { status } = await kube.create(tokenRequests, wanted).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
    throw new NotFound('this cluster takes no uploads and gives no downloads: it has no API upload.cdi.kubevirt.io', {
      cause: error,
    });
  });
  const base = server ?? status?.url;
  if (base === undefined)
    throw new InvalidInput('the cluster does not say where its transfer function is: give its URL with --server');
  const url = `${base.replace(/\/+$/, '')}/${folders[operation]}/${plural}/${namespace}/${name}`;
  return { url, headers: { authorization: `Bearer ${status?.token ?? ''}` } };
};
