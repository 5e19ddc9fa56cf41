// Announces that an image, or a version of a golden image, is ready or has failed. Created from a sender and passed to the reconciler.
import { buildImageFailed, buildImageReady } from '#events/build.ts';
import type { CloudEvent } from '#events/event.ts';
import type { Send } from '#events/sender.ts';
import type { ReconciledState, Resource } from '#shared/resources/reconciler.ts';

/** Whether the event was delivered. Called again for the same transition until it was; the same ID marks the repetition. */
export type Announce = (resource: Resource, state: ReconciledState, event?: CloudEvent) => Promise<boolean>;

const source = 'bullion.dev/images';

export const createAnnouncer =
  (send: Send): Announce =>
  async (resource, state, ending) => {
    if (ending !== undefined) return (await send(ending)).isDelivered;
    const { namespace, ...ref } = resource.ref;
    const about = {
      image: namespace === undefined ? ref : { ...ref, namespace },
      generation: resource.generation,
    };
    const event =
      state.phase === 'Available'
        ? buildImageReady(about, { source })
        : buildImageFailed({ ...about, reason: state.reason, message: state.message }, state.failures ?? 0, { source });
    return (await send(event)).isDelivered;
  };
