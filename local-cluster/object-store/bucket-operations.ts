// Operations on buckets, and on several objects of one.
import { readText } from '#local-cluster/object-store/body.ts';
import { StoreFault } from '#local-cluster/object-store/fault.ts';
import { listObjects } from '#local-cluster/object-store/listing.ts';
import { type Call, type Operation, xmlAnswer } from '#local-cluster/object-store/operation.ts';
import { elementsOf, textOf, xml } from '#local-cluster/object-store/xml.ts';

export const listBuckets: Operation = async ({ store }) => {
  const buckets = (await store.buckets()).map(({ name, created }) => ({ Name: name, CreationDate: created }));
  return xmlAnswer(xml('ListAllMyBucketsResult', { Owner: { ID: 'local' }, Buckets: { Bucket: buckets } }));
};

/** `public-read` permits anonymous reads of the objects; other access lists are not supported. */
const isPublic = ({ request }: Call): boolean => {
  const acl = request.headers['x-amz-acl'] ?? 'private';
  if (acl !== 'private' && acl !== 'public-read') {
    throw new StoreFault('NotImplemented', `the access list ${acl} is not known here: private and public-read are`);
  }
  return acl === 'public-read';
};

export const createBucket: Operation = async (call) => {
  const { request, store } = call;
  await readText(request, call.signed);
  await store.putBucket(request.bucket, { isPublic: isPublic(call), isNew: true });
  return { status: 200, headers: { location: `/${request.bucket}` } };
};

export const putBucketAcl: Operation = async (call) => {
  const { request, store } = call;
  await store.bucket(request.bucket);
  if ((await readText(request, call.signed)) !== '') {
    throw new StoreFault('NotImplemented', 'access lists are set by the header x-amz-acl here');
  }
  await store.putBucket(request.bucket, { isPublic: isPublic(call), isNew: false });
  return { status: 200 };
};

export const headBucket: Operation = async ({ request, store, region }) => {
  await store.bucket(request.bucket);
  return { status: 200, headers: { 'x-amz-bucket-region': region } };
};

export const getLocation: Operation = async ({ request, store, region }) => {
  await store.bucket(request.bucket);
  const place = region === 'us-east-1' ? '' : region;
  return xmlAnswer(xml('LocationConstraint', {}).replace('></LocationConstraint>', `>${place}</LocationConstraint>`));
};

export const deleteBucket: Operation = async ({ request, store }) => {
  await store.deleteBucket(request.bucket);
  return { status: 204 };
};

export const listObjectsV2: Operation = async ({ request, store }) => {
  if (request.query.get('list-type') !== '2') {
    throw new StoreFault('NotImplemented', 'the first version of ListObjects is not served: use list-type=2');
  }
  return xmlAnswer(listObjects(request.bucket, await store.entries(request.bucket), request.query));
};

export const deleteObjects: Operation = async ({ request, store, signed }) => {
  const body = await readText(request, signed);
  await store.bucket(request.bucket);
  const keys = elementsOf(body, 'Object').map((object) => textOf(object, 'Key') ?? '');
  if (keys.length === 0 || keys.length > 1000 || keys.includes('')) {
    throw new StoreFault('MalformedXML', 'the document must name 1 to 1000 keys');
  }
  for (const key of keys) await store.deleteEntry(request.bucket, key);
  const isQuiet = textOf(body, 'Quiet') === 'true';
  return xmlAnswer(xml('DeleteResult', { Deleted: isQuiet ? [] : keys.map((Key) => ({ Key })) }));
};
