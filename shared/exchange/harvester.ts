// Harvester's upload action of an image. Its clients send a form with a part called `chunk`; the plain file is accepted, too.
import { downloaderKind } from '#shared/api/harvester/downloader.ts';
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { authenticate, permit } from '#shared/exchange/access/caller.ts';
import { download } from '#shared/exchange/download/download.ts';
import { endServing, findVolume } from '#shared/exchange/download/serving.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { type TargetName, targetText } from './target-name.ts';
import { findTarget } from './target.ts';
import { deliver } from '#shared/exchange/upload/deliver.ts';
import { fileOf } from '#shared/exchange/upload/file-part.ts';
import { arrivedStatus, type Sent } from '#shared/exchange/upload/session.ts';
import type { ExportFormat } from '#shared/transfer/export/format.ts';
import type { Checksum } from '#shared/transfer/spec.ts';

const wholeNumber = (query: URLSearchParams, name: string): number | undefined => {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new Problem(400, 'BadRequest', `${name} must be a number of bytes, and is "${text.slice(0, 40)}"`);
};

const checksumOf = (query: URLSearchParams): Checksum | undefined => {
  const text = query.get('checksum');
  if (text === null) return undefined;
  const parsed = parseChecksum(text);
  if ('value' in parsed) return parsed.value;
  throw new Problem(400, 'BadRequest', 'checksum must be <algorithm>:<hex>, of md5, sha1, sha256 or sha512');
};

/** HTTP statuses for results of the upload Job that are not a success. */
const statusOf = ({ status, reason }: Pick<Sent, 'status' | 'reason'>): number => {
  if (status === 423) return 409;
  if (status === 422) return reason === 'ImageTooLarge' ? 413 : 400;
  return status;
};

export const requireTaken = (sent: Sent): void => {
  if ([200, 204, arrivedStatus].includes(sent.status)) return;
  throw new Problem(statusOf(sent), sent.reason, sent.message);
};

/** Proxies time out before a large disk is complete. */
const arrived = (name: TargetName): Response =>
  Response.json(
    {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      message: `the file has arrived and is being written and verified: the status of ${targetText(name)} shows the result`,
      code: arrivedStatus,
    },
    { status: arrivedStatus },
  );

export const uploadToImage = async (deps: ExchangeDeps, request: Request, name: TargetName): Promise<Response> => {
  await permit(deps.kube, await authenticate(request, deps), 'upload', name);
  const query = new URL(request.url).searchParams;
  const [size, virtualSize, checksum] = [
    wholeNumber(query, 'size'),
    wholeNumber(query, 'virtualSize'),
    checksumOf(query),
  ];
  const target = await findTarget(deps.kube, name);
  const body = await fileOf(request, 'either');
  const file = { stream: body.stream, length: size ?? body.length };
  const sent = await deliver(deps, {
    target,
    file,
    virtualSize,
    checksum,
    waits: deps.answerSeconds,
    signal: request.signal,
  });
  requireTaken(sent);
  return sent.status === arrivedStatus ? arrived(name) : new Response(null, { status: 200 });
};

// Harvester's actions of an image: download, and downloadcancel. A Downloader for the image is removed after the last byte, as in Harvester.

/** It has the name of its image. */
const removeDownloader = async (kube: KubeClient, { namespace, name }: TargetName): Promise<void> => {
  const found = await kube.get(downloaderKind.type, { namespace, name });
  if (found === undefined || found.spec.imageName !== name) return;
  await kube.delete(downloaderKind.type, { namespace, name }, { uid: found.metadata.uid ?? '' });
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
