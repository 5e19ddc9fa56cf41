import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { createHttpClient } from '#shared/clients/http/client.ts';
import { createHttpSource } from '#shared/transfer/source/http/read.ts';
import { type ByteSource, headBytes } from '#shared/transfer/source/source.ts';
import {
  type Answer,
  type FileOptions,
  type Origin,
  type OriginRequest,
  fileAnswer,
  startOrigin,
} from '#test/support/origin.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

const image = randomBytes(3 * 1024 * 1024 + 17);

interface Setup {
  readonly origin: Origin;
  readonly source: ByteSource;
  readonly retries: unknown[];
  readonly waits: number[];
}

const setup = async (
  respond: (request: OriginRequest) => Answer,
  options: { retries?: number; path?: string } = {},
): Promise<Setup> => {
  const origin = await startOrigin(respond);
  const client = createHttpClient({ isRefused: createAddressPolicy(['127.0.0.0/8']), idleMs: 2_000 });
  const retries: unknown[] = [];
  const waits: number[] = [];
  const source = createHttpSource({
    client,
    url: new URL(options.path ?? '/disk', origin.url),
    secretHeaders: {},
    retries: options.retries ?? 2,
    signal: new AbortController().signal,
    onRetry: (error) => retries.push(error),
    wait: async (ms) => void waits.push(ms),
  });
  closing.push(
    () => source.close(),
    () => origin.close(),
  );
  return { origin, source, retries, waits };
};

const collect = async (source: ByteSource): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for await (const part of source.stream()) parts.push(part);
  return Buffer.concat(parts);
};

const honest =
  (options: FileOptions = {}, bytes = image) =>
  (request: OriginRequest): Answer =>
    fileAnswer(request, bytes, options);

describe('probe', () => {
  it.each<[string, FileOptions, object]>([
    ['ranges and a strong tag', {}, { size: image.length, hasRanges: true, isPinned: true }],
    ['a weak tag', { etag: 'W/"v1"' }, { size: image.length, hasRanges: true, isPinned: false }],
    ['no ranges', { ranges: false }, { size: image.length, hasRanges: false, isPinned: true }],
    ['no length', { ranges: false, chunked: true, etag: null }, { size: undefined, hasRanges: false, isPinned: false }],
  ])('of a server with %s', async (_, options, expected) => {
    const { source } = await setup(honest(options));
    const facts = await source.probe();
    expect(facts).toMatchObject(expected);
    expect(facts.head.equals(image.subarray(0, headBytes))).toBe(true);
    expect(facts.isWhole).toBe(false);
  });

  it.each([
    ['with ranges', {}],
    ['without ranges', { ranges: false }],
    ['without a length', { ranges: false, chunked: true }],
  ])('reads a small file completely %s', async (_, options) => {
    const small = Buffer.from('small');
    const { source } = await setup(honest(options, small));
    expect(await source.probe()).toMatchObject({ size: 5, isWhole: true, head: small });
  });

  it('reads an empty file, although its range is rejected with 416', async () => {
    const { source } = await setup(honest({}, Buffer.alloc(0)));
    expect(await source.probe()).toMatchObject({ size: 0, isWhole: true });
  });

  it.each([
    ['a range that was not requested', { 'content-range': `bytes 5-99/${image.length}` }],
    ['a range of unknown total', { 'content-range': `bytes 0-${headBytes - 1}/*` }],
    ['several ranges', { 'content-type': 'multipart/byteranges; boundary=x' }],
  ])('falls back to a plain request when the server answers with %s', async (_, headers) => {
    const { source } = await setup((request) =>
      request.headers.range === undefined
        ? fileAnswer(request, image)
        : { status: 206, headers, body: image.subarray(0, headBytes) },
    );
    expect(await source.probe()).toMatchObject({ size: image.length, hasRanges: false });
  });

  it.each([
    [404, 'SourceNotFound', 1],
    [403, 'SourceForbidden', 1],
    [503, 'SourceUnavailable', 3],
    [429, 'SourceUnavailable', 3],
  ])('reports status %i, after %s', async (status, code, requests) => {
    const { source, origin } = await setup(() => ({ status, headers: { 'retry-after': '0' } }));
    await expect(source.probe()).rejects.toMatchObject({ code });
    expect(origin.requests).toHaveLength(requests);
  });

  it('waits as long as the server asks', async () => {
    const { source, waits } = await setup((request) =>
      request.index === 0 ? { status: 503, headers: { 'retry-after': '120' } } : fileAnswer(request, image),
    );
    await source.probe();
    expect(waits).toEqual([120_000]);
  });
});

describe('stream', () => {
  it.each<[string, FileOptions]>([
    ['ranges', {}],
    ['a weak tag', { etag: 'W/"v1"' }],
    ['no ranges', { ranges: false }],
    ['no length', { ranges: false, chunked: true, etag: null }],
    ['a content encoding that was not requested', { headers: { 'content-encoding': 'gzip' } }],
  ])('returns the whole file from a server with %s', async (_, options) => {
    const { source } = await setup(honest(options));
    await source.probe();
    expect((await collect(source)).equals(image)).toBe(true);
  });

  /** Cuts the first `times` answers to requests that are not the probe. */
  const cutting = (times: number, options: FileOptions = {}) => {
    let cuts = 0;
    return (request: OriginRequest): Answer => {
      const answer = fileAnswer(request, image, options);
      if (request.index === 0 || cuts >= times) return answer;
      cuts++;
      return { ...answer, cutAfter: 700_000 };
    };
  };

  it('does not continue with bytes that do not follow what was read', async () => {
    const { source } = await setup((request) => {
      const answer = fileAnswer(request, image);
      if (request.index === 0) return answer;
      if (request.headers['if-range'] === undefined) return { ...answer, cutAfter: 700_000 };
      // The requested range by its headers, and the beginning of the file by its bytes.
      return { ...answer, body: image.subarray(0, answer.body?.length) };
    });
    await source.probe();
    await expect(collect(source)).rejects.toMatchObject({ code: 'SourceChanged', startOver: true });
  });

  it('resumes at its position after every cut', async () => {
    const { source, origin, retries } = await setup(cutting(3), { retries: 4 });
    await source.probe();
    expect((await collect(source)).equals(image)).toBe(true);
    expect(retries).toHaveLength(3);
    const resumed = origin.requests.slice(2);
    expect(resumed.every(({ headers }) => headers['if-range'] === '"v1"')).toBe(true);
    expect(Number(/\d+/.exec(resumed[0]?.headers.range ?? '')?.[0])).toBeGreaterThan(0);
    expect(source.receivedBytes()).toBeLessThan(image.length + headBytes + 4 + 3 * 64 * 1024);
  });

  it('resumes from a server without ranges by skipping what was read', async () => {
    const { source } = await setup(cutting(1, { ranges: false }));
    await source.probe();
    expect((await collect(source)).equals(image)).toBe(true);
  });

  it('resumes after a stall', async () => {
    const { source } = await setup((request) => ({
      ...fileAnswer(request, image),
      ...(request.index === 1 ? { stallAfter: 500_000 } : {}),
    }));
    await source.probe();
    expect((await collect(source)).equals(image)).toBe(true);
  });

  it('requests a restart when a weak ETag cannot prove that the rest is of the same object', async () => {
    const { source } = await setup(cutting(1, { etag: 'W/"v1"' }));
    await source.probe();
    await expect(collect(source)).rejects.toMatchObject({
      code: 'SourceInterrupted',
      startOver: true,
      retryable: true,
    });
  });

  it('requests a restart when the object changed between two requests', async () => {
    const other = randomBytes(image.length);
    const { source } = await setup((request) => {
      if (request.index < 2)
        return { ...fileAnswer(request, image), ...(request.index === 1 ? { cutAfter: 700_000 } : {}) };
      return fileAnswer(request, other, { etag: '"v2"' });
    });
    await source.probe();
    await expect(collect(source)).rejects.toMatchObject({ code: 'SourceChanged', startOver: true });
  });

  it('requests a restart when the object changed between probe and download', async () => {
    const { source } = await setup((request) =>
      fileAnswer(request, image, { etag: request.index === 0 ? '"v1"' : '"v2"' }),
    );
    await source.probe();
    await expect(collect(source)).rejects.toMatchObject({ code: 'SourceChanged', startOver: true });
  });

  it('requests a restart when the object became smaller', async () => {
    const { source } = await setup((request) => {
      if (request.index < 2)
        return { ...fileAnswer(request, image), ...(request.index === 1 ? { cutAfter: 700_000 } : {}) };
      return fileAnswer(request, image.subarray(0, 1000));
    });
    await source.probe();
    await expect(collect(source)).rejects.toMatchObject({ code: 'SourceChanged', startOver: true });
  });

  it('does not mistake a shorter body for the file', async () => {
    const { source } = await setup((request) =>
      request.index === 0
        ? fileAnswer(request, image)
        : { headers: { etag: '"v1"' }, body: image.subarray(0, 1_000_000) },
    );
    await source.probe();
    await expect(collect(source)).rejects.toMatchObject({ code: 'SourceInterrupted' });
  });

  it('does not mistake a longer body for the file', async () => {
    const { source } = await setup((request) =>
      request.index === 0
        ? fileAnswer(request, image)
        : { headers: { etag: '"v1"' }, body: Buffer.concat([image, Buffer.from('more')]) },
    );
    await source.probe();
    await expect(collect(source)).rejects.toMatchObject({ code: 'SourceInterrupted', startOver: true });
  });

  it('does not mistake another range for the requested one', async () => {
    const { source } = await setup((request) => {
      if (request.index < 2)
        return { ...fileAnswer(request, image), ...(request.index === 1 ? { cutAfter: 700_000 } : {}) };
      const headers = { etag: '"v1"', 'content-range': `bytes 0-${image.length - 1}/${image.length}` };
      return { status: 206, headers, body: image };
    });
    await source.probe();
    await expect(collect(source)).rejects.toMatchObject({ code: 'SourceInterrupted' });
  });

  it('fails after its retries', async () => {
    const { source, retries } = await setup((request) =>
      request.index === 0 ? fileAnswer(request, image) : { status: 500 },
    );
    await source.probe();
    await expect(collect(source)).rejects.toMatchObject({ code: 'SourceUnavailable' });
    expect(retries).toHaveLength(2);
  });

  it('follows the redirects once, and again when their target has expired', async () => {
    let epoch = 1;
    let redirects = 0;
    const { source, origin } = await setup((request) => {
      if (request.path === '/disk') {
        redirects++;
        return { status: 302, headers: { location: `/signed?epoch=${epoch}` } };
      }
      if (request.path !== `/signed?epoch=${epoch}`) return { status: 403 };
      const answer = fileAnswer(request, image);
      if (request.headers.range?.startsWith('bytes=0') === true) return answer;
      if (request.headers.range !== undefined) return answer;
      epoch = 2;
      return { ...answer, cutAfter: 700_000 };
    });
    await source.probe();
    expect((await collect(source)).equals(image)).toBe(true);
    expect(redirects).toBe(2);
    expect(origin.requests.filter(({ path }) => path === '/signed?epoch=1')).toHaveLength(3);
  });
});

describe('a signed address that expires during the download', () => {
  const query = 'X-Amz-Date=20200101T000000Z&X-Amz-Expires=60&X-Amz-Signature=s3cret';
  const bodies = {
    XML: ['application/xml', '<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>'],
    text: ['text/plain', `Request has expired: /disk?${query}`],
    HTML: ['text/html', `<html><title>Request has expired</title><body>/disk?${query}</body></html>`],
  } as const;
  const kinds = Object.keys(bodies) as (keyof typeof bodies)[];
  const refusal = (kind: keyof typeof bodies): Answer => {
    const [type, text] = bodies[kind];
    return { status: 403, headers: { 'content-type': type }, body: Buffer.from(text) };
  };

  it.each(kinds)('is reported with its expiry and the %s of the server, without its query', async (kind) => {
    const { source } = await setup(
      (request) => (request.index < 2 ? { ...fileAnswer(request, image), cutAfter: 700_000 } : refusal(kind)),
      { path: `/disk?${query}` },
    );
    await source.probe();
    const fault: unknown = await collect(source).catch((error: unknown) => error);
    expect(fault).toMatchObject({
      code: 'SourceForbidden',
      message: expect.stringMatching(
        /\/disk answered 403 \([^?]*Request has expired[^?]*\): the signed address expired at 2020-01-01T00:01:00\.000Z: create a new one/,
      ),
    });
    expect(String(fault)).not.toMatch(/X-Amz|s3cret/);
  });

  const expiry = 'expired at 2020-01-01T00:01:00\\.000Z';
  const outcomes = [
    [2, 'SourceUnavailable', `/disk redirected to an address that ${expiry} \\(.*Request has expired.*\\)$`],
    [
      5,
      'SourceForbidden',
      `/signed, which .*/disk redirects to, answered 403 \\(.*Request has expired.*\\): the signed address ${expiry}$`,
    ],
  ] as const;
  it.each(kinds.flatMap((kind) => outcomes.map((outcome) => [kind, ...outcome] as const)))(
    'is reported when the server redirects to it, with the %s and %d retries, as %s',
    async (kind, retries, code, says) => {
      const { source } = await setup(
        (request) => {
          if (request.path === '/disk') return { status: 302, headers: { location: `/signed?${query}` } };
          return request.index < 4 ? { ...fileAnswer(request, image), cutAfter: 700_000 } : refusal(kind);
        },
        { retries },
      );
      await source.probe();
      const fault: unknown = await collect(source).catch((error: unknown) => error);
      expect(fault).toMatchObject({ code, message: expect.stringMatching(says) });
      expect(String(fault)).not.toMatch(/X-Amz|s3cret/);
    },
  );
});

describe('read', () => {
  it('returns exact ranges', async () => {
    const { source } = await setup(honest());
    await source.probe();
    expect((await source.read(1_000_000, 12_345)).equals(image.subarray(1_000_000, 1_012_345))).toBe(true);
    expect(await source.read(5, 0)).toHaveLength(0);
  });

  it('retries when the connection is cut', async () => {
    const { source } = await setup((request) => ({
      ...fileAnswer(request, image),
      ...(request.index === 1 ? { cutAfter: 100 } : {}),
    }));
    await source.probe();
    expect((await source.read(10, 1000)).equals(image.subarray(10, 1010))).toBe(true);
  });

  it.each<[string, Answer, string]>([
    ['the whole file', { headers: { etag: '"v1"' }, body: image }, 'SourceChanged'],
    ['416', { status: 416 }, 'SourceChanged'],
    [
      'another tag',
      {
        status: 206,
        headers: { etag: '"v2"', 'content-range': `bytes 10-19/${image.length}` },
        body: image.subarray(0, 10),
      },
      'SourceChanged',
    ],
    [
      'another size',
      { status: 206, headers: { etag: '"v1"', 'content-range': 'bytes 10-19/500' }, body: image.subarray(0, 10) },
      'SourceChanged',
    ],
    [
      'another range',
      {
        status: 206,
        headers: { etag: '"v1"', 'content-range': `bytes 11-20/${image.length}` },
        body: image.subarray(0, 10),
      },
      'SourceInterrupted',
    ],
    [
      'too few bytes',
      {
        status: 206,
        headers: { etag: '"v1"', 'content-range': `bytes 10-19/${image.length}` },
        body: image.subarray(0, 9),
      },
      'SourceInterrupted',
    ],
    [
      'too many bytes',
      {
        status: 206,
        headers: { etag: '"v1"', 'content-range': `bytes 10-19/${image.length}`, 'transfer-encoding': 'chunked' },
        body: image.subarray(0, 11),
      },
      'SourceInterrupted',
    ],
  ])('rejects %s', async (_, answer, code) => {
    const { source } = await setup((request) => (request.index === 0 ? fileAnswer(request, image) : answer), {
      retries: 1,
    });
    await source.probe();
    await expect(source.read(10, 10)).rejects.toMatchObject({ code });
  });

  it('is not available any more once the server stopped supporting it', async () => {
    const { source } = await setup((request) => fileAnswer(request, image, { ranges: request.index === 0 }));
    await source.probe();
    await expect(source.read(10, 10)).rejects.toMatchObject({ startOver: true });
    expect(await source.probe()).toMatchObject({ hasRanges: false });
  });
});
