// Runs an ApiServerSource from its manifest: waits for its kinds, then forwards their changes. Started by the local cluster for each manifest.
import { type Sleep, sleep as realSleep } from '#events/sender.ts';
import { type Forwarder, startForwarder } from '#events/forward/forwarder.ts';
import { parseApiServerSource, resolveSource } from '#events/forward/source.ts';
import type { Post } from '#events/post.ts';
import { createSender } from '#events/send.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

export interface SourceOptions {
  readonly client: KubeClient;
  /** Of kind ApiServerSource. Its `spec.sink` is ignored: events are sent to `sink`. */
  readonly manifest: unknown;
  readonly sink: string;
  readonly post?: Post;
  readonly replay?: 'none' | 'add' | undefined;
  /** Milliseconds between two checks for a kind that is not served yet. Default: one second. */
  readonly lookAgainMs?: number | undefined;
  readonly log: Logger;
  readonly sleep?: Sleep;
}

/** Throws InvalidInput when the manifest is invalid. Waits for a kind that is not served, as Knative's adapter restarts until it is. */
export const startSource = (options: SourceOptions): Forwarder => {
  const { client, log, replay = 'none', lookAgainMs = 1_000, sleep = realSleep } = options;
  const source = parseApiServerSource(options.manifest);
  const { name, namespace } = source.metadata;
  const send = createSender({
    sink: options.sink,
    // Knative's source also waits without limit: giving up on a broker that is still delivering would only repeat the event.
    timeoutMs: 'none',
    headers: { 'kn-namespace': namespace },
    sleep,
    ...(options.post === undefined ? {} : { post: options.post }),
  });
  const stop = new AbortController();
  const counts = { sent: 0, lost: 0 };

  const start = async (): Promise<Forwarder | undefined> => {
    let reported: string | undefined;
    while (!stop.signal.aborted) {
      try {
        const resolved = await resolveSource(client, source);
        return startForwarder({ ...resolved, client, log, replay, send, sleep, counts });
      } catch (error) {
        // Once for each reason: a cluster may never have the kind.
        if (messageOf(error) !== reported) log.warn('source is waiting for its kinds', { source: name, error });
        reported = messageOf(error);
        await sleep(lookAgainMs, stop.signal);
      }
    }
    return undefined;
  };
  const started = start();
  return {
    counts,
    ready: started.then((forwarder) => forwarder?.ready),
    stop: async () => {
      stop.abort();
      await (await started)?.stop();
    },
  };
};
