// What object stores say when an object is made or removed, in one form. Pure. Shapes: AWS S3 event message 2.x and its EventBridge event, MinIO
// webhook, Ceph RGW topics (plain and as CloudEvents), Cloudflare R2 queue messages, and the CloudEvents adapter for S3.
import { z } from 'zod';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** An object that was made, replaced or removed. Only a hint: what it is now, the store is asked, so repeats and wrong order do no harm. */
export interface ObjectHint {
  readonly bucket: string;
  /** As the owner wrote it: any characters. */
  readonly key: string;
}

const Record = z.looseObject({
  eventVersion: z.string().optional(),
  eventSource: z.string(),
  eventName: z.string(),
  s3: z.looseObject({
    bucket: z.looseObject({ name: z.string().min(1) }),
    object: z.looseObject({ key: z.string().min(1) }),
  }),
});

const Records = z.looseObject({ Records: z.array(Record) });
/** AWS sends it once a notification is configured. */
const TestMessage = z.looseObject({ Service: z.string(), Event: z.literal('s3:TestEvent'), Bucket: z.string() });
/** AWS sends it to an API destination, which is its own way to an HTTP server. */
const BridgeEvent = z.looseObject({
  source: z.literal('aws.s3'),
  'detail-type': z.string(),
  detail: z.looseObject({
    bucket: z.looseObject({ name: z.string().min(1) }),
    object: z.looseObject({ key: z.string().min(1) }),
  }),
});
const R2Message = z.looseObject({
  account: z.string(),
  action: z.string(),
  bucket: z.string().min(1),
  object: z.looseObject({ key: z.string().min(1) }),
});

const bridgeTypes: readonly string[] = ['Object Created', 'Object Deleted'];

/** Form-encoded: `red+flower.jpg` is `red flower.jpg`. What is no such encoding stands for itself. */
const decodeKey = (key: string): string => {
  try {
    return decodeURIComponent(key.replaceAll('+', ' '));
  } catch {
    return key;
  }
};

/** Tags, locks and replication change no byte. */
const concernsBytes = (eventName: string): boolean =>
  /^(s3:)?(ObjectCreated:(?!PutRetention|PutLegalHold|PutTagging|DeleteTagging)|ObjectRemoved:|ObjectSynced:|LifecycleExpiration:|ObjectLifecycle:Expiration:)/.test(
    eventName,
  );

const r2Actions: readonly string[] = [
  'PutObject',
  'CopyObject',
  'CompleteMultipartUpload',
  'DeleteObject',
  'LifecycleDeletion',
];

/** Ceph writes keys as they are: there a `+` is a plus. */
const keyOf = ({ eventSource, s3 }: z.infer<typeof Record>): string =>
  eventSource.startsWith('ceph:') ? s3.object.key : decodeKey(s3.object.key);

const ofRecord = (record: z.infer<typeof Record>): readonly ObjectHint[] =>
  concernsBytes(record.eventName) ? [{ bucket: record.s3.bucket.name, key: keyOf(record) }] : [];

/**
 * Objects of a notification, each once. None for test messages and for what moves no byte.
 * Throws InvalidInput for what no known store sends.
 */
export const readNotification = (body: unknown): readonly ObjectHint[] => {
  if (TestMessage.safeParse(body).success) return [];
  const records = Records.safeParse(body);
  if (records.success) return once(records.data.Records.flatMap(ofRecord));
  const single = Record.safeParse(body);
  if (single.success) return ofRecord(single.data);
  const message = R2Message.safeParse(body);
  if (message.success) {
    const { action, bucket, object } = message.data;
    return r2Actions.includes(action) ? [{ bucket, key: object.key }] : [];
  }
  const bridged = BridgeEvent.safeParse(body);
  if (bridged.success) {
    const { bucket, object } = bridged.data.detail;
    return bridgeTypes.includes(bridged.data['detail-type']) ? [{ bucket: bucket.name, key: object.key }] : [];
  }
  throw new InvalidInput(
    'the body is not a notification of AWS S3, MinIO, Ceph or Cloudflare R2: it has neither Records with s3.bucket.name and s3.object.key, nor account, action, bucket and object.key, nor the detail of an event of EventBridge',
  );
};

const once = (hints: readonly ObjectHint[]): readonly ObjectHint[] => [
  ...new Map(hints.map((hint) => [JSON.stringify([hint.bucket, hint.key]), hint])).values(),
];
