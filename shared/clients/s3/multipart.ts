// Uploads in parts.
import type { ListMultipartUploadsCommandInput, ListMultipartUploadsCommandOutput } from '@aws-sdk/client-s3';
import type { MultipartUploads } from '#shared/clients/s3/client.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import type { Send } from '#shared/clients/s3/send.ts';

/** A store that takes a part and names no tag for it cannot complete the upload. */
const required = (value: string | undefined, what: string): string => {
  if (value === undefined) throw new S3Failure('Refused', `the store answered without ${what}`);
  return value;
};

export const createMultipart = (send: Send): MultipartUploads => ({
  begin: async ({ bucket, key }) => {
    const answer = await send({ bucket, key }, (sdk, client) =>
      client.send(new sdk.CreateMultipartUploadCommand({ Bucket: bucket, Key: key })),
    );
    return required(answer.UploadId, 'an upload id');
  },
  putPart: async ({ bucket, key, uploadId, number, body }) => {
    const input = { Bucket: bucket, Key: key, UploadId: uploadId, PartNumber: number, Body: body };
    const answer = await send({ bucket, key }, (sdk, client) => client.send(new sdk.UploadPartCommand(input)));
    return required(answer.ETag, 'the ETag of a part');
  },
  complete: async ({ bucket, key, uploadId, etags }) => {
    const Parts = etags.map((ETag, index) => ({ ETag, PartNumber: index + 1 }));
    const input = { Bucket: bucket, Key: key, UploadId: uploadId, MultipartUpload: { Parts } };
    const answer = await send({ bucket, key }, (sdk, client) =>
      client.send(new sdk.CompleteMultipartUploadCommand(input)),
    );
    return answer.ETag;
  },
  abort: async ({ bucket, key, uploadId }) => {
    const input = { Bucket: bucket, Key: key, UploadId: uploadId };
    await send({ bucket, key }, (sdk, client) => client.send(new sdk.AbortMultipartUploadCommand(input)));
  },
  list: async (bucket, prefix = '') => {
    const found: { key: string; uploadId: string }[] = [];
    let marker: Pick<ListMultipartUploadsCommandInput, 'KeyMarker' | 'UploadIdMarker'> | undefined = {};
    while (marker !== undefined) {
      const input: ListMultipartUploadsCommandInput = { Bucket: bucket, Prefix: prefix, ...marker };
      const page: ListMultipartUploadsCommandOutput = await send({ bucket }, (sdk, client) =>
        client.send(new sdk.ListMultipartUploadsCommand(input)),
      );
      for (const { Key, UploadId } of page.Uploads ?? []) {
        if (Key !== undefined && UploadId !== undefined) found.push({ key: Key, uploadId: UploadId });
      }
      const { IsTruncated, NextKeyMarker, NextUploadIdMarker } = page;
      marker = IsTruncated === true ? { KeyMarker: NextKeyMarker, UploadIdMarker: NextUploadIdMarker } : undefined;
    }
    return found;
  },
});
