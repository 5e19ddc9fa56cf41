// Notifications of object stores about created or removed objects, in one form. Pure. Formats: AWS S3 event message 2.x and its EventBridge
// event, MinIO webhook, Ceph RGW topics (plain and as CloudEvents), Cloudflare R2 queue messages, and the CloudEvents adapter for S3.
import { z } from 'zod';
import { InvalidInput } from '#shared/runtime/errors.ts';

/**
 * An object that was created, replaced or removed. Only a hint: the current state is read from the store, so repetitions and wrong order are
 * harmless.
 */
export interface ObjectHint {
  readonly bucket: string;
  /** Decoded: any characters. */
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
/** AWS sends it when a notification is configured. */
const TestMessage = z.looseObject({ Service: z.string(), Event: z.literal('s3:TestEvent'), Bucket: z.string() });
/** AWS sends it to an API destination, its service for HTTP endpoints. */
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

/** Form-encoded: `red+flower.jpg` is `red flower.jpg`. An invalid encoding is used unchanged. */
const decodeKey = (key: string): string => {
  try {
    return decodeURIComponent(key.replaceAll('+', ' '));
  } catch {
    return key;
  }
};

/** Tags, locks and replication do not change bytes. */
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

/** Ceph does not encode keys: there a `+` is a plus. */
const keyOf = ({ eventSource, s3 }: z.infer<typeof Record>): string =>
  eventSource.startsWith('ceph:') ? s3.object.key : decodeKey(s3.object.key);

const ofRecord = (record: z.infer<typeof Record>): readonly ObjectHint[] =>
  concernsBytes(record.eventName) ? [{ bucket: record.s3.bucket.name, key: keyOf(record) }] : [];

/**
 * Objects of a notification, without duplicates. Empty for test messages and for events that change no bytes. Throws InvalidInput for unknown
 * formats.
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
