import { describe, expect, it } from 'vitest';
import { eventTypes } from '#events/catalogue.ts';
import type { CloudEvent } from '#events/event.ts';
import { createDeadLetters } from '#infra/local/broker/dead-letters.ts';
import type { KubeEvent } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Conflict, Unavailable } from '#shared/runtime/errors.ts';
import { createLogger } from '#shared/runtime/log.ts';

/** An API that holds Events, and is down when told so. */
const given = (options: { readonly isDown?: boolean } = {}) => {
  const stored = new Map<string, KubeEvent>();
  const lines: Record<string, unknown>[] = [];
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
  const log = createLogger({ write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) });
  let minute = 0;
  const now = () => new Date(Date.UTC(2026, 0, 1, 0, (minute += 1)));
  return { letters: createDeadLetters({ client: client as KubeClient, log, now }), stored, lines };
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
  it('becomes a Kubernetes Event on the object concerned', async () => {
    const { letters, stored } = given();
    await letters.take(aLetter());
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

  it('counts up when it comes again, apart from another life of the object or another fault', async () => {
    const { letters, stored } = given();
    await letters.take(aLetter());
    await letters.take(aLetter({ id: 'e-2' }));
    expect([...stored.values()].map(({ count, lastTimestamp }) => [count, lastTimestamp])).toEqual([
      [2, '2026-01-01T00:02:00.000Z'],
    ]);
    await letters.take(aLetter({ data: { metadata: { uid: 'u-2' } } }));
    await letters.take(aLetter({}, { knativeerrorcode: 503 }));
    expect(stored.size).toBe(3);
    expect(letters.counts).toEqual(new Map([[eventTypes.objectUpdated, 4]]));
  });

  it('about a cluster-scoped object goes to the default namespace', async () => {
    const { letters, stored } = given();
    await letters.take(aLetter({}, { namespace: '' }));
    const [event] = [...stored.values()];
    expect(event?.metadata.namespace).toBe('default');
    expect(event?.involvedObject).not.toHaveProperty('namespace');
  });

  it('about no object is counted and logged', async () => {
    const { letters, stored, lines } = given();
    await letters.take(aLetter({ type: eventTypes.ping, extensions: { knativeerrorcode: 500 }, data: undefined }));
    expect(stored.size).toBe(0);
    expect(letters.counts.get(eventTypes.ping)).toBe(1);
    expect(lines[0]).toMatchObject({ level: 'error', message: 'dead letter', code: 500 });
  });

  it('is counted and logged even when the API is down', async () => {
    const { letters, lines } = given({ isDown: true });
    await letters.take(aLetter());
    expect(letters.counts.get(eventTypes.objectUpdated)).toBe(1);
    expect(lines.map(({ message }) => message)).toEqual(['dead letter', 'dead letter not recorded']);
  });
});
