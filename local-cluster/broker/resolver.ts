// Destination → URL or function. The local cluster registers its functions by name; anything else is a URL.
import { type FetchHandler, createHandlerPost } from '#events/post.ts';
import { createPost } from '#events/send.ts';
import type { Target } from '#local-cluster/broker/dispatch.ts';
import type { Destination } from '#local-cluster/broker/manifest.ts';

/** A function in this process, or the URL of a separate one. */
export type Subscriber = FetchHandler | string;

/** Resolves names at each call, so that a function may be replaced while the broker runs. */
export const createResolver = (subscribers: ReadonlyMap<string, Subscriber>) => {
  const posts = createPost();
  return ({ ref, uri }: Destination, namespace: string): Target | undefined => {
    if (ref === undefined) return uri === undefined ? undefined : { url: uri, post: posts };
    if (!subscribers.has(ref.name)) return undefined;
    const base = `http://${ref.name}.${ref.namespace ?? namespace}.svc.cluster.local`;
    return {
      url: new URL(uri ?? '/', base).href,
      post: async (url, message, signal) => {
        const subscriber = subscribers.get(ref.name);
        if (subscriber === undefined) throw new Error(`${ref.name} does not run`);
        if (typeof subscriber !== 'string') return createHandlerPost(subscriber)(url, message, signal);
        return posts(new URL(new URL(url).pathname, subscriber).href, message, signal);
      },
    };
  };
};
