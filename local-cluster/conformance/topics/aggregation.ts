// API aggregation: another server serves a group and version, and is called on behalf of the user.
import { deepStrictEqual, match, ok, strictEqual } from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { text } from 'node:stream/consumers';
import { loadAuthority } from '#local-cluster/api-server/auth/certificates.ts';
import type { CaseContext, Topic } from '#local-cluster/conformance/suite/case.ts';
import { at, itemsAt, type JsonValue, textAt } from '#local-cluster/conformance/suite/json.ts';
import {
  type Body,
  create,
  eventually,
  expectStatus,
  failureOf,
  get,
} from '#local-cluster/conformance/topics/objects.ts';

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly body: string;
  /** Common name of the client certificate, if it was issued by the published authority. */
  readonly proxy: string | undefined;
}

interface Extension {
  readonly group: string;
  readonly asked: readonly Asked[];
  readonly close: () => Promise<void>;
}

const services = '/apis/apiregistration.k8s.io/v1/apiservices';

const resourceList = (group: string): Body => ({
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion: `${group}/v1`,
  resources: [
    { name: 'notes', singularName: 'note', namespaced: true, kind: 'Note', verbs: ['create'], shortNames: ['nt'] },
  ],
});

const proxyCaOf = async (t: CaseContext): Promise<string> => {
  const map = await get(t, '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication');
  return textAt(map, ['data', 'requestheader-client-ca-file']);
};

const answer = (group: string, asked: Asked): { readonly status: number; readonly body: Body } => {
  if (asked.url === `/apis/${group}/v1`) return { status: 200, body: resourceList(group) };
  if (asked.method === 'POST') return { status: 201, body: JSON.parse(asked.body) as Body };
  return { status: 418, body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 418, message: asked.url } };
};

/** Serves a group of this case on loopback, with TLS under the name of a Service that refers to it. */
const startExtension = async (t: CaseContext): Promise<Extension> => {
  const namespace = await t.namespace();
  const group = `${t.id}.example.com`;
  const folder = await mkdtemp(join(tmpdir(), 'conformance-extension-'));
  t.cleanup(() => rm(folder, { recursive: true }));
  const authority = await loadAuthority(folder);
  const { certificate: cert, key } = await authority.issue('extension', [`extension.${namespace}.svc`]);
  const asked: Asked[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const socket = request.socket as TLSSocket;
    const proxy = socket.authorized ? String(socket.getPeerCertificate().subject.CN) : undefined;
    const { method = '', url = '', headers, rawHeaders } = request;
    const one: Asked = { method, url, headers, rawHeaders, body: await text(request), proxy };
    asked.push(one);
    const { status, body } = answer(group, one);
    response.writeHead(status, { 'content-type': 'application/json', 'x-extension': 'yes' }).end(JSON.stringify(body));
  };
  const ca = await proxyCaOf(t);
  const server = createServer({ cert, key, ca, requestCert: true, rejectUnauthorized: false }, (request, response) => {
    void serve(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  t.cleanup(close);
  await create(t, `/api/v1/namespaces/${namespace}/services`, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'extension' },
    spec: { type: 'ExternalName', externalName: '127.0.0.1' },
  });
  await register(t, group, { namespace, name: 'extension', port }, Buffer.from(authority.caPem).toString('base64'));
  return { group, asked, close };
};

const register = async (t: CaseContext, group: string, service: Body, caBundle: string): Promise<void> => {
  const spec = { group, version: 'v1', groupPriorityMinimum: 1000, versionPriority: 10, service, caBundle };
  await create(t, services, {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: `v1.${group}` },
    spec,
  });
  t.cleanup(() => t.call('DELETE', `${services}/v1.${group}`));
};

const conditionOf = async (t: CaseContext, group: string): Promise<JsonValue> =>
  itemsAt(await get(t, `${services}/v1.${group}`), 'status.conditions').find((one) => at(one, 'type') === 'Available');

const untilSays = async (t: CaseContext, group: string, wanted: string): Promise<void> => {
  const read = async () => textAt(await conditionOf(t, group), 'status');
  await eventually(`${group} is available: ${wanted}`, read, (status) => status === wanted);
};

const untilAvailable = (t: CaseContext, group: string): Promise<void> => untilSays(t, group, 'True');

const note = (group: string): Body => ({ apiVersion: `${group}/v1`, kind: 'Note', spec: { text: 'hello' } });

/** The proxy observes a server a moment after its status is available. */
const untilAnswered = async (t: CaseContext, group: string, namespace: string): Promise<void> => {
  const path = `/apis/${group}/v1/namespaces/${namespace}/notes`;
  const read = async () => (await t.call('POST', path, { body: note(group) })).status;
  await eventually(`${path} answers`, read, (status) => status === 201);
};

export const aggregation: Topic = {
  topic: 'aggregation',
  cases: {
    'a request is forwarded on behalf of its user': async (t) => {
      const { group, asked } = await startExtension(t);
      const namespace = await t.namespace();
      await untilAvailable(t, group);
      await untilAnswered(t, group, namespace);
      const path = `/apis/${group}/v1/namespaces/${namespace}/notes?fieldManager=me`;
      const headers = { 'x-remote-user': 'mallory', 'x-remote-group': 'system:masters', 'x-remote-extra-a': 'b' };
      const reply = await t.call('POST', path, { body: note(group), headers });
      expectStatus(reply, 201);
      strictEqual(reply.headers['x-extension'], 'yes');
      deepStrictEqual(reply.body, note(group));
      const one = asked.findLast(({ url }) => url === path);
      strictEqual(one?.proxy, 'front-proxy-client');
      const groups = one.rawHeaders.filter((_, i) => one.rawHeaders[i - 1]?.toLowerCase() === 'x-remote-group');
      t.same('asked', {
        groups,
        extra: one.headers['x-remote-extra-a'] ?? null,
        token: one.headers.authorization ?? null,
      });
      ok(one.headers['x-remote-user'] !== 'mallory');
    },
    'errors of the other server are returned unchanged': async (t) => {
      const { group } = await startExtension(t);
      await untilAvailable(t, group);
      await untilAnswered(t, group, await t.namespace());
      const reply = await t.call('GET', `/apis/${group}/v1/teapots`);
      t.same('refusal', { status: reply.status, body: reply.body });
    },
    'users need permissions': async (t) => {
      const { group, asked } = await startExtension(t);
      const namespace = await t.namespace();
      await untilAvailable(t, group);
      await untilAnswered(t, group, namespace);
      const before = asked.length;
      const path = `/apis/${group}/v1/namespaces/${namespace}/notes`;
      const reply = await t.call('POST', path, { body: note(group), headers: { 'impersonate-user': 'jane' } });
      t.same('forbidden', failureOf(reply));
      strictEqual(asked.slice(before).filter(({ method }) => method === 'POST').length, 0);
    },
    'its resources are in discovery': async (t) => {
      const { group } = await startExtension(t);
      await untilAvailable(t, group);
      await untilAnswered(t, group, await t.namespace());
      const listed = async () => itemsAt(await get(t, '/apis'), 'groups').filter((one) => at(one, 'name') === group);
      t.same('group', await eventually('the group is listed', listed, ({ length }) => length === 1));
      t.same('resources', await get(t, `/apis/${group}/v1`));
      const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
      const versions = async () => {
        const list = (await t.call('GET', '/apis', { accept })).body;
        const found = itemsAt(list, 'items').find((one) => textAt(one, 'metadata.name') === group);
        return at(found, 'versions');
      };
      const seen = await eventually('aggregated', versions, (all) => textAt(all, '0.freshness') === 'Current');
      t.same('aggregated', seen);
      const { stdout } = await t.kubectl(['api-resources', `--api-group=${group}`]);
      match(stdout, new RegExp(`notes +nt +${group}/v1 +true +Note`));
    },
    'kubectl creates what it serves': async (t) => {
      const { group } = await startExtension(t);
      const namespace = await t.namespace();
      await untilAvailable(t, group);
      await untilAnswered(t, group, namespace);
      const { code, stdout, stderr } = await t.kubectl(
        ['create', '--validate=false', '-n', namespace, '-f', '-', '-o', 'jsonpath={.spec.text}'],
        { stdin: JSON.stringify({ ...note(group), metadata: { name: 'a' } }) },
      );
      deepStrictEqual({ code, stdout }, { code: 0, stdout: 'hello' }, stderr);
    },
    'a server that does not answer is reported as unavailable': async (t) => {
      const namespace = await t.namespace();
      const group = `${t.id}.example.com`;
      await register(t, group, { namespace, name: 'nobody', port: 443 }, Buffer.from('none').toString('base64'));
      await untilSays(t, group, 'False');
      const { reason, message } = (await conditionOf(t, group)) as { reason: string; message: string };
      t.same('condition', { reason, message });
      const reply = await t.call('GET', `/apis/${group}/v1`);
      t.same('unavailable', { status: reply.status, body: reply.body });
    },
    'an unreachable server results in an error response': async (t) => {
      const { group, close } = await startExtension(t);
      await untilAvailable(t, group);
      await untilAnswered(t, group, await t.namespace());
      await close();
      const reply = await t.call('GET', `/apis/${group}/v1/teapots`);
      strictEqual(reply.status, 503);
      match(JSON.stringify(reply.body), /error trying to reach service|service unavailable/);
    },
    'an APIService is validated': async (t) => {
      const base = { apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService' };
      const spec = { group: `${t.id}.example.com`, version: 'v1', groupPriorityMinimum: 1, versionPriority: 1 };
      const name = `v1.${spec.group}`;
      const drafts: Readonly<Record<string, Body>> = {
        'another name': {
          metadata: { name: `v2.${spec.group}` },
          spec: { ...spec, service: { namespace: 'a', name: 'b' } },
        },
        'no priorities': { metadata: { name }, spec: { ...spec, groupPriorityMinimum: 0, versionPriority: 1001 } },
        'half a service': { metadata: { name }, spec: { ...spec, service: { namespace: '', name: '' } } },
        'two minds on trust': {
          metadata: { name },
          spec: { ...spec, service: { namespace: 'a', name: 'b' }, caBundle: 'YQ==', insecureSkipTLSVerify: true },
        },
      };
      for (const [label, draft] of Object.entries(drafts)) {
        t.same(label, failureOf(await t.call('POST', services, { body: { ...base, ...draft } })));
      }
    },
  },
};
