// The client of functions: its packages are loaded with the first request, because that takes longer than the rest of the start.
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Unavailable, messageOf } from '#shared/runtime/errors.ts';

export interface LateKubeClient extends KubeClient {
  /** Loads what the first request needs. Throws Unavailable if the configuration cannot be read. */
  readonly warm: () => Promise<void>;
}

/** Creates a client for a kubeconfig; without a path, for the configuration of the pod or user. */
export type Connect = (kubeconfig: string | undefined) => KubeClient | Promise<KubeClient>;

const overTheNetwork: Connect = async (kubeconfig) => {
  const { createKubeClient, loadKubeConfig } = await import('#shared/clients/kube/create.ts');
  return createKubeClient(loadKubeConfig(kubeconfig));
};

/** Every request throws Unavailable while the configuration cannot be read; the next one reads it again. */
export const createLateKubeClient = (kubeconfig?: string, connect: Connect = overTheNetwork): LateKubeClient => {
  let loading: Promise<KubeClient> | undefined;
  const load = async (): Promise<KubeClient> => connect(kubeconfig);
  const client = (): Promise<KubeClient> =>
    (loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw new Unavailable(`the configuration for the Kubernetes API cannot be used: ${messageOf(error)}`, {
        cause: error,
      });
    }));
  return {
    warm: async () => void (await client()),
    get: async (...given) => (await client()).get(...given),
    list: async (...given) => (await client()).list(...given),
    listAll: async function* listAll(...given) {
      yield* (await client()).listAll(...given);
    },
    create: async (...given) => (await client()).create(...given),
    replace: async (...given) => (await client()).replace(...given),
    mergePatch: async (...given) => (await client()).mergePatch(...given),
    jsonPatch: async (...given) => (await client()).jsonPatch(...given),
    apply: async (...given) => (await client()).apply(...given),
    delete: async (...given) => (await client()).delete(...given),
    watch: async function* watch(...given) {
      yield* (await client()).watch(...given);
    },
    logs: async function* logs(...given) {
      yield* (await client()).logs(...given);
    },
    raw: async (request) => (await client()).raw(request),
  };
};
