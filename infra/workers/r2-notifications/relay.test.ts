import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { QueueAnswer, QueueMessage } from './notify.ts';
import { relay } from '#infra/workers/r2-notifications/relay.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { anR2Message } from '#test/support/r2.ts';

interface Run {
  /** The result for each message of the queue. */
  readonly fates: readonly string[];
  readonly told: readonly string[];
  readonly buried: readonly unknown[];
  readonly mostAtOnce: number;
}

const run = async (
  bodies: readonly unknown[],
  answerTo: (key: string) => QueueAnswer,
  options: { readonly isGraveFull?: boolean } = {},
): Promise<Run> => {
  const fates: string[] = bodies.map(() => '');
  const told: string[] = [];
  const buried: unknown[] = [];
  let open = 0;
  let mostAtOnce = 0;
  const messages = bodies.map((body, index): QueueMessage => ({
    id: String(index),
    timestamp: new Date(0),
    body,
    attempts: 1,
    ack: () => void (fates[index] += 'ack'),
    retry: ({ delaySeconds } = {}) => void (fates[index] += `retry ${delaySeconds}`),
  }));
  const deps = {
    notify: async ({ key }: { readonly key: string }) => {
      told.push(key);
      mostAtOnce = Math.max(mostAtOnce, (open += 1));
      await new Promise((resolve) => setImmediate(resolve));
      open -= 1;
      return answerTo(key);
    },
    deadLetters: {
      send: async (body: unknown) => {
        if (options.isGraveFull === true) throw new Error('over quota');
        buried.push(body);
      },
    },
    retrySeconds: 5,
    log: silentLogger,
  };
  await relay(deps, { queue: 'q', messages });
  return { fates, told, buried, mostAtOnce };
};

const status = (code: number): QueueAnswer => ({ kind: 'answered', status: code, message: '' });
const taken = () => status(204);

describe('a batch', () => {
  it('reports each object once, and settles all messages about it alike', async () => {
    const bodies = ['a', 'b', 'a', 'c', 'a'].map((key) => anR2Message('PutObject', key));
    const { told, fates } = await run(bodies, (key) => status(key === 'a' ? 503 : 204));
    expect(told).toEqual(['a', 'b', 'c']);
    expect(fates).toEqual(['retry 5', 'ack', 'retry 5', 'ack', 'retry 5']);
  });

  it('does not depend on the order of its messages', async () => {
    const bodies = [anR2Message('DeleteObject', 'a'), anR2Message('PutObject', 'a')];
    expect((await run(bodies, taken)).told).toEqual(['a']);
  });

  it.each([
    ['an action that is not known', { ...anR2Message('PutObject', 'a'), action: 'PutBucketLifecycle' }],
    ['the test message of AWS', { Service: 'Amazon S3', Event: 's3:TestEvent', Bucket: 'images' }],
  ])('acknowledges %s without a notification', async (_, body) => {
    expect(await run([body], taken)).toMatchObject({ fates: ['ack'], told: [], buried: [] });
  });

  const record = (key: string) => ({
    eventSource: 'aws:s3',
    eventName: 'ObjectCreated:Put',
    s3: { bucket: { name: 'images' }, object: { key } },
  });
  it.each([
    ['what R2 does not send', { hello: 'world' }],
    ['a text', 'PutObject'],
    ['several objects in one', { Records: [record('a'), record('b')] }],
  ])('moves %s to the dead letters unchanged', async (_, body) => {
    expect(await run([body], taken)).toMatchObject({ fates: ['ack'], told: [], buried: [body] });
  });

  it('keeps rejected messages until they are stored as dead letters', async () => {
    const body = anR2Message('PutObject', 'a');
    expect(await run([body], () => status(400))).toMatchObject({ fates: ['ack'], buried: [body] });
    expect(await run([body], () => status(400), { isGraveFull: true })).toMatchObject({ fates: ['retry 5'] });
  });

  it('settles every message exactly once, whatever the result, with six requests at a time', async () => {
    const message = fc.oneof(
      fc.constantFrom('a', 'b', 'ü/ #?%2F+', '\n').map((key) => anR2Message('PutObject', key)),
      fc.string({ unit: 'grapheme', minLength: 1 }).map((key) => anR2Message('DeleteObject', key)),
      fc.jsonValue(),
    );
    const code = fc.constantFrom(200, 204, 301, 400, 401, 404, 413, 429, 500, 503);
    await fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 40 }), fc.func(code), async (bodies, codeOf) => {
        const { fates, told, mostAtOnce } = await run(bodies, (key) => status(codeOf(key)));
        expect(fates.every((fate) => /^(ack|retry \d+)$/.test(fate))).toBe(true);
        expect(new Set(told).size).toBe(told.length);
        expect(mostAtOnce).toBeLessThanOrEqual(6);
      }),
      { numRuns: 50 },
    );
  });
});
