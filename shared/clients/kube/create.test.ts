import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { expect, it, onTestFinished } from 'vitest';
import { ensureControlPlaneFiles } from '#local-cluster/real-api-server/certificates.ts';
import { createTransport } from './create.ts';

/** An API server that speaks HTTP/2 as well, as kube-apiserver does; answers with the version that was spoken. */
const startHttp2Server = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'transport-'));
  const files = await ensureControlPlaneFiles(folder);
  const [key, cert, ca] = await Promise.all(
    [files.key, files.certificate, files.ca].map((file) => readFile(file, 'utf8')),
  );
  const server = createSecureServer({ key: key!, cert: cert!, allowHTTP1: true }, (request, response) =>
    response.end(request.httpVersion),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.close();
    await rm(folder, { recursive: true });
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, ca: ca! };
};

it('uses HTTP/1.1 with a server that also offers HTTP/2', async () => {
  const { url, ca } = await startHttp2Server();
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: 'c', server: url, caData: Buffer.from(ca).toString('base64') }],
    users: [{ name: 'u', token: 't' }],
    contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
    currentContext: 'x',
  });
  const response = await createTransport(config)({ method: 'GET', path: '/version' });
  expect(await response.body.text()).toBe('1.1');
});
