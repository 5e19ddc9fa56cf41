import { describe, expect, it } from 'vitest';
import { eventTypes } from '#events/catalogue.ts';
import type { CloudEvent } from '#events/event.ts';
import { recordDeadLetter } from '#events/dead-letter.ts';
import type { KubeEvent } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Conflict, Unavailable } from '#shared/runtime/errors.ts';

/** An API that stores Events, and fails while `isDown`. */
const given = (options: { readonly isDown?: boolean } = {}) => {
  const stored = new Map<string, KubeEvent>();
  const client: Partial<KubeClient> = {
    create: async (_, object) => {
      if (options.isDown === true) throw new Unavailable('down');
      if (stored.has(object.metadata.name)) throw new Conflict('exists');
      stored.set(object.metadata.name, object as never);
      return object;
    },
    get: async (_, { name }) => stored.get(name) as never,
    mergePatch: async (_, { name }, patch) => {
      stored.set(name, { ...stored.get(name), ...patch } as KubeEvent);
      return stored.get(name) as never;
    },
  };
  let minute = 0;
  const take = (event: CloudEvent) =>
    recordDeadLetter(client as KubeClient, event, new Date(Date.UTC(2026, 0, 1, 0, (minute += 1))));
  return { take, stored };
};

const aLetter = (more: Partial<CloudEvent> = {}, error: CloudEvent['extensions'] = {}): CloudEvent => ({
  id: 'e-1',
  source: 'https://10.96.0.1:443',
  type: eventTypes.objectUpdated,
  extensions: {
    apiversion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImage',
    name: 'image-1',
    namespace: 'd',
    knativeerrordest: 'http://initialize.bullion-system.svc.cluster.local/?token=x',
    knativeerrorcode: '400',
    knativeerrordata: Buffer.from('GET https://u:p@host/ failed').toString('base64'),
    ...error,
  },
  data: { metadata: { uid: 'u-1' } },
  ...more,
});

describe('a dead letter', () => {
  it('becomes a Kubernetes Event on its object', async () => {
    const { take, stored } = given();
    await take(aLetter());
    expect([...stored.values()]).toEqual([
      {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: expect.stringMatching(/^image-1\.[0-9a-f]{16}$/) as string, namespace: 'd' },
        involvedObject: {
          apiVersion: 'harvesterhci.io/v1beta1',
          kind: 'VirtualMachineImage',
          namespace: 'd',
          name: 'image-1',
          uid: 'u-1',
        },
        reason: 'EventNotHandled',
        message:
          'dev.knative.apiserver.resource.update could not be delivered to http://initialize.bullion-system.svc.cluster.local/ ' +
          '(status 400: GET https://host/ failed). The next tick looks at the object again.',
        type: 'Warning',
        count: 1,
        firstTimestamp: '2026-01-01T00:01:00.000Z',
        lastTimestamp: '2026-01-01T00:01:00.000Z',
        source: { component: 'bullion' },
      },
    ]);
  });

  it('is counted when it is repeated, separately for another object of the same name and for another error', async () => {
    const { take, stored } = given();
    await take(aLetter());
    await take(aLetter({ id: 'e-2' }));
    expect([...stored.values()].map(({ count, lastTimestamp }) => [count, lastTimestamp])).toEqual([
      [2, '2026-01-01T00:02:00.000Z'],
    ]);
    await take(aLetter({ data: { metadata: { uid: 'u-2' } } }));
    await take(aLetter({}, { knativeerrorcode: 503 }));
    expect(stored.size).toBe(3);
  });

  it('about a cluster-scoped object is recorded in the default namespace', async () => {
    const { take, stored } = given();
    await take(aLetter({}, { namespace: '' }));
    const [event] = [...stored.values()];
    expect(event?.metadata.namespace).toBe('default');
    expect(event?.involvedObject).not.toHaveProperty('namespace');
  });

  it('about no object is parsed as well', async () => {
    const { take, stored } = given();
    const ping = aLetter({ type: eventTypes.ping, extensions: { knativeerrorcode: 500 }, data: undefined });
    expect(await take(ping)).toEqual({ destination: '', code: 500, words: '', object: undefined });
    expect(stored.size).toBe(0);
  });

  it('is delivered again when the API is down', async () => {
    const { take } = given({ isDown: true });
    await expect(take(aLetter())).rejects.toThrow('down');
  });
});
