// Harvester's actions of an image: download, and downloadcancel. A Downloader for the image is removed after the last byte, as in Harvester.
import { downloaderKind } from '#shared/api/harvester/downloader.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { authenticate } from '#shared/exchange/access/caller.ts';
import { permit } from '#shared/exchange/access/permit.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { download } from '#shared/exchange/download/download.ts';
import { endServing } from '#shared/exchange/download/serving.ts';
import { findVolume } from '#shared/exchange/download/volume.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { findTarget } from '#shared/exchange/target.ts';
import type { TargetName } from '#shared/exchange/target-name.ts';
import type { ExportFormat } from '#shared/transfer/export/format.ts';
import { isNotFound } from '#shared/runtime/errors.ts';

/** It has the name of its image. */
const removeDownloader = async (kube: KubeClient, { namespace, name }: TargetName): Promise<void> => {
  const found = await kube.get(downloaderKind.type, { namespace, name });
  if (found === undefined || found.spec.imageName !== name) return;
  await kube
    .delete(downloaderKind.type, { namespace, name }, { uid: found.metadata.uid ?? '' })
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
};

export const downloadImage = (
  deps: ExchangeDeps,
  request: Request,
  name: TargetName,
  standard: ExportFormat,
): Promise<Response> => {
  const onWhole = (): Promise<void> =>
    removeDownloader(deps.kube, name).catch((error: unknown) => {
      // It has a time to live, and the download itself has succeeded.
      deps.log.warn('Downloader not removed', { error });
    });
  return download(deps, request, name, { standard, onWhole });
};

/** Ends all downloads of the image, whoever started them. */
export const cancelDownload = async (deps: ExchangeDeps, request: Request, name: TargetName): Promise<Response> => {
  const caller = await authenticate(request, deps);
  // A signed URL may be shared: it must not end the downloads of others.
  if (caller.by === 'token') throw new Problem(403, 'Forbidden', 'a token of the cluster is needed to end a download');
  await permit(deps.kube, caller, 'download', name);
  const target = await findTarget(deps.kube, name);
  // Longhorn itself ends a download that is not read any more.
  if (target.backingImage === undefined) await endServing(deps.kube, (await findVolume(deps.kube, target)).owner);
  await removeDownloader(deps.kube, name);
  return new Response(null, { status: 200 });
};
