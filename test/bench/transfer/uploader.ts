// `node uploader.ts <file> <endpoint>`: the upload of a staged file as the AWS SDK does it by itself, four parts at a time.
import { open } from 'node:fs/promises';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';

const partBytes = 8 * 1024 * 1024;
const atOnce = 4;
const [path = '', endpoint = ''] = process.argv.slice(2);
const place = { Bucket: 'bench', Key: 'object' };
const credentials = { accessKeyId: 'bench', secretAccessKey: 'bench' };
const s3 = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials });

const file = await open(path);
const { size } = await file.stat();
const { UploadId } = await s3.send(new CreateMultipartUploadCommand(place));
const tags: string[] = [];
let next = 0;
const work = async (): Promise<void> => {
  while (next * partBytes < size) {
    const index = next++;
    const body = Buffer.allocUnsafe(Math.min(partBytes, size - index * partBytes));
    await file.read(body, 0, body.length, index * partBytes);
    const { ETag = '' } = await s3.send(
      new UploadPartCommand({ ...place, UploadId, PartNumber: index + 1, Body: body }),
    );
    tags[index] = ETag;
  }
};
await Promise.all(Array.from({ length: atOnce }, work));
const Parts = tags.map((ETag, index) => ({ ETag, PartNumber: index + 1 }));
await s3.send(new CompleteMultipartUploadCommand({ ...place, UploadId, MultipartUpload: { Parts } }));
s3.destroy();
