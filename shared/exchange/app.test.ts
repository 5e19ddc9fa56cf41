// A request without a valid token is rejected before its body is read, on every route.
import { expect, it } from 'vitest';
import { tokenReviews } from '#shared/api/foreign/kubernetes.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createExchange } from '#shared/exchange/app.ts';
import { createExchangeDeps } from '#shared/exchange/settings.ts';
import { cdiPaths } from '#shared/exchange/upload/cdi.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const config = { corsOrigins: [], longhornUrl: 'http://127.0.0.1:1', mostBytes: 1, waitSeconds: 1 };

const images = ['/v1/harvester/harvesterhci.io.virtualmachineimages', '/v1/harvesterhci.io.virtualmachineimages'];
const routes: readonly (readonly [method: string, path: string])[] = [
  ...['v1beta1', 'v1alpha1'].flatMap((version) => cdiPaths.map((path) => ['POST', `/${version}/${path}`] as const)),
  ...images.flatMap((base) => [
    ['POST', `${base}/vms/disk?action=upload`] as const,
    ['GET', `${base}/vms/disk/download`] as const,
    ['GET', `${base}/vms/disk/downloadcancel`] as const,
  ]),
  ...['virtualmachineimages', 'datavolumes'].flatMap((kind) => [
    ['GET', `/downloads/${kind}/vms/disk`] as const,
    ['POST', `/downloads/${kind}/vms/disk`] as const,
    ['GET', `/files/${kind}/vms/disk`] as const,
    ['POST', `/files/${kind}/vms/disk`] as const,
    ['PATCH', `/files/${kind}/vms/disk/1-a`] as const,
    ['DELETE', `/files/${kind}/vms/disk/1-a`] as const,
  ]),
];

const authorizations: readonly (string | undefined)[] = [
  undefined,
  'Basic dTpw',
  'Bearer',
  'Bearer x',
  'Bearer a.b.c',
  `Bearer ${Buffer.from('{"alg":"PS256"}').toString('base64url')}.${Buffer.from('{}').toString('base64url')}.c2ln`,
];

it.each(routes)('%s %s without a valid token: 401 with a Status, and the body is not read', async (method, path) => {
  const kube = createMemoryKube();
  // A TokenReview is answered and never stored; here no token is valid.
  const create: KubeClient['create'] = async (type, object) =>
    type.plural === tokenReviews.plural ? object : kube.create(type, object);
  const deps = createExchangeDeps(config, { ...kube, create }, silentLogger);
  const app = createExchange(deps);
  for (const authorization of authorizations) {
    let reads = 0;
    const body = new ReadableStream({ pull: () => void (reads += 1) }, { highWaterMark: 0 });
    const headers = { 'tus-resumable': '1.0.0', ...(authorization === undefined ? {} : { authorization }) };
    const hasBody = method === 'POST' || method === 'PATCH';
    const answer = await app.request(path, {
      method,
      headers,
      ...(hasBody ? { body, duplex: 'half' } : {}),
    } as RequestInit);
    expect({ authorization, status: answer.status }).toEqual({ authorization, status: 401 });
    expect(await answer.json()).toMatchObject({ kind: 'Status', status: 'Failure', reason: 'Unauthorized', code: 401 });
    expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    expect(reads).toBe(0);
  }
});
