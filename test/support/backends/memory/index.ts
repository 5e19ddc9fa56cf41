// A fourth backend, for the test of what adding one requires: it stores an image in a ConfigMap.
import { type ConfigMap, configMaps } from '#shared/api/foreign/core.ts';
import { childMetadata } from '#shared/api/object.ts';
import { create, remove, type Plan } from '#shared/populate/actions.ts';
import type { Backend, Image } from '#shared/backends/backend.ts';
import { isRetryDue } from '#shared/populate/filled.ts';
import { readOwn } from '#shared/populate/reading.ts';
import { follow } from '#shared/populate/watched-child.ts';
import { terminatingState, unchanged, usableState, waitingState } from '#shared/populate/state.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

interface Observed {
  readonly kept?: ConfigMap | undefined;
}

const nameOf = ({ ref }: Image): string => `memory-${ref.uid}`;

const build = (image: Image): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: childMetadata(image.ref, 'volume', nameOf(image)),
  data: { image: image.displayName },
});

const initialize: Backend<Observed>['initialize'] = (image, { kept }, context): Plan => {
  if (image.state.phase === 'Failed' && !isRetryDue(image)) return unchanged(image);
  if (kept !== undefined) {
    const children = { ...image.state.children, volume: kept.metadata.name };
    return { actions: [], state: usableState(image, { ...image.state, children }) };
  }
  const step = { phase: 'Pending', reason: 'Starting', message: 'writing it down' } as const;
  return {
    actions: [create(configMaps, build(image))],
    state: waitingState(image, { ...image.state, progress: 0 }, step, context),
  };
};

export const memory: Backend<Observed> = {
  capabilities: { sources: ['http'] },
  check: async (kube: KubeClient, image) => ({ kept: (await readOwn(kube, configMaps, image.ref, nameOf(image))).own }),
  initialize,
  updateVirtualSize: () => undefined,
  delete: ({ state }, { kept }) => ({
    actions: remove(configMaps, kept),
    state: terminatingState(state, 'Terminating', 'being removed'),
    removed: kept === undefined,
  }),
  rootDiskOf: (image) => ({ is: 'copy', volume: nameOf(image) }),
  watchedChildren: [follow(configMaps, ['create', 'delete'], () => true)],
  reads: [],
  validator: { create: () => [], update: () => [], delete: () => [] },
  mutator: { classParameters: () => undefined },
};
