// Senders of functions and sources: over sockets, with the token that Knative mounts. Used by functions, the forwarder and the ping source.
import { readFile } from 'node:fs/promises';
import { type Send, type SenderOptions as AnyOptions, createSenderOver } from '#events/sender.ts';
import { createPost } from '#events/undici-post.ts';

export interface SenderOptions extends Omit<AnyOptions, 'post' | 'token'> {
  /** Left out: over a socket. */
  readonly post?: AnyOptions['post'];
  /** File with a bearer token; it may be missing, and changes before it expires. */
  readonly tokenFile?: string | undefined;
}

/** None where there is no file: whether one is asked for is the receiver's to say. */
const tokenIn = async (file: string): Promise<string | undefined> => {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch {
    return undefined;
  }
};

export const createSender = ({ post = createPost(), tokenFile, ...options }: SenderOptions): Send =>
  createSenderOver({
    ...options,
    post,
    ...(tokenFile === undefined ? {} : { token: () => tokenIn(tokenFile) }),
  });
