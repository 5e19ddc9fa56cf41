// A store and an API that fail randomly, before or after the effect, and functions that are killed by it.
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { AppError, Conflict, Unavailable } from '#shared/runtime/errors.ts';
import type { Random } from '#test/support/random.ts';

/** The process of the function was killed: nothing after this point happened. */
class Died extends Error {}

const faultOf = (random: Random): Error =>
  random.pick([
    new Unavailable('503 SlowDown'),
    new S3Failure('Denied', '403 AccessDenied'),
    new Unavailable('the connection was cut'),
    new Died('the function died'),
  ]);

/** A fault occurs before the effect, or after it, when the response is lost. */
const shaky =
  <A extends unknown[], R>(random: Random, odds: () => number, call: (...args: A) => Promise<R>) =>
  async (...args: A): Promise<R> => {
    if (random.chance(odds())) throw faultOf(random);
    const result = await call(...args);
    if (random.chance(odds())) throw faultOf(random);
    return result;
  };

export const shakyStore = (store: Store, random: Random, odds: () => number): Store => ({
  read: shaky(random, odds, (...given: Parameters<Store['read']>) => store.read(...given)),
  sizeOf: shaky(random, odds, (...given: Parameters<Store['sizeOf']>) => store.sizeOf(...given)),
  write: shaky(random, odds, (...given: Parameters<Store['write']>) => store.write(...given)),
  remove: shaky(random, odds, (...given: Parameters<Store['remove']>) => store.remove(...given)),
  list: async function* list(prefix) {
    if (random.chance(odds())) throw faultOf(random);
    if (random.chance(odds())) return;
    for await (const entry of store.list(prefix)) {
      yield entry;
      if (random.chance(odds() / 4)) throw faultOf(random);
    }
  },
});

const apiFaultOf = (random: Random): Error =>
  random.pick([new Unavailable('the API does not answer'), new Conflict('changed by others'), new Died('died')]);

export const shakyKube = (kube: KubeClient, random: Random, odds: () => number): KubeClient =>
  new Proxy(kube, {
    get: (target, name: keyof KubeClient) => {
      const method: unknown = target[name];
      if (typeof method !== 'function' || name === 'listAll' || name === 'watch') return method;
      return async (...args: unknown[]) => {
        if (random.chance(odds())) throw apiFaultOf(random);
        const result: unknown = await Reflect.apply(method, target, args);
        const isWrite = name !== 'get' && name !== 'list';
        if (isWrite && random.chance(odds())) throw new Died('died');
        return result;
      };
    },
  });

/** Kills and AppErrors are for the next attempt; any other exception is a bug. */
export const logFailure = async (work: () => Promise<unknown>): Promise<void> => {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Died || error instanceof AppError)) throw error;
  }
};
