// Writes Kubernetes Events, so that `kubectl describe` shows what a controller did or could not do.
import { createHash } from 'node:crypto';
import { kubeEvents } from '#shared/api/foreign/core.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

export interface EventFacts {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** Records an event about an object with the source `component`. A repeated message increments its count. Never throws. */
export type Say = (about: KubeObject, facts: EventFacts) => Promise<void>;

export const createSay = (kube: KubeClient, component: string): Say => {
  const say = async (about: KubeObject, facts: EventFacts): Promise<void> => {
    const { name, uid = '', namespace = 'default' } = about.metadata;
    const digest = createHash('sha256').update(`${uid}|${component}|${facts.reason}|${facts.message}`).digest('hex');
    const key = { namespace, name: `${name.slice(0, 200)}.${digest.slice(0, 16)}` };
    const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    const known = await kube.get(kubeEvents, key);
    if (known !== undefined) {
      await kube.mergePatch(kubeEvents, key, { count: (known.count ?? 1) + 1, lastTimestamp: now });
      return;
    }
    await kube.create(kubeEvents, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: key,
      involvedObject: {
        apiVersion: about.apiVersion,
        kind: about.kind,
        name,
        uid,
        ...(about.metadata.namespace === undefined ? {} : { namespace: about.metadata.namespace }),
      },
      ...facts,
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component },
    });
  };
  // Events are optional: losing one must not stop the work that it reports.
  return (about, facts) => say(about, facts).catch(() => undefined);
};
