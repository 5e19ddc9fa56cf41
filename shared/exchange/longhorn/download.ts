// Downloads the file of a backing image: compressed by Longhorn, or decompressed, which can be uploaded unchanged.
import { createGunzip } from 'node:zlib';
import { type Readable, pipeline } from 'node:stream';
import { backingImages, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { dispositionOf, endingFor, fileNameOf } from '#shared/exchange/download/file-name.ts';
import { toWeb } from '#shared/exchange/http/agent.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { takeFromLonghorn } from '#shared/exchange/longhorn/client.ts';
import type { ExchangeTarget } from '#shared/exchange/target.ts';
import { targetText } from '#shared/exchange/target-name.ts';

interface Stored {
  readonly bytes: number | undefined;
  /** The disk in a qcow2 has another size than the file. */
  readonly format: 'qcow2' | 'raw';
}

/** The requested compression; only the stored format is available. Throws a Problem (400). */
const isPacked = (query: URLSearchParams, format: Stored['format'], standard: boolean): boolean => {
  const [asked, compression] = [query.get('format'), query.get('compression')];
  const fits = (asked ?? format) === format && ['none', 'gz', null].includes(compression) && !query.has('level');
  if (fits) return compression === null ? asked === null && standard : compression === 'gz';
  throw new Problem(
    400,
    'BadRequest',
    `Longhorn stores this file as ${format} and serves it unchanged: omit format and level, and set compression to none or gz`,
  );
};

const readStored = async ({ kube }: ExchangeDeps, name: string): Promise<Stored> => {
  const { size = 0, virtualSize = 0 } =
    (await kube.get(backingImages, { namespace: longhornNamespace, name }))?.status ?? {};
  const isQcow2 = virtualSize > 0 && virtualSize !== size;
  return { bytes: size > 0 ? size : undefined, format: isQcow2 ? 'qcow2' : 'raw' };
};

const requireReadable = ({ isUsable, isEncrypted, name, message }: ExchangeTarget): void => {
  if (!isUsable) throw new Problem(409, 'NotReady', `${targetText(name)} cannot be downloaded yet: ${message}`);
  if (isEncrypted === true) throw new Problem(409, 'ImageEncrypted', 'encrypted image is not supported for download');
};

export interface LonghornDownload {
  readonly target: ExchangeTarget & { readonly backingImage: string };
  /** Compressed by default, like Harvester's link. */
  readonly isPackedByDefault: boolean;
}

/** Handles GET and HEAD. There are no ranges: the file is compressed while it is sent. */
export const downloadFromLonghorn = async (
  deps: ExchangeDeps,
  incoming: Request,
  { target, isPackedByDefault }: LonghornDownload,
): Promise<Response> => {
  requireReadable(target);
  const { bytes, format } = await readStored(deps, target.backingImage);
  const packed = isPacked(new URL(incoming.url).searchParams, format, isPackedByDefault);
  const plainType = format === 'qcow2' ? 'application/x-qemu-disk' : 'application/octet-stream';
  const extension = endingFor(target.sourceFormat, packed ? `${format}.gz` : format);
  const headers = {
    'content-type': packed ? 'application/gzip' : plainType,
    'content-disposition': dispositionOf(fileNameOf(target.displayName, extension)),
    'accept-ranges': 'none',
    'cache-control': 'private',
    ...(packed || bytes === undefined ? {} : { 'content-length': String(bytes) }),
  };
  if (incoming.method === 'HEAD') return new Response(null, { status: 200, headers });
  const file = await takeFromLonghorn({ url: deps.longhornUrl, name: target.backingImage, signal: incoming.signal });
  // A failure of one stream ends the other and the answer; the client detects it by the length.
  const body: Readable = packed ? file : pipeline(file, createGunzip(), () => undefined);
  return new Response(toWeb(body), { status: 200, headers });
};
