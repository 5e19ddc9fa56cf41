import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createApiServer } from '../server.ts';
import { type ApiCore, createApi } from './api.ts';

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // Bodies are accessed here without types.
  readonly body: Record<string, unknown> & { metadata: Record<string, unknown>; items: Record<string, unknown>[] };
}

const configMaps = '/api/v1/namespaces/default/configmaps';

const clientOf = (api: ApiCore) => {
  const call = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> => {
    const response = await api.handle(
      new Request(`https://localhost${path}`, {
        method,
        headers: { authorization: `Bearer ${api.token}`, 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
    return { status: response.status, headers: response.headers, body: (await response.json()) as Answer['body'] };
  };
  return call;
};

const aConfigMap = (name: string, data: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
});

describe('createApi', () => {
  let now = new Date('2026-01-01T00:00:00Z');
  let api: ApiCore;
  beforeEach(() => {
    now = new Date('2026-01-01T00:00:00Z');
    api = createApi({ clock: () => now });
  });
  afterEach(() => api.close());

  test('rejects requests without a token', async () => {
    const response = await api.handle(new Request(`https://localhost${configMaps}`));
    expect(response.status).toBe(403);
    const wrong = await clientOf(api)('GET', configMaps, undefined, { authorization: 'Bearer wrong' });
    expect(wrong).toMatchObject({ status: 401, body: { reason: 'Unauthorized' } });
  });

  test('uses the given clock', async () => {
    const { body } = await clientOf(api)('POST', configMaps, aConfigMap('a'));
    expect(body.metadata['creationTimestamp']).toBe('2026-01-01T00:00:00Z');
  });

  test('a token of a service account expires', async () => {
    const call = clientOf(api);
    await call('POST', '/api/v1/namespaces/default/serviceaccounts', {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'robot' },
    });
    const { body } = await call('POST', '/api/v1/namespaces/default/serviceaccounts/robot/token', {
      spec: { expirationSeconds: 600 },
    });
    const { token } = body['status'] as { token: string };
    const authorization = { authorization: `Bearer ${token}` };
    expect((await call('GET', '/version', undefined, authorization)).status).toBe(200);
    now = new Date(now.getTime() + 601_000);
    expect((await call('GET', '/version', undefined, authorization)).status).toBe(401);
  });

  test('rejects one of two writers with the same version', async () => {
    const call = clientOf(api);
    const { body } = await call('POST', configMaps, aConfigMap('a'));
    const answers = await Promise.all(
      ['1', '2'].map((value) => call('PUT', `${configMaps}/a`, { ...body, data: { value } })),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 409]));
  });

  test('patches of concurrent writers all take effect', async () => {
    const call = clientOf(api);
    await call('POST', configMaps, aConfigMap('a'));
    const names = Array.from({ length: 20 }, (_, index) => `k${index}`);
    const merge = { 'content-type': 'application/merge-patch+json' };
    await Promise.all(names.map((name) => call('PATCH', `${configMaps}/a`, { data: { [name]: '1' } }, merge)));
    const { body } = await call('GET', `${configMaps}/a`);
    expect(Object.keys(body['data'] as object).toSorted()).toEqual(names.toSorted());
  });

  test('a paged list shows one version, whatever is written in between', async () => {
    const call = clientOf(api);
    for (const name of ['a', 'b', 'c', 'd']) await call('POST', configMaps, aConfigMap(name));
    const first = await call('GET', `${configMaps}?limit=2`);
    await call('DELETE', `${configMaps}/c`);
    await call('POST', configMaps, aConfigMap('bb'));
    const token = encodeURIComponent(String(first.body.metadata['continue']));
    const second = await call('GET', `${configMaps}?limit=2&continue=${token}`);
    const names = [...first.body.items, ...second.body.items].map(
      (item) => (item['metadata'] as { name: string }).name,
    );
    expect(names).toEqual(['a', 'b', 'c', 'd']);
    expect(second.body.metadata['continue']).toBeUndefined();
    expect(second.body.metadata['resourceVersion']).toBe(first.body.metadata['resourceVersion']);
  });

  test('a watch from a version returns everything since, and continues', async () => {
    const call = clientOf(api);
    const { body } = await call('POST', configMaps, aConfigMap('a'));
    const version = String(body.metadata['resourceVersion']);
    await call('DELETE', `${configMaps}/a`);
    const stop = new AbortController();
    const response = await api.handle(
      new Request(`https://localhost${configMaps}?watch=1&resourceVersion=${version}`, {
        headers: { authorization: `Bearer ${api.token}` },
        signal: stop.signal,
      }),
    );
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    const deleted = JSON.parse((await reader.read()).value!) as { type: string };
    await call('POST', configMaps, aConfigMap('b'));
    const added = JSON.parse((await reader.read()).value!) as { type: string; object: { metadata: { name: string } } };
    stop.abort();
    expect([deleted.type, added.type, added.object.metadata.name]).toEqual(['DELETED', 'ADDED', 'b']);
    expect((await reader.read()).done).toBe(true);
  });

  test('a watch of compacted history gets an error', async () => {
    const call = clientOf(api);
    await call('POST', configMaps, aConfigMap('a'));
    const response = await api.handle(
      new Request(`https://localhost${configMaps}?watch=1&resourceVersion=1`, {
        headers: { authorization: `Bearer ${api.token}` },
      }),
    );
    const event = JSON.parse(await response.text()) as { type: string; object: { code: number; reason: string } };
    expect(event).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } });
  });
});

describe('createApiServer', () => {
  let dataDir = '';
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'api-server-'));
  });
  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  test('is the same cluster after a restart', async () => {
    const first = await createApiServer({ dataDir });
    const { caPem, token, handle } = first;
    const authorization = `Bearer ${token}`;
    await handle(
      new Request(`https://localhost${configMaps}`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify(aConfigMap('kept')),
      }),
    );
    await first.close();
    const second = await createApiServer({ dataDir });
    const response = await second.handle(
      new Request(`https://localhost${configMaps}/kept`, { headers: { authorization } }),
    );
    await second.close();
    expect(response.status).toBe(200);
    expect(second.caPem).toBe(caPem);
  });

  test('its kubeconfig is readable only by its owner', async () => {
    const server = await createApiServer({ dataDir });
    const { mode } = await stat(server.kubeconfigPath);
    await server.close();
    expect(mode & 0o777).toBe(0o600);
  });
});
