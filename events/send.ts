// Senders over sockets: a POST by undici, with the token that Knative mounts. Used by functions, the forwarder, the ping source and the broker.
import { readFile } from 'node:fs/promises';
import { type Send, type SenderOptions, createSenderOver } from '#events/sender.ts';
import { type Dispatcher, request } from 'undici';
import type { Post } from '#events/post.ts';

/** One HTTP POST of an event to a URL. */
export const createPost =
  (dispatcher?: Dispatcher): Post =>
  async (url, { headers, body }, signal) => {
    const response = await request(url, {
      method: 'POST',
      headers: { ...headers },
      body,
      signal,
      // Only the signal limits the time.
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

export interface SocketSenderOptions extends Omit<SenderOptions, 'post' | 'token'> {
  /** Unset: over a socket. */
  readonly post?: SenderOptions['post'];
  /** File with a bearer token; it may be missing, and changes before the token expires. */
  readonly tokenFile?: string | undefined;
}

/** None when there is no file: whether a token is required is up to the receiver. */
const tokenIn = async (file: string): Promise<string | undefined> => {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch {
    return undefined;
  }
};

export const createSender = ({ post = createPost(), tokenFile, ...options }: SocketSenderOptions): Send =>
  createSenderOver({
    ...options,
    post,
    ...(tokenFile === undefined ? {} : { token: () => tokenIn(tokenFile) }),
  });
