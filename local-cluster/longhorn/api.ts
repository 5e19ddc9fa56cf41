// The part of Longhorn's HTTP API that transfers backing images: upload as a multipart form or as plain bytes, download compressed with gzip.
import { createReadStream } from 'node:fs';
import { Readable, pipeline } from 'node:stream';
import { createGzip } from 'node:zlib';
import { Hono } from 'hono';
import { backingImages, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { BackingImageController } from '#local-cluster/longhorn/controller.ts';
import type { BackingFiles } from '#local-cluster/longhorn/files.ts';

interface Tools {
  readonly kube: KubeClient;
  readonly files: BackingFiles;
  readonly controller: Pick<BackingImageController, 'receive'>;
}

/** Size limit of the header of a part. */
const maxHeadBytes = 16_384;
const headEnd = Buffer.from('\r\n\r\n');

/** The content of the first part, which has `size` bytes; the rest is read and discarded. */
async function* partOf(body: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let head: Buffer | undefined = Buffer.alloc(0);
  let left = size;
  for await (const chunk of body) {
    let bytes: Buffer = Buffer.from(chunk);
    if (head !== undefined) {
      head = Buffer.concat([head, bytes]);
      const end = head.indexOf(headEnd);
      if (end < 0 && head.length > maxHeadBytes) throw new Error('the multipart body has no part');
      if (end < 0) continue;
      bytes = head.subarray(end + headEnd.length);
      head = undefined;
    }
    const wanted = bytes.subarray(0, left);
    left -= wanted.length;
    if (wanted.length > 0) yield wanted;
  }
}

const isForm = (type: string | undefined): boolean => type?.startsWith('multipart/form-data') === true;

export const createLonghornApi = ({ kube, files, controller }: Tools): Hono => {
  const app = new Hono();
  app.post('/v1/backingimages/:name', async (context) => {
    const size = Number(context.req.query('size'));
    const { body } = context.req.raw;
    if (context.req.query('action') !== 'upload' || !Number.isInteger(size) || size < 0 || body === null) {
      return context.text('expected action=upload, size in bytes, and a body', 400);
    }
    const bytes = isForm(context.req.header('content-type')) ? partOf(body, size) : body;
    try {
      await controller.receive(context.req.param('name'), size, bytes);
      return context.body(null, 200);
    } catch (error) {
      return context.text(messageOf(error), 500);
    }
  });
  app.get('/v1/backingimages/:name/download', async (context) => {
    const name = context.req.param('name');
    const image = await kube.get(backingImages, { namespace: longhornNamespace, name });
    const uuid = image?.status?.uuid;
    const isReady = Object.values(image?.status?.diskFileStatusMap ?? {}).some(({ state }) => state === 'ready');
    if (uuid === undefined || !isReady) return context.text(`backing image ${name} has no file that is ready`, 404);
    const stream = createGzip();
    // If the file or the client disappears, only this answer ends.
    pipeline(createReadStream(files.pathOf(uuid)), stream, () => undefined);
    return context.body(Readable.toWeb(stream) as ReadableStream, 200, {
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename=${name}.gz`,
    });
  });
  return app;
};
