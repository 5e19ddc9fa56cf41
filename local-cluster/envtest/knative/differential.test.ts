import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { startSource } from '#events/forward/source.ts';
import type { CloudEvent } from '#events/event.ts';
import { createPost } from '#events/send.ts';
import { encodeEvent } from '#events/message.ts';
import { findAssets } from '#local-cluster/envtest/assets.ts';
import { findKnative } from '#local-cluster/envtest/knative/assets.ts';
import { createBroker } from '#local-cluster/broker/broker.ts';
import { parseBrokerManifests } from '#local-cluster/broker/manifest.ts';
import { freePorts, isFreeEverywhere } from '#local-cluster/free-ports.ts';
import { type RealApiServer, startRealApiServer } from '#local-cluster/real-api-server/server.ts';
import { configMaps as anyConfigMaps, namespaces as anyNamespaces } from '#shared/api/foreign/core.ts';
import type { ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { silentLogger as log } from '#shared/runtime/log.ts';
import { type RunningServer, startServer } from '#shared/runtime/serve.ts';
import { takeTurn } from '#test/support/turn.ts';
import { crds } from '#shared/api/foreign/kubernetes.ts';
import { looseCrd, prepareKnative, triggers } from '#test/support/knative.ts';

const assetsDir = findAssets(process.env);
const knative = findKnative(process.env);
if (assetsDir === undefined || knative === undefined) {
  console.warn('differential test against Knative skipped: run `npm run envtest` and `npm run envtest:knative` first');
}

interface Seen {
  readonly headers: Record<string, string>;
  readonly body: unknown;
}

/** What must be equal: everything except ids, times, traces, and headers of the connection. */
const volatile =
  /^(ce-id|ce-time|ce-knativearrivaltime|traceparent|tracestate|host|connection|content-length|accept-encoding|user-agent|transfer-encoding)$/;
const stable = (headers: Iterable<[string, string]>) =>
  Object.fromEntries([...headers].filter(([name]) => !volatile.test(name)));

const freePort = async (): Promise<number> => (await freePorts(1))[0] ?? 0;

const configMaps = anyConfigMaps;
const namespaces = anyNamespaces;
const widgets: ResourceType = { ...triggers, group: 'example.dev', kind: 'Widget', plural: 'widgets' };

describe.skipIf(assetsDir === undefined || knative === undefined)('compared with Knative', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'knative-'));
  const children: ChildProcess[] = [];
  let api: RealApiServer;
  let kube: KubeClient;

  const run = (binary: string, env: Record<string, string>) => {
    let output = '';
    const child = spawn(binary, [], {
      env: { KUBECONFIG: api.kubeconfigPath, SYSTEM_NAMESPACE: 'knative-eventing', NAMESPACE: 'bullion', ...env },
    });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
    children.push(child);
    return {
      output: () => output.slice(-3_000),
      hasEnded: () => child.exitCode !== null,
      stop: async () => {
        const ended = new Promise((resolve) => child.once('exit', resolve));
        if (child.exitCode === null && child.kill('SIGKILL')) await ended;
      },
    };
  };
  const sink = async (answer: (seen: Seen) => Response = () => new Response(null, { status: 204 })) => {
    const seen: Seen[] = [];
    const fetch = async (request: Request) => {
      const text = await request.text();
      const one = { headers: stable(request.headers), body: text === '' ? undefined : (JSON.parse(text) as unknown) };
      seen.push(one);
      return answer(one);
    };
    return { seen, server: await startServer({ app: { fetch }, log, port: 0 }) };
  };

  let handOn: (() => Promise<void>) | undefined;
  beforeAll(async () => {
    handOn = await takeTurn('knative-adapter');
    api = await startRealApiServer({ assetsDir: assetsDir!, dataDir: join(dataDir, 'api'), durable: false });
    kube = createKubeClient(loadKubeConfig(api.kubeconfigPath));
    await kube.create(crds, looseCrd(widgets));
    await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'bullion' } });
    await prepareKnative(kube);
    await vi.waitFor(() => kube.list(widgets), { timeout: 100_000 });
  }, 480_000);

  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    await api?.close();
    await handOn?.();
    rmSync(dataDir, { recursive: true, force: true });
  });

  describe.each(['Resource', 'Reference'] as const)('the forwarder in %s mode', (mode) => {
    it('sends what apiserver_receive_adapter sends', async ({ skip }) => {
      if (!(await isFreeEverywhere(8080)) || !(await isFreeEverywhere(8008)))
        return skip('the adapter needs ports 8080 and 8008');
      const [theirs, ours] = [await sink(), await sink()];
      const gvr = ({ group, version, plural }: ResourceType) => ({
        gvr: { Group: group, Version: version, Resource: plural },
      });
      const watched = [configMaps, namespaces, widgets];
      const adapter = run(knative!.adapter, {
        K_SINK: theirs.server.url,
        NAME: 'source',
        K_SOURCE_CONFIG: JSON.stringify({ namespaces: [''], allNamespaces: true, resources: watched.map(gvr), mode }),
      });
      const resources = watched.map(({ group, version, kind }) => ({
        apiVersion: group === '' ? version : `${group}/${version}`,
        kind,
      }));
      const manifest = {
        kind: 'ApiServerSource',
        metadata: { name: 'source', namespace: 'bullion' },
        spec: { mode, namespaceSelector: {}, resources, sink: {} },
      };
      onTestFinished(adapter.stop);
      const source = startSource({ client: kube, manifest, sink: ours.server.url, log });
      onTestFinished(async () => {
        await source.stop();
        for (const { server } of [theirs, ours]) await server.close();
      });
      await source.ready;

      let probes = 0;
      const probe = async () => {
        probes += 1;
        const metadata = { name: `probe-${mode.toLowerCase()}-${probes}`, namespace: 'bullion' };
        await kube.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
        await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: metadata.name } });
        await kube.create(widgets, { apiVersion: 'example.dev/v1', kind: 'Widget', metadata });
        await wait(200);
        if (adapter.hasEnded()) throw new Error(adapter.output());
        return [theirs, ours].every(({ seen }) => new Set(seen.map(({ headers }) => headers['ce-kind'])).size === 3);
      };
      await expect.poll(probe, { timeout: 100_000 }).toBe(true);

      const name = `same-${mode.toLowerCase()}`;
      const key = { namespace: 'bullion', name };
      for (const [type, namespace] of [
        [configMaps, 'bullion'],
        [namespaces, undefined],
        [widgets, 'bullion'],
      ] as const) {
        const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
        const metadata = { name, ...(namespace === undefined ? {} : { namespace }), labels: { html: 'a-b' } };
        await kube.create(type, { apiVersion, kind: type.kind, metadata });
        await kube.mergePatch(type, { ...key, namespace }, { metadata: { annotations: { note: '<ä&€>' } } });
        await kube.delete(type, { ...key, namespace });
      }
      const about = (seen: readonly Seen[]) =>
        Object.groupBy(
          seen.filter(({ headers }) => headers['ce-name'] === name),
          ({ headers }) => headers['ce-kind'] ?? '',
        );
      const count = (seen: readonly Seen[]) => Object.values(about(seen)).flat().length;
      await expect.poll(() => [count(theirs.seen), count(ours.seen)], { timeout: 100_000 }).toEqual([9, 9]);

      expect(about(ours.seen)).toEqual(about(theirs.seen));
    }, 300_000);
  });

  describe('the broker', () => {
    const answers: Record<string, () => Response> = {
      json: () => Response.json({ ok: true }),
      text: () => new Response('ok'),
      event: () =>
        new Response('{"a":1}', {
          headers: {
            'ce-specversion': '1.0',
            'ce-id': 'r',
            'ce-source': '/f',
            'ce-type': 'reply',
            'content-type': 'application/json',
          },
        }),
      garbled: () => new Response('{', { headers: { 'content-type': 'application/cloudevents+json' } }),
      broken: () => new Response('{}', { headers: { 'ce-specversion': '1.0', 'ce-id': 'r' } }),
      words: () => new Response('no such image', { status: 400 }),
    };
    const answer = ({ headers }: Seen): Response => {
      const wanted = headers['ce-answer'] ?? '204';
      return answers[wanted]?.() ?? new Response(null, { status: Number(wanted), headers: { 'retry-after': '7' } });
    };
    const anEvent = (extensions: CloudEvent['extensions'] = {}, more: Partial<CloudEvent> = {}): CloudEvent => ({
      id: 'e-1',
      source: 'https://10.96.0.1:443',
      type: 'dev.knative.apiserver.resource.update',
      subject: '/apis/v1/namespaces/d/pods/p',
      time: '2026-01-02T03:04:05Z',
      datacontenttype: 'application/json',
      extensions: { kind: 'Pod', namespace: 'd', ...extensions },
      data: { a: '<ä&€>' },
      ...more,
    });

    let subscriber: Awaited<ReturnType<typeof sink>>;
    let filterUrl: string;
    let filter: ReturnType<typeof run>;
    let count = 0;

    beforeAll(async () => {
      subscriber = await sink(answer);
      const port = await freePort();
      filterUrl = `http://127.0.0.1:${port}`;
      filter = run(knative!.filter, {
        POD_NAME: 'filter',
        CONTAINER_NAME: 'filter',
        FILTER_PORT: String(port),
        FILTER_PORT_HTTPS: String(await freePort()),
      });
      const isUp = async () => {
        if (filter.hasEnded()) throw new Error(filter.output());
        const { status } = await fetch(filterUrl);
        if (status !== 405) throw new Error(`the filter answers ${status}`);
      };
      await vi.waitFor(isUp, { timeout: 60_000, interval: 500 });
    }, 240_000);

    /** One Trigger, in the cluster and in our broker; an event is sent through both. */
    const compare = async (spec: object, event: CloudEvent) => {
      count += 1;
      const name = `trigger-${count}`;
      const uri = `${subscriber.server.url}/`;
      const trigger = {
        apiVersion: 'eventing.knative.dev/v1',
        kind: 'Trigger',
        metadata: { name, namespace: 'bullion' },
        spec: { broker: 'default', subscriber: { uri }, ...spec },
      };
      const { metadata } = await kube.create(triggers, trigger);
      await kube.mergePatch(triggers, metadata, { status: { subscriberUri: uri } }, { subresource: 'status' });
      const path = `${filterUrl}/triggers/bullion/${name}/${metadata.uid}`;
      const { headers, body } = encodeEvent({ ...event, extensions: { ...event.extensions, knativebrokerttl: '9' } });
      const post = () => createPost()(path, { headers, body }, AbortSignal.timeout(10_000));
      // Until its informer has observed the Trigger and its status the filter answers 404.
      let theirs = await post();
      for (let tries = 0; theirs.status === 404 && tries < 50 && event.extensions['answer'] !== '404'; tries += 1) {
        await wait(100);
        theirs = await post();
      }
      if (event.extensions['answer'] === '404') await wait(1_000);
      const theirRequest = subscriber.seen.at(-1);
      const theirCount = subscriber.seen.splice(0).length;

      const letters: CloudEvent[] = [];
      const replies: CloudEvent[] = [];
      const broker = { kind: 'Broker', metadata: { name: 'default', namespace: 'bullion' }, spec: {} };
      const again = {
        ...trigger,
        metadata: { ...metadata, name: 'replies' },
        spec: { broker: 'default', filters: [{ exact: { type: 'reply' } }], subscriber: { uri: 'replies' } },
      };
      const delivery = { deadLetterSink: { uri: 'letters' }, ...(spec as { delivery?: object }).delivery };
      const local = createBroker({
        manifests: parseBrokerManifests([broker, { ...trigger, spec: { ...trigger.spec, delivery } }, again]),
        resolve: ({ uri: url = '' }) => ({
          url,
          post: async (target, message, signal) => {
            if (url !== 'replies') return createPost()(target, message, signal);
            replies.push(anEvent({}, { type: message.headers['ce-type'] ?? '' }));
            return { status: 204, headers: new Headers(), body: new Uint8Array() };
          },
        }),
        deadLetters: async (letter) => void letters.push(letter),
        log,
      });
      await local.publish(event);
      await local.idle();
      const ourRequest = subscriber.seen[0];
      const ourCount = subscriber.seen.splice(0).length;
      return {
        theirs: {
          request: theirRequest,
          isRequested: theirCount > 0,
          status: theirs.status,
          type: theirs.headers.get('ce-type'),
        },
        ours: {
          request: ourRequest,
          isRequested: ourCount > 0,
          code: letters[0]?.extensions['knativeerrorcode'],
          reply: replies[0]?.type,
        },
      };
    };

    it.each([
      '200',
      '202',
      '204',
      '301',
      '400',
      '401',
      '404',
      '408',
      '409',
      '413',
      '422',
      '425',
      '429',
      '500',
      '501',
      '502',
      '503',
      '504',
    ])('handles status %s as broker-filter does', async (code) => {
      const { theirs, ours } = await compare({}, anEvent({ answer: code }));
      expect(ours.request).toEqual(theirs.request);
      expect(ours.code).toBe(theirs.status < 300 ? undefined : theirs.status);
    });

    it.each(['json', 'text', 'event', 'garbled', 'words'])(
      'handles the answer %s as broker-filter does',
      async (kind) => {
        const { theirs, ours } = await compare({}, anEvent({ answer: kind }));
        expect(ours.request).toEqual(theirs.request);
        expect(ours.code).toBe(theirs.status < 300 ? undefined : theirs.status);
        expect(ours.reply).toBe(theirs.type ?? undefined);
      },
    );

    it('rejects a reply without a source at the ingress, which broker-filter relies on', async () => {
      const { theirs, ours } = await compare({}, anEvent({ answer: 'broken' }));
      expect([theirs.status, ours.code, ours.reply]).toEqual([200, 400, undefined]);
    });

    it.each([
      {},
      { filter: { attributes: { kind: 'Pod', namespace: '' } } },
      { filter: { attributes: { kind: 'Node' } } },
      { filter: { attributes: { missing: '' } } },
      { filters: [{ exact: { kind: 'Pod' } }] },
      { filters: [{ exact: { kind: 'Pod', namespace: 'other' } }] },
      { filter: { attributes: { kind: 'Node' } }, filters: [{ prefix: { type: 'dev.knative.' } }] },
      { filters: [{ suffix: { type: '.update' } }, { not: { exact: { kind: 'Node' } } }] },
      {
        filters: [
          {
            any: [
              { exact: { kind: 'Node' } },
              { all: [{ exact: { kind: 'Pod' } }, { prefix: { subject: '/apis/' } }] },
            ],
          },
        ],
      },
      { filters: [{ not: { any: [{ exact: { kind: 'Pod' } }] } }] },
      { filters: [{ exact: { missing: 'x' } }] },
      { filters: [{ exact: { count: '3' } }] },
    ])('filters as broker-filter does: %j', async (spec) => {
      const { theirs, ours } = await compare(spec, anEvent({ count: '3' }));
      expect(ours.isRequested).toBe(theirs.isRequested);
      expect(ours.request).toEqual(theirs.request);
    });

    it('sends structured mode as broker-filter does when the format is json', async () => {
      const { theirs, ours } = await compare({ delivery: { format: 'json' } }, anEvent());
      const withoutTime = (seen: Seen | undefined) => ({
        ...seen,
        body: { ...(seen?.body as object), knativearrivaltime: '' },
      });
      expect(withoutTime(ours.request)).toEqual(withoutTime(theirs.request));
    });

    it('keeps an empty extension as broker-filter does', async () => {
      const { theirs, ours } = await compare({}, anEvent({ namespace: '' }));
      expect(ours.request).toEqual(theirs.request);
    });

    afterAll(async () => {
      await filter?.stop();
      await (subscriber?.server as RunningServer | undefined)?.close();
    });
  });
});
