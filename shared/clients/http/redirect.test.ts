import { describe, expect, it } from 'vitest';
import type { HttpClient } from '#shared/clients/http/client.ts';
import { followRedirects } from '#shared/clients/http/redirect.ts';

/** Each address leads to the next. */
const through = (...hops: readonly string[]): HttpClient => ({
  get: ({ url }) => {
    const next = hops[hops.indexOf(url.href) + 1];
    const headers = next === undefined ? {} : { location: next };
    const body = (async function* none() {})() as AsyncIterable<Buffer>;
    const rest = { headers, body, pour: () => Promise.resolve(), discard: () => {} };
    return Promise.resolve({ status: next === undefined ? 200 : 307, ...rest });
  },
  close: () => Promise.resolve(),
});

const follow = (hops: readonly string[], plainHosts?: readonly string[]) =>
  followRedirects(through(...hops), { origin: { url: new URL(hops[0]!), headers: {} }, headers: {}, plainHosts });

describe('redirects from https to plain http', () => {
  it.each([
    [['https://a.example/x', 'http://b.example/x'], undefined],
    [['https://a.example/x', 'http://a.example/x'], []],
    [['http://a.example/x', 'https://b.example/x', 'http://c.example/x'], ['a.example']],
    [['https://a.example/x', 'http://b.example:5000/x'], ['b.example']],
  ])('are rejected: %j', async (hops, plainHosts) => {
    await expect(follow(hops, plainHosts)).rejects.toMatchObject({
      code: 'RedirectRefused',
      message: expect.stringMatching(/redirects from https to plain http at [\w.:]+, .*PLAIN_REGISTRIES/),
    });
  });

  it.each([
    [['https://a.example/x', 'https://b.example/x'], undefined],
    [['http://a.example/x', 'http://b.example/x'], undefined],
    [['http://a.example/x', 'https://b.example/x'], undefined],
    [['https://a.example/x', 'http://b.example:5000/x'], ['b.example:5000']],
  ])('are followed in all other cases: %j', async (hops, plainHosts) => {
    expect((await follow(hops, plainHosts)).final.url.href).toBe(hops.at(-1));
  });
});
