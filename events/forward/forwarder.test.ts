import { describe, expect, it } from 'vitest';
import { type ForwarderOptions, startForwarder } from '#events/forward/forwarder.ts';
import { parseApiServerSource, resolveSource, startSource } from './source.ts';
import { createHandlerPost } from '#events/post.ts';
import { createSender } from '#events/send.ts';
import { guessPlural } from '#events/build.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient, WatchEvent } from '#shared/clients/kube/client.ts';
import { Conflict, NotFound, Unavailable } from '#shared/runtime/errors.ts';
import { createLogger } from '#shared/runtime/log.ts';

const type: ResourceType = {
  group: 'kubevirt.io',
  version: 'v1',
  kind: 'VirtualMachine',
  plural: 'virtualmachines',
  namespaced: true,
};
const nodes: ResourceType = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false };

const anObject = (version: string, more: object = {}): KubeObject => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'vm', namespace: 'd', uid: 'u-1', resourceVersion: version, ...more },
});

type Step = WatchEvent<KubeObject> | { readonly type: 'BREAK'; readonly error?: Error };
const observed = (type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK', object: KubeObject) => ({ type, object });

/** An API with some objects, whose watch sends `steps`: a BREAK ends one connection, and after the last step it sends nothing more. */
const scripted = (steps: readonly Step[], items: readonly KubeObject[] = []) => {
  const calls: string[] = [];
  const rest = [...steps];
  const client: Partial<KubeClient> = {
    server: 'https://10.96.0.1:443',
    list: async () => {
      calls.push('list');
      return { metadata: { resourceVersion: '100' }, items: items as never };
    },
    watch: async function* play(_, { resourceVersion, signal }: Parameters<KubeClient['watch']>[1]) {
      calls.push(`watch ${resourceVersion}`);
      for (let step = rest.shift(); step !== undefined; step = rest.shift()) {
        if (step.type !== 'BREAK') yield step as never;
        else if (step.error) throw step.error;
        else return;
      }
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
  };
  return { client: client as KubeClient, calls, isPlayed: () => rest.length === 0 };
};

/** Forwards a script to a sink that answers `statuses`, then 204. */
const forward = async (
  api: ReturnType<typeof scripted>,
  options: Partial<ForwarderOptions> & { readonly statuses?: readonly number[] } = {},
) => {
  const requests: { headers: Record<string, string>; body: string }[] = [];
  const lines: Record<string, unknown>[] = [];
  const post = createHandlerPost(async (request) => {
    requests.push({ headers: Object.fromEntries(request.headers), body: await request.text() });
    return new Response(null, { status: options.statuses?.[requests.length - 1] ?? 204 });
  });
  let ids = 0;
  const forwarder = startForwarder({
    client: api.client,
    resources: [{ type }],
    mode: 'Resource',
    send: createSender({
      sink: 'http://sink/',
      post,
      headers: { 'kn-namespace': 'bullion' },
      sleep: async () => undefined,
    }),
    log: createLogger({ write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) }),
    newId: () => `id-${(ids += 1)}`,
    now: () => new Date('2026-01-02T03:04:05.678Z'),
    sleep: async () => undefined,
    ...options,
  });
  await forwarder.ready;
  await expect.poll(api.isPlayed).toBe(true);
  // The events of the script are still being delivered by this process: they are counted, since a fixed time is unreliable on a busy machine.
  for (let step = 0; step < 200; step += 1) await new Promise((resolve) => setImmediate(resolve));
  await forwarder.stop();
  return { requests, lines, counts: forwarder.counts };
};

const typesOf = (requests: readonly { headers: Record<string, string> }[]) =>
  requests.map(({ headers }) => headers['ce-type']?.replace('dev.knative.apiserver.', ''));

describe('the request for a change', () => {
  const headers = {
    'ce-apiversion': 'kubevirt.io/v1',
    'ce-id': 'id-1',
    'ce-kind': 'VirtualMachine',
    'ce-name': 'vm',
    'ce-namespace': 'd',
    'ce-source': 'https://10.96.0.1:443',
    'ce-specversion': '1.0',
    'ce-subject': '/apis/kubevirt.io/v1/namespaces/d/virtualmachines/vm',
    'ce-time': '2026-01-02T03:04:05.678Z',
    'content-type': 'application/json',
    'kn-namespace': 'bullion',
    traceparent: expect.stringMatching(/^00-/) as string,
  };
  const object = anObject('7', { managedFields: [{ manager: 'kubectl' }] });

  it.each([
    ['ADDED', 'add'],
    ['MODIFIED', 'update'],
    ['DELETED', 'delete'],
  ] as const)('%s in Resource mode is the same as that of ApiServerSource', async (watched, verb) => {
    const { requests } = await forward(scripted([observed(watched, object)]));
    expect(requests).toEqual([
      { headers: { ...headers, 'ce-type': `dev.knative.apiserver.resource.${verb}` }, body: JSON.stringify(object) },
    ]);
  });

  it('in Reference mode contains neither UID nor version', async () => {
    const { requests } = await forward(scripted([observed('ADDED', object)]), { mode: 'Reference' });
    expect(requests).toEqual([
      {
        headers: { ...headers, 'ce-type': 'dev.knative.apiserver.ref.add' },
        body: '{"kind":"VirtualMachine","namespace":"d","name":"vm","apiVersion":"kubevirt.io/v1"}',
      },
    ]);
  });

  it('for a cluster-scoped core object has an empty namespace', async () => {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', resourceVersion: '7' } };
    const { requests } = await forward(scripted([observed('MODIFIED', node)]), {
      resources: [{ type: nodes }],
      mode: 'Reference',
    });
    expect(requests[0]?.headers).toMatchObject({ 'ce-namespace': '', 'ce-subject': '/apis/v1/namespaces//nodes/n1' });
    expect(requests[0]?.body).toBe('{"kind":"Node","name":"n1","apiVersion":"v1"}');
  });

  it('contains the extensions of ceOverrides', async () => {
    const { requests } = await forward(scripted([observed('ADDED', object)]), { extensions: { partitionkey: 'p' } });
    expect(requests[0]?.headers).toMatchObject({ 'ce-partitionkey': 'p' });
  });
});

describe('startForwarder', () => {
  it('sends nothing about existing objects, like ApiServerSource', async () => {
    const api = scripted([observed('BOOKMARK', anObject('150')), { type: 'BREAK' }], [anObject('1')]);
    expect((await forward(api)).requests).toEqual([]);
    expect(api.calls.slice(0, 3)).toEqual(['list', 'watch 100', 'watch 150']);
  });

  it('sends existing objects as additions when configured to', async () => {
    const { requests } = await forward(scripted([observed('MODIFIED', anObject('101'))], [anObject('1')]), {
      replay: 'add',
    });
    expect(typesOf(requests)).toEqual(['resource.add', 'resource.update']);
  });

  it('continues from the last version after a broken connection', async () => {
    const broken: Step = { type: 'BREAK', error: new Unavailable('cut') };
    const api = scripted([observed('ADDED', anObject('101')), broken, observed('DELETED', anObject('102'))]);
    expect(typesOf((await forward(api)).requests)).toEqual(['resource.add', 'resource.delete']);
    expect(api.calls).toEqual(['list', 'watch 100', 'watch 101']);
  });

  it('lists again without sending when its version is too old', async () => {
    const tooOld: Step = { type: 'BREAK', error: new Conflict('too old') };
    const api = scripted(
      [observed('ADDED', anObject('50')), tooOld, observed('MODIFIED', anObject('101'))],
      [anObject('99')],
    );
    const { requests, lines } = await forward(api);
    expect(typesOf(requests)).toEqual(['resource.add', 'resource.update']);
    expect(api.calls).toEqual(['list', 'watch 100', 'list', 'watch 100']);
    expect(lines[0]).toMatchObject({ message: 'watch interrupted', isTooOld: true });
  });

  it('retries an event with the same id, then drops it and reports it', async () => {
    const api = scripted([observed('ADDED', anObject('101')), observed('MODIFIED', anObject('102'))]);
    const { requests, lines, counts } = await forward(api, { statuses: [503, 503, 503, 503, 503, 503] });
    expect(requests.map(({ headers }) => headers['ce-id'])).toEqual([...Array<string>(6).fill('id-1'), 'id-2']);
    expect(counts).toEqual({ sent: 1, lost: 1 });
    expect(lines[0]).toMatchObject({
      level: 'error',
      message: 'event lost',
      eventId: 'id-1',
      attempts: 6,
      fault: 'status 503',
    });
  });

  it('drops an event at once when the sink answers with a conflict or a client error', async () => {
    const api = scripted([observed('ADDED', anObject('101')), observed('MODIFIED', anObject('102'))]);
    expect((await forward(api, { statuses: [500, 409] })).counts).toEqual({ sent: 0, lost: 2 });
  });

  it('forwards only objects of the configured owner', async () => {
    const owner = { apiVersion: 'g/v1', kind: 'Owner' };
    const owned = (controller: boolean) => ({ ownerReferences: [{ ...owner, name: 'o', uid: 'u', controller }] });
    const steps = [anObject('1'), anObject('2', owned(false)), anObject('3', owned(true))].map((object) =>
      observed('ADDED', object),
    );
    const { requests } = await forward(scripted(steps), { owner });
    expect(requests).toHaveLength(1);
  });

  it('warns about a kind that Knative would skip', async () => {
    const attachments = { ...type, kind: 'NetworkAttachmentDefinition', plural: 'network-attachment-definitions' };
    const { lines } = await forward(scripted([]), { resources: [{ type: attachments }] });
    expect(lines[0]).toMatchObject({ message: 'Knative would skip this kind', kind: 'NetworkAttachmentDefinition' });
  });
});

describe('guessPlural', () => {
  it.each([
    ['VirtualMachine', 'virtualmachines'],
    ['StorageClass', 'storageclasses'],
    ['NetworkPolicy', 'networkpolicies'],
    ['Gateway', 'gatewaies'],
    ['Endpoints', 'endpoints'],
  ])('derives from %s the plural %s', (kind, plural) => {
    expect(guessPlural(kind)).toBe(plural);
  });
});

describe('an ApiServerSource manifest', () => {
  const manifest = {
    apiVersion: 'sources.knative.dev/v1',
    kind: 'ApiServerSource',
    metadata: { name: 's', namespace: 'bullion' },
    spec: {
      mode: 'Resource',
      namespaceSelector: {},
      resources: [
        {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachine',
          selector: { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'c', operator: 'In', values: ['d', 'e'] }] },
        },
      ],
      sink: { ref: { kind: 'Broker', name: 'default' } },
    },
  };
  const client = {
    raw: async ({ path }: { path: string }) => {
      if (path !== '/apis/kubevirt.io/v1') throw new Error(`unexpected path ${path}`);
      return {
        resources: [
          { name: 'virtualmachines/status', kind: 'VirtualMachine', namespaced: true },
          { name: 'virtualmachines', kind: 'VirtualMachine', namespaced: true },
        ],
      };
    },
  } as unknown as KubeClient;

  it('is resolved by discovery', async () => {
    expect(await resolveSource(client, parseApiServerSource(manifest))).toEqual({
      mode: 'Resource',
      namespaces: undefined,
      owner: undefined,
      extensions: {},
      resources: [{ type, labelSelector: 'a=b,c in (d,e)' }],
    });
  });

  it('is forwarded once its kinds are served', async () => {
    const api = scripted([observed('ADDED', anObject('101'))]);
    let looks = 0;
    const raw: unknown = async () => {
      if ((looks += 1) < 3) throw new NotFound('not yet');
      return client.raw({ method: 'GET', path: '/apis/kubevirt.io/v1' });
    };
    const requests: Request[] = [];
    const source = startSource({
      client: { ...api.client, raw: raw as KubeClient['raw'] },
      manifest,
      sink: 'http://sink/',
      post: createHandlerPost((request) => (requests.push(request), new Response(null, { status: 204 }))),
      log: createLogger({ write: () => undefined }),
      sleep: async () => undefined,
    });
    await source.ready;
    await expect.poll(() => source.counts.sent).toBe(1);
    await source.stop();
    expect(looks).toBe(3);
    expect(requests[0]?.headers.get('kn-namespace')).toBe('bullion');
  });

  it('without namespaceSelector watches its own namespace', async () => {
    const { namespaceSelector: _, ...spec } = manifest.spec;
    const resolved = await resolveSource(client, parseApiServerSource({ ...manifest, spec }));
    expect(resolved.namespaces).toEqual(['bullion']);
  });

  it('with an unsupported field is rejected', () => {
    const spec = { ...manifest.spec, filters: [{ exact: { type: 'x' } }] };
    expect(() => parseApiServerSource({ ...manifest, spec })).toThrow(/filters/);
  });

  it('of an unknown kind cannot be resolved', async () => {
    const spec = { ...manifest.spec, resources: [{ apiVersion: 'kubevirt.io/v1', kind: 'Nothing' }] };
    await expect(resolveSource(client, parseApiServerSource({ ...manifest, spec }))).rejects.toThrow(/no kind Nothing/);
  });
});
