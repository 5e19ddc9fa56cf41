// One HTTP POST of an event to a URL. Called by send.ts and the broker.
import { type Dispatcher, request } from 'undici';
import type { Post } from '#events/post.ts';

export const createPost =
  (dispatcher?: Dispatcher): Post =>
  async (url, { headers, body }, signal) => {
    const response = await request(url, {
      method: 'POST',
      headers: { ...headers },
      body,
      signal,
      // The signal alone says how long to wait.
      headersTimeout: 0,
      bodyTimeout: 0,
      ...(dispatcher === undefined ? {} : { dispatcher }),
    });
    const bytes = new Uint8Array(await response.body.arrayBuffer());
    return { status: response.statusCode, headers: toHeaders(response.headers), body: bytes };
  };

const toHeaders = (headers: Dispatcher.ResponseData['headers']): Headers => {
  const result = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const one of [value ?? []].flat()) result.append(name, one);
  }
  return result;
};
