// Selects the operation of a request, and who may call it.
import {
  createBucket,
  deleteBucket,
  deleteObjects,
  getLocation,
  headBucket,
  listBuckets,
  listObjectsV2,
  putBucketAcl,
} from '#local-cluster/object-store/bucket-operations.ts';
import { StoreFault } from '#local-cluster/object-store/fault.ts';
import { copyObject, deleteObject, getObject, putObject } from '#local-cluster/object-store/object-operations.ts';
import type { Operation } from '#local-cluster/object-store/operation.ts';
import type { StoreRequest } from './request.ts';
import {
  abortUpload,
  completeUpload,
  copyPart,
  createUpload,
  listParts,
  listUploads,
  uploadPart,
} from '#local-cluster/object-store/upload-operations.ts';

/** By bucket or object, method, and subresources in the query. */
const operations: Readonly<Record<string, Operation>> = {
  'service GET': listBuckets,
  'bucket PUT': createBucket,
  'bucket PUT acl': putBucketAcl,
  'bucket HEAD': headBucket,
  'bucket DELETE': deleteBucket,
  'bucket GET': listObjectsV2,
  'bucket GET location': getLocation,
  'bucket GET uploads': listUploads,
  'bucket POST delete': deleteObjects,
  'object GET': getObject,
  'object HEAD': getObject,
  'object PUT': putObject,
  'object PUT copy': copyObject,
  'object DELETE': deleteObject,
  'object POST uploads': createUpload,
  'object PUT partNumber uploadId': uploadPart,
  'object PUT copy partNumber uploadId': copyPart,
  'object POST uploadId': completeUpload,
  'object DELETE uploadId': abortUpload,
  'object GET uploadId': listParts,
};

/** Parameters that do not select an operation. */
const parameters = new Set([
  'list-type',
  'prefix',
  'delimiter',
  'max-keys',
  'start-after',
  'continuation-token',
  'encoding-type',
  'fetch-owner',
  'max-parts',
  'part-number-marker',
  'max-uploads',
  'key-marker',
  'upload-id-marker',
  'x-id',
]);

const isSubresource = (name: string): boolean =>
  !parameters.has(name) && !/^x-amz-/i.test(name) && !name.startsWith('response-');

/** Throws NotImplemented for anything unknown, rather than doing something else. */
export const operationOf = ({ method, bucket, key, query, headers }: StoreRequest): Operation => {
  const what = bucket === '' ? 'service' : key === '' ? 'bucket' : 'object';
  const asked = [...query.keys()].filter(isSubresource).toSorted();
  const isCopy = headers['x-amz-copy-source'] !== undefined;
  const name = [what, method, ...(isCopy ? ['copy'] : []), ...asked].join(' ');
  const operation = operations[name];
  if (operation === undefined) throw new StoreFault('NotImplemented', `this object store cannot do: ${name}`);
  return operation;
};

/** Operations of anonymous users on a public bucket. */
export const isPublicOperation = (operation: Operation): boolean => operation === getObject;
