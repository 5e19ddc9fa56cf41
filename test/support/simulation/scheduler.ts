// Runs processes of a simulation one Kubernetes call at a time, in an order determined by a seed: every interleaving of passes is possible and
// reproducible. A process can be killed between any two calls, or after a call took effect and before it gets the answer.
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { KubeFault } from '#test/support/memory-kube.ts';

export type Verdict =
  | { readonly is: 'go' }
  | { readonly is: 'kill' }
  | { readonly is: 'fault'; readonly fault: KubeFault };

export interface Process {
  readonly name: string;
  /** Resolves when it ends; `killed` if it died. */
  readonly ended: Promise<'done' | 'killed' | { readonly error: unknown }>;
}

interface Waiting {
  readonly process: string;
  readonly call: string;
  release(verdict: Verdict): void;
}

export interface Scheduler {
  /** Starts `run` with a client whose every call waits for its turn. */
  spawn(name: string, run: (kube: KubeClient) => Promise<unknown>): Process;
  /** Calls that wait for their turn. */
  readonly waiting: readonly Waiting[];
  /** Waits until every process waits for its turn or has ended. */
  settle(): Promise<void>;
  /** Releases the `index`-th waiting call, fails it, or kills its process. */
  release(index: number, verdict: Verdict): Promise<void>;
}

class Killed extends Error {}

/** Calls that read and write; other calls are passed through. */
const gatedMethods = ['get', 'list', 'create', 'replace', 'mergePatch', 'delete'] as const;

/** Turns of the event loop that promises between two calls may need. They do no real I/O, so few are enough. */
const turnsToSettle = 3;

/** `clientOf` returns the client of a process by its name. */
export const createScheduler = (clientOf: (process: string) => KubeClient): Scheduler => {
  const waiting: Waiting[] = [];

  const settle = async () => {
    for (let turn = 0; turn < turnsToSettle; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };

  const gate = async <R>(process: string, call: string, effect: () => Promise<R>, die: () => void): Promise<R> => {
    const verdict = await new Promise<Verdict>((release) => waiting.push({ process, call, release }));
    if (verdict.is === 'kill') {
      die();
      return new Promise(() => {});
    }
    if (verdict.is === 'go') return effect();
    if (verdict.fault.when === 'before') return failWith(verdict.fault.error, die);
    await effect();
    return failWith(verdict.fault.error, die);
  };

  const failWith = (error: Error, die: () => void): Promise<never> => {
    if (!(error instanceof Killed)) return Promise.reject(error);
    die();
    return new Promise(() => {});
  };

  const gated = (process: string, die: () => void): KubeClient => {
    const kube = clientOf(process);
    const client = { ...kube } as KubeClient & Record<string, unknown>;
    for (const method of gatedMethods) {
      const real = kube[method] as (...args: unknown[]) => Promise<unknown>;
      client[method] = ((...args: unknown[]) => {
        const [type, target] = args as [{ plural: string }, { name?: string; metadata?: { name: string } } | undefined];
        const call = `${method} ${type.plural}/${target?.name ?? target?.metadata?.name ?? ''}`;
        return gate(process, call, () => real(...args), die);
      }) as never;
    }
    client.listAll = async function* listAll(type, options = {}) {
      yield* (await client.list(type, options)).items;
    };
    return client;
  };

  return {
    waiting,
    settle,
    spawn: (name, run) => {
      const { promise, resolve } = Promise.withResolvers<'done' | 'killed' | { readonly error: unknown }>();
      const client = gated(name, () => resolve('killed'));
      run(client).then(
        () => resolve('done'),
        (error: unknown) => resolve({ error }),
      );
      return { name, ended: promise };
    },
    release: async (index, verdict) => {
      const [next] = waiting.splice(index, 1);
      next?.release(verdict);
      await settle();
    },
  };
};

/** The answer never arrives: the process dies right after the call took effect. */
export const deathAfterEffect: Verdict = { is: 'fault', fault: { error: new Killed(), when: 'after' } };
