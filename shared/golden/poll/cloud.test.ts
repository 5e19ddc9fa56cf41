// Polls of objects of clouds with the Secret of a cron: the same credentials as the transfer, and none to anybody else.
import { afterEach, describe, expect, it } from 'vitest';
import { secrets } from '#shared/api/foreign/core.ts';
import { createObserver } from '#shared/golden/poll/observe.ts';
import { openHttp } from '#shared/golden/poll/open.ts';
import { type Clouds, startClouds } from '#test/support/clouds.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

let clouds: Clouds | undefined;
afterEach(() => clouds?.close());

const look = async (cloud: 'googleStorage' | 'azureStorage', dataOf: (made: Clouds) => Record<string, string>) => {
  clouds = await startClouds({ store: () => ({ status: 200, headers: { etag: '"v1"' } }) });
  const kube = createMemoryKube();
  const data = Object.fromEntries(Object.entries(dataOf(clouds)).map(([key, text]) => [key, btoa(text)]));
  kube.seed(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'golden', name: 'images' }, data });
  const observe = createObserver({
    kube,
    clouds: clouds.endpoints,
    allowedAddresses: ['127.0.0.0/8'],
    registries: () => Promise.resolve({ plainRegistries: [] }),
    architecture: 'amd64',
    now: Date.now,
  });
  const url = `${clouds.endpoints[cloud]}/images/disk.raw`;
  return observe({ source: { type: 'http', url, secretName: 'images' }, namespace: 'golden', known: {} });
};

describe('a poll of an object of a cloud', () => {
  it('is made with the key file of a service account', async () => {
    const seen = await look('googleStorage', ({ google }) => ({ 'credentials.json': JSON.stringify(google.keyFile) }));
    expect(seen).toMatchObject({ is: 'found', memory: { etag: '"v1"' } });
    expect(clouds?.requests.map(({ service }) => service)).toEqual(['token', 'google']);
  });

  it('is made with a shared access signature, which it does not show', async () => {
    const seen = await look('azureStorage', ({ azure }) => ({ sasToken: azure.sas() }));
    expect(seen).toMatchObject({ is: 'found', memory: { etag: '"v1"' } });
    expect(JSON.stringify(seen)).not.toContain('sig=');
  });

  it.each<[what: string, data: Record<string, string>, seen: object]>([
    ['a key that is no JSON', { 'credentials.json': 's3cret' }, { message: expect.stringContaining('is not JSON') }],
    [
      'a Secret of other keys',
      { password: 's3cret' },
      { message: expect.stringContaining('needs the key credentials.json') },
    ],
  ])('fails for %s', async (_, data, expected) => {
    const seen = await look('googleStorage', () => data);
    expect(seen).toMatchObject({ is: 'failed', reason: 'InvalidInput', ...expected });
    expect(JSON.stringify(seen)).not.toContain('s3cret');
    expect(clouds?.requests).toEqual([]);
  });

  it('fails for a signature that has expired', async () => {
    const seen = await look('azureStorage', ({ azure }) => ({ sasToken: azure.sas({ se: '2020-01-01T00:00:00Z' }) }));
    expect(seen).toMatchObject({ is: 'failed', reason: 'CredentialsRefused' });
  });
});

it.each(['http', 's3'] as const)('the client of a source of %s closes that for token services, too', async (type) => {
  const options = {
    kube: createMemoryKube(),
    allowedAddresses: ['127.0.0.0/8'],
    registries: () => Promise.resolve({ plainRegistries: [] }),
  };
  const http = await openHttp(options, 'golden', { type, url: 'https://127.0.0.1/images/disk.raw' });
  await http.close();
  await expect(http.tools.asks.get({ url: new URL('http://127.0.0.1/token') })).rejects.toThrow(/UND_ERR_DESTROYED/);
});
