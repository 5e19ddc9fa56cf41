import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readNotification } from '#shared/object-import/notification.ts';

const record = (eventSource: string, eventName: string, key: string, more: object = {}) => ({
  eventVersion: '2.1',
  eventSource,
  awsRegion: 'us-east-1',
  eventTime: '2026-11-01T00:00:00.000Z',
  eventName,
  s3: { s3SchemaVersion: '1.0', bucket: { name: 'golden', arn: 'arn:aws:s3:::golden' }, object: { key, ...more } },
});

const r2 = (action: string, key: string) => ({
  account: '3f4b',
  action,
  bucket: 'golden',
  object: { key, size: 65_536, eTag: 'c846' },
  eventTime: '2026-05-24T19:36:44.379Z',
});

const bridged = (detailType: string, key: string) => ({
  version: '0',
  id: '17793124-05d4-b198-2fde-7ededc63b103',
  'detail-type': detailType,
  source: 'aws.s3',
  account: '111122223333',
  time: '2026-11-12T00:00:00Z',
  region: 'ca-central-1',
  resources: ['arn:aws:s3:::golden'],
  detail: {
    version: '0',
    bucket: { name: 'golden' },
    object: { key, size: 5, etag: 'b1946ac9', 'version-id': 'IYV3', sequencer: '617f08299329d189' },
    'request-id': 'N4N7',
    requester: '123456789012',
    reason: 'PutObject',
  },
});

const hint = (key: string) => ({ bucket: 'golden', key });

describe('notifications', () => {
  it.each([
    [
      'AWS',
      { Records: [record('aws:s3', 'ObjectCreated:Put', 'a/red+flower%C3%BC.img', { sequencer: '0055' })] },
      'a/red flowerü.img',
    ],
    ['AWS multipart', { Records: [record('aws:s3', 'ObjectCreated:CompleteMultipartUpload', 'a.img')] }, 'a.img'],
    [
      'MinIO',
      {
        EventName: 's3:ObjectCreated:Put',
        Key: 'golden/a/b.img',
        Records: [record('minio:s3', 's3:ObjectCreated:Put', 'a%2Fb.img')],
      },
      'a/b.img',
    ],
    [
      'Ceph',
      { Records: [record('ceph:s3', 'ObjectCreated:Put', 'b.img', { size: '12', metadata: [], tags: [] })] },
      'b.img',
    ],
    [
      'Ceph, whose keys are plain',
      { Records: [record('ceph:s3', 'ObjectCreated:Put', 'a/b+c%20d.img')] },
      'a/b+c%20d.img',
    ],
    ['Ceph before Quincy', { Records: [record('ceph:s3', 's3:ObjectCreated:Put', 'b.img')] }, 'b.img'],
    ['Ceph, synced from another zone', { Records: [record('ceph:s3', 'ObjectSynced:Create', 'b.img')] }, 'b.img'],
    ['Ceph, expired', { Records: [record('ceph:s3', 'ObjectLifecycle:Expiration:Current', 'b.img')] }, 'b.img'],
    ['AWS by EventBridge, whose keys are plain', bridged('Object Created', 'a/b+c%20d.img'), 'a/b+c%20d.img'],
    ['AWS by EventBridge, removed', bridged('Object Deleted', 'b.img'), 'b.img'],
    ['one record alone, as in a CloudEvent', record('ceph:s3', 'ObjectCreated:Copy', 'b.img'), 'b.img'],
    ['a removal', { Records: [record('aws:s3', 'ObjectRemoved:DeleteMarkerCreated', 'b.img')] }, 'b.img'],
    ['expiry', { Records: [record('aws:s3', 'LifecycleExpiration:Delete', 'b.img')] }, 'b.img'],
    ['R2, whose keys are plain', r2('CopyObject', 'a+b%20c.img'), 'a+b%20c.img'],
    ['R2 removal', r2('LifecycleDeletion', 'x.img'), 'x.img'],
    ['a key with an invalid encoding', { Records: [record('aws:s3', 'ObjectCreated:Put', '100%.img')] }, '100%.img'],
  ])('of %s name the object', (_, body, key) => expect(readNotification(body)).toEqual([hint(key)]));

  it.each([
    [
      'the test message of AWS',
      { Service: 'Amazon S3', Event: 's3:TestEvent', Time: '', Bucket: 'golden', RequestId: '', HostId: '' },
    ],
    ['tags', { Records: [record('minio:s3', 's3:ObjectCreated:PutTagging', 'a.img')] }],
    ['locks', { Records: [record('minio:s3', 's3:ObjectCreated:PutRetention', 'a.img')] }],
    ['restores from an archive', { Records: [record('aws:s3', 'ObjectRestore:Completed', 'a.img')] }],
    ['tags, by EventBridge', bridged('Object Tags Added', 'a.img')],
    ['unknown actions of R2', r2('PutBucket', 'a.img')],
    ['no records', { Records: [] }],
  ])('of %s are ignored', (_, body) => expect(readNotification(body)).toEqual([]));

  it.each([[{}], [null], ['text'], [{ Records: [{ s3: {} }] }], [{ bucket: 'golden' }]])('%j is rejected', (body) => {
    expect(() => readNotification(body)).toThrow('is not a notification of AWS S3, MinIO, Ceph or Cloudflare R2');
  });

  it('name an object once, however often it occurs', () => {
    const again = record('aws:s3', 'ObjectCreated:Put', 'a.img');
    expect(readNotification({ Records: [again, record('aws:s3', 'ObjectCreated:Put', 'b.img'), again] })).toHaveLength(
      2,
    );
  });

  const form = (key: string): string => encodeURIComponent(key).replaceAll('%20', '+');
  it.each<[string, (key: string) => object]>([
    ['AWS', (key) => ({ Records: [record('aws:s3', 'ObjectCreated:Put', form(key).replaceAll('%2F', '/'))] })],
    ['AWS by EventBridge', (key) => bridged('Object Created', key)],
    ['MinIO', (key) => ({ Key: `golden/${key}`, Records: [record('minio:s3', 's3:ObjectCreated:Put', form(key))] })],
    ['Ceph', (key) => ({ Records: [record('ceph:s3', 'ObjectCreated:Put', key)] })],
    ['R2', (key) => r2('PutObject', key)],
  ])('of %s return every key unchanged', (_, notify) => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (text) => {
        const key = text.toWellFormed();
        expect(readNotification(JSON.parse(JSON.stringify(notify(key))))).toEqual([hint(key)]);
      }),
    );
  });
});
