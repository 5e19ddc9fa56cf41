// Multipart uploads.
import type {
  ListMultipartUploadsCommandInput,
  ListMultipartUploadsCommandOutput,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import type { S3ObjectKey, SendCommand } from '#shared/clients/s3/send.ts';

/** Checksums with which the store verifies a part, or the whole object. */
export interface PartSeal {
  /** Hex; signed with the request, so that it is not computed again. */
  readonly sha256?: string | undefined;
  /** Sent if the upload was started with `hasCrc32`. */
  readonly crc32?: number | undefined;
}

export interface UploadKey extends S3ObjectKey {
  readonly uploadId: string;
}

/** The result of an upload. */
export interface CompletedUpload {
  readonly etag: string | undefined;
  readonly versionId: string | undefined;
  /** Of the whole object, if the store computed it. */
  readonly crc32: number | undefined;
}

/** An object made of parts. Until it is completed or aborted, an upload uses storage. */
export interface MultipartUploads {
  /** `hasCrc32`: the store verifies the whole object by its CRC-32; a store that does not support it rejects or ignores it. */
  begin(object: S3ObjectKey & { readonly contentType?: string; readonly hasCrc32?: boolean }): Promise<string>;
  /** Parts are numbered from 1 and have at least 5 MiB, except for the last one. Returns the ETag. */
  putPart(
    part: UploadKey &
      PartSeal & { readonly number: number; readonly body: Uint8Array; readonly signal?: AbortSignal | undefined },
  ): Promise<string>;
  /** ETags of the parts in order; `crc32` as in `begin`. */
  complete(upload: UploadKey & PartSeal & { readonly etags: readonly string[] }): Promise<CompletedUpload>;
  abort(upload: UploadKey): Promise<void>;
  /** Uploads of a bucket that were neither completed nor aborted. */
  list(bucket: string, prefix?: string): Promise<readonly { readonly key: string; readonly uploadId: string }[]>;
}

/** A store that returns no ETag for a part cannot complete the upload. */
const required = (value: string | undefined, what: string): string => {
  if (value === undefined) throw new S3Failure('Refused', `the store answered without ${what}`);
  return value;
};

/** The encoding of CRCs in S3: four bytes, big-endian, in base64. */
const encodeCrc = (crc: number): string => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc);
  return bytes.toString('base64');
};

const decodeCrc = (text: string | undefined): number | undefined => {
  const bytes = Buffer.from(text ?? '', 'base64');
  return bytes.length === 4 ? bytes.readUInt32BE(0) : undefined;
};

const payloadHash = 'x-amz-content-sha256';

/** Passes a known digest, so that the SDK does not compute it. */
const signedWith = (command: UploadPartCommand, sha256: string | undefined): UploadPartCommand => {
  if (sha256 === undefined) return command;
  command.middlewareStack.add(
    (next) => (args) => {
      const request = args.request as { headers: Record<string, string> };
      request.headers[payloadHash] = sha256;
      return next(args);
    },
    { step: 'build', name: 'knownPayloadHash' },
  );
  return command;
};

/** All pages. */
const listUploads: (
  send: SendCommand,
  ...args: Parameters<MultipartUploads['list']>
) => ReturnType<MultipartUploads['list']> = async (send, bucket, prefix = '') => {
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
};

export const createMultipart = (send: SendCommand): MultipartUploads => ({
  begin: async ({ bucket, key, contentType, hasCrc32 = false }) => {
    const checksum = hasCrc32 ? ({ ChecksumAlgorithm: 'CRC32', ChecksumType: 'FULL_OBJECT' } as const) : {};
    const input = { Bucket: bucket, Key: key, ContentType: contentType, ...checksum };
    const answer = await send({ bucket, key }, (sdk, client) =>
      client.send(new sdk.CreateMultipartUploadCommand(input)),
    );
    return required(answer.UploadId, 'an upload id');
  },
  putPart: async ({ bucket, key, uploadId, number, body, sha256, crc32, signal }) => {
    const checksum = crc32 === undefined ? {} : { ChecksumCRC32: encodeCrc(crc32) };
    const input = { Bucket: bucket, Key: key, UploadId: uploadId, PartNumber: number, Body: body, ...checksum };
    const answer = await send({ bucket, key }, (sdk, client) =>
      client.send(
        signedWith(new sdk.UploadPartCommand(input), sha256),
        signal === undefined ? {} : { abortSignal: signal },
      ),
    );
    return required(answer.ETag, 'the ETag of a part');
  },
  complete: async ({ bucket, key, uploadId, etags, crc32 }) => {
    const Parts = etags.map((ETag, index) => ({ ETag, PartNumber: index + 1 }));
    const checksum =
      crc32 === undefined ? {} : ({ ChecksumCRC32: encodeCrc(crc32), ChecksumType: 'FULL_OBJECT' } as const);
    const input = { Bucket: bucket, Key: key, UploadId: uploadId, MultipartUpload: { Parts }, ...checksum };
    const answer = await send({ bucket, key }, (sdk, client) =>
      client.send(new sdk.CompleteMultipartUploadCommand(input)),
    );
    const versionId = answer.VersionId === 'null' ? undefined : answer.VersionId;
    return { etag: answer.ETag, versionId, crc32: decodeCrc(answer.ChecksumCRC32) };
  },
  abort: async ({ bucket, key, uploadId }) => {
    const input = { Bucket: bucket, Key: key, UploadId: uploadId };
    await send({ bucket, key }, (sdk, client) => client.send(new sdk.AbortMultipartUploadCommand(input)));
  },
  list: (bucket, prefix = '') => listUploads(send, bucket, prefix),
});
