import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eventTypes } from '#events/catalogue.ts';
import { createApp } from '#functions/import-object/app.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { kubeEvents } from '#shared/api/foreign/core.ts';
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { describeObject } from '#shared/object-import/description.ts';
import { ImportRule } from '#shared/object-import/rules.ts';
import { readSidecars } from '#shared/object-import/drive.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { createMemoryBucket } from '#test/support/memory-bucket.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { sendEvent } from '#test/support/send-event.ts';

const images = hyperCloudImageKind.type;
const dataSources = dataSourceKind.type;
const namespace = 'default';

const createWorld = (over: Partial<ImportRule> = {}, token?: string) => {
  const rule = ImportRule.parse({ bucket: 'images', prefix: 'golden/', namespace, ...over });
  const bucket = createMemoryBucket();
  let time = Date.UTC(2026, 0, 1);
  const kube = createMemoryKube({ now: () => (time += 1000) });
  const app = createApp({
    kube,
    rules: [rule],
    openStore: async () => ({ s3: bucket.s3, close: async () => undefined }),
    now: () => time,
    log: silentLogger,
    token,
  });
  const post = (body: unknown, headers: Record<string, string> = { 'content-type': 'application/json' }) =>
    app.request('/', { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) });
  const made = () => kube.all(images);
  const isReady = ({ status }: HyperCloudImage) => status?.phase === 'Available';
  return {
    rule,
    bucket,
    kube,
    post,
    made,
    keys: () => made().map(({ metadata }) => metadata.annotations?.['bullion.dev/object-key']),
    names: () => kube.all(dataSources),
    tick: () => sendEvent(app, eventTypes.ping, {}),
    /** Completes a running import. */
    finish: async (image = made().find((one) => !isReady(one))) => {
      if (image === undefined || kube.all(images).every(({ metadata }) => metadata.uid !== image.metadata.uid)) return;
      kube.edit(images, { ...image.metadata, namespace }, (object) => {
        object.status = {
          ...object.status,
          phase: 'Available',
          children: { volume: `${object.metadata.name}-image-pvc` },
          conditions: [{ type: 'Ready', status: 'True' }],
        } as never;
      });
      const { apiVersion, kind } = image;
      const about = { apiVersion, kind, namespace, name: image.metadata.name, uid: image.metadata.uid ?? '' };
      await sendEvent(app, eventTypes.imageReady, { image: about, generation: 1 });
    },
  };
};
type World = ReturnType<typeof createWorld>;

/** As stores write it. */
const form = (key: string): string => encodeURIComponent(key).replaceAll('%20', '+');

const record = (eventSource: string, eventName: string, key: string, object: object = {}) => ({
  eventVersion: eventSource === 'minio:s3' ? '2.0' : '2.1',
  eventSource,
  awsRegion: 'us-east-1',
  eventTime: '2026-11-01T00:00:00.000Z',
  eventName,
  userIdentity: { principalId: 'tester' },
  requestParameters: { sourceIPAddress: '192.0.2.7' },
  responseElements: { 'x-amz-request-id': 'C3D13FE58DE4C810', 'x-amz-id-2': 'FMyUVURIY8' },
  s3: {
    s3SchemaVersion: '1.0',
    configurationId: 'images',
    bucket: { name: 'images', ownerIdentity: { principalId: 'tester' }, arn: 'arn:aws:s3:::images' },
    object: { key, size: 1024, eTag: '37b51d194a7513e45b56f6524f2d51f2', sequencer: '0055AED6DCD90281E5', ...object },
  },
});

const minio = (eventName: string, key: string) => ({
  EventName: eventName,
  Key: `images/${key}`,
  Records: [
    {
      ...record('minio:s3', eventName, form(key), { contentType: 'application/octet-stream', userMetadata: {} }),
      source: { host: '192.0.2.7', port: '', userAgent: 'MinIO (linux; amd64)' },
    },
  ],
});

const ceph = (eventName: string, key: string) => ({
  Records: [
    {
      ...record('ceph:s3', eventName, key, { size: '1024', versionId: '', metadata: [], tags: [] }),
      eventId: '',
      opaqueData: 'me@example.com',
    },
  ],
});

const json = { 'content-type': 'application/json' };
/** Keys are bytes of UTF-8 in headers; Node gives and takes them one character for a byte. */
const inHeader = (text: string): string => Buffer.from(text).toString('latin1');
const asEvent = (type: string, subject: string) => ({
  ...json,
  'ce-specversion': '1.0',
  'ce-type': type,
  'ce-time': '2026-11-01T00:00:00.000Z',
  'ce-id': 'C3D13FE58DE4C810.FMyUVURIY8',
  'ce-source': 'ceph:s3.us-east-1.images',
  'ce-subject': inHeader(subject),
});

const r2 = (action: string, key: string) => ({
  account: '3f4b7e3dcab231cbfdaa90a6a28bd548',
  action,
  bucket: 'images',
  object: { key, size: 65_536, eTag: 'c846ff7a18f28c2e262116d6e8719ef0' },
  eventTime: '2026-05-24T19:36:44.379Z',
});

const odd = 'golden/a+b ü%20.qcow2';

describe('204', () => {
  it.each<[string, Record<string, string>, object]>([
    ['AWS S3', json, { Records: [record('aws:s3', 'ObjectCreated:Put', form(odd).replaceAll('%2F', '/'))] }],
    ['MinIO', json, minio('s3:ObjectCreated:Put', odd)],
    ['Ceph', json, ceph('ObjectCreated:Put', odd)],
    ['Ceph with cloudevents=true', asEvent('com.amazonaws.ObjectCreated:Put', odd), ceph('ObjectCreated:Put', odd)],
    [
      'the CloudEvents adapter of S3',
      asEvent('com.amazonaws.s3.ObjectCreated:CompleteMultipartUpload', odd),
      record('aws:s3', 'ObjectCreated:CompleteMultipartUpload', form(odd)),
    ],
    [
      'the same in structured mode',
      { 'content-type': 'application/cloudevents+json' },
      {
        specversion: '1.0',
        type: 'com.amazonaws.s3.s3:ObjectCreated:Put',
        source: 'minio:s3..images',
        id: '1',
        subject: odd,
        datacontenttype: 'application/json',
        data: minio('s3:ObjectCreated:Put', odd),
      },
    ],
    ['Cloudflare R2', json, r2('PutObject', odd)],
    [
      'the Worker for R2',
      {
        ...json,
        'ce-specversion': '1.0',
        'ce-type': eventTypes.storedObjectChanged,
        'ce-id': '1',
        'ce-source': 'bullion.dev/r2-notifications/images',
      },
      { bucket: 'images', key: odd },
    ],
  ])('%s reports an object, and an image is created from it', async (_, headers, body) => {
    const world = createWorld();
    world.bucket.put(odd);
    expect((await world.post(body, headers)).status).toBe(204);
    expect(world.keys()).toEqual([odd]);
    expect(world.made()[0]?.spec.source.objectStore).toEqual({ bucketName: 'images', objectName: odd });
  });

  it.each<[string, string | object]>([
    ['the question whether anybody listens', ''],
    [
      'the test message of AWS',
      {
        Service: 'Amazon S3',
        Event: 's3:TestEvent',
        Time: '2014-10-13',
        Bucket: 'images',
        RequestId: '5',
        HostId: '8',
      },
    ],
    ['an object of another bucket', { ...r2('PutObject', 'golden/a.img'), bucket: 'other' }],
    ['an object beside the prefix', r2('PutObject', 'a.img')],
    ['tags', minio('s3:ObjectCreated:PutTagging', 'golden/a.img')],
  ])('to %s, and no image is created', async (_, body) => {
    const world = createWorld();
    world.bucket.put('golden/a.img');
    world.bucket.put('a.img');
    expect((await world.post(body)).status).toBe(204);
    expect(world.made()).toEqual([]);
  });

  it('to an object that is rejected, and records the reason in its namespace', async () => {
    const world = createWorld();
    world.bucket.put('golden/a.img');
    world.bucket.put('golden/a.img.json', '{"name":"A_B"}');
    for (const key of ['golden/a.img', 'golden/a.img.json'])
      expect((await world.post(r2('PutObject', key))).status).toBe(204);
    expect(world.made()).toEqual([]);
    expect(world.kube.all(kubeEvents)).toEqual([
      expect.objectContaining({
        reason: 'ObjectRefused',
        involvedObject: { apiVersion: 'v1', kind: 'Namespace', namespace, name: namespace },
        message: expect.stringMatching(/^object golden\/a.img of bucket images is not imported: .*lower-case letters/),
      }),
    ]);
    world.bucket.put('golden/a.img.json', '{"name":"a-b"}');
    await world.post(r2('PutObject', 'golden/a.img.json'));
    expect(world.made()[0]?.metadata.name).toMatch(/^a-b-[0-9a-f]{12}$/);
  });
});

describe('401', () => {
  it('to a plain notification without the token', async () => {
    const world = createWorld({}, 'shared');
    world.bucket.put('golden/a.img');
    const body = minio('s3:ObjectCreated:Put', 'golden/a.img');
    for (const authorization of ['', 'Bearer guessed', 'shared'])
      expect((await world.post(body, { ...json, authorization })).status).toBe(401);
    expect(world.made()).toEqual([]);
    expect((await world.post(body, { ...json, authorization: 'Bearer shared' })).status).toBe(204);
    expect(world.keys()).toEqual(['golden/a.img']);
  });
});

describe('400', () => {
  it.each<[string, string | object]>([
    ['a body that is not JSON', '{'],
    ['a body that no store sends', { hello: 'world' }],
    ['a body that is too large', ' '.repeat(2 ** 20 + 1)],
  ])('to %s', async (_, body) => expect((await createWorld().post(body)).status).toBe(400));
});

describe('503', () => {
  it('while the store is unreachable, and creates the image when the notification is sent again', async () => {
    const world = createWorld();
    world.bucket.put('golden/a.img');
    world.bucket.isAway = true;
    const answer = await world.post(r2('PutObject', 'golden/a.img'));
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    world.bucket.isAway = false;
    await world.post(r2('PutObject', 'golden/a.img'));
    expect(world.keys()).toEqual(['golden/a.img']);
  });
});

describe('an image of an object', () => {
  it('is described by key, metadata and sidecar files, and follows their changes', async () => {
    const world = createWorld();
    world.bucket.put('golden/a.img', 'bytes', { 'bullion-name': 'jammy', 'bullion-labels': 'os=ubuntu,tier=gold' });
    world.bucket.put('golden/a.img.sha256', `${'ab'.repeat(32)}  a.img\n`);
    await world.post(r2('PutObject', 'golden/a.img'));
    await world.finish();
    const [image] = world.made();
    expect(image).toMatchObject({
      metadata: { labels: { os: 'ubuntu', tier: 'gold' }, annotations: { 'bullion.dev/display-name': 'a.img' } },
      spec: { checksum: `sha256:${'ab'.repeat(32)}` },
    });
    const said = { displayName: 'Jammy', labels: { os: 'linux' } };
    world.bucket.put('golden/a.img.json', JSON.stringify(said));
    await world.post(r2('PutObject', 'golden/a.img.json'));
    expect(world.made()).toHaveLength(1);
    for (const { metadata } of [...world.made(), ...world.names()]) {
      expect(metadata.annotations?.['bullion.dev/display-name']).toBe('Jammy');
      expect([metadata.labels?.['os'], metadata.labels?.['tier']]).toEqual(['linux', undefined]);
    }
  });
});

type Step =
  | { readonly do: 'put' | 'remove'; readonly key: string }
  /** Sends notifications about so many of the unreported changes, last first, twice; or loses them. */
  | { readonly do: 'tell' | 'lose'; readonly count: number }
  | { readonly do: 'finish' | 'tick' };

const keyed = fc.constantFrom('golden/a.img', 'golden/b ü+%20.img', 'golden/a.img.sha256');
const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constantFrom('put' as const, 'put' as const, 'remove' as const), key: keyed }),
    fc.record({ do: fc.constantFrom('tell' as const, 'lose' as const), count: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ do: fc.constantFrom('finish' as const, 'tick' as const) }),
  ),
  { maxLength: 25 },
);

const play = async (world: World, steps: readonly Step[]): Promise<void> => {
  const untold: object[] = [];
  let changes = 0;
  for (const step of steps) {
    switch (step.do) {
      case 'put':
        changes += 1;
        world.bucket.put(step.key, step.key.endsWith('.sha256') ? `${changes}`.padStart(64, '0') : 'bytes');
        untold.push(minio('s3:ObjectCreated:Put', step.key));
        break;
      case 'remove':
        world.bucket.remove(step.key);
        untold.push(minio('s3:ObjectRemoved:Delete', step.key));
        break;
      case 'tell':
        for (const body of untold
          .splice(-step.count)
          .flatMap((one) => [one, one])
          .toReversed())
          expect((await world.post(body)).status).toBe(204);
        break;
      case 'lose':
        untold.splice(0, step.count);
        break;
      default:
        await world[step.do]();
    }
  }
};

/** The claim of the image for an object; `undefined`: there is no such object. */
const claimFor = async ({ bucket, rule, made }: World, key: string): Promise<string | undefined> => {
  if (!bucket.keys().includes(key)) return undefined;
  const place = { bucket: 'images', key };
  const { version } = describeObject(rule, key, await bucket.s3.head(place), await readSidecars(bucket.s3, place));
  const image = made().find(({ metadata }) => metadata.labels?.['bullion.dev/object-version'] === version);
  return `${image?.metadata.name}-image-pvc`;
};

describe('when notifications are repeated, reordered and lost', () => {
  it.each(['keep', 'delete'] as const)(
    'names resolve to what the store holds in the end (onDelete: %s)',
    async (onDelete) => {
      await fc.assert(
        fc.asyncProperty(steps, async (played) => {
          const world = createWorld({ onDelete });
          await play(world, played);
          // The last word on each key arrives at some time, by a repeat of the store or a listing.
          const keys = ['golden/a.img', 'golden/b ü+%20.img'];
          for (const key of keys) await world.post(minio('s3:ObjectRemoved:Delete', key));
          for (let round = 0; round < 3; round += 1) {
            for (const image of world.made()) if (image.status?.phase !== 'Available') await world.finish(image);
            await world.tick();
          }
          for (const key of keys) {
            const isOf = ({ metadata }: KubeObject) => metadata.annotations?.['bullion.dev/object-key'] === key;
            const [names, versions] = [world.names().filter(isOf), world.made().filter(isOf)];
            expect(versions.length).toBeLessThanOrEqual(2);
            // The images of a deleted object are those that existed.
            const kept = onDelete === 'keep' ? names.map(({ spec }) => spec.source.pvc?.name) : [];
            const claim = await claimFor(world, key);
            expect(names.map(({ spec }) => spec.source.pvc?.name)).toEqual(claim === undefined ? kept : [claim]);
            expect(onDelete === 'delete' && claim === undefined ? versions : []).toEqual([]);
          }
        }),
        { numRuns: 60 },
      );
    },
  );
});
