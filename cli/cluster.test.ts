import { writeFile } from 'node:fs/promises';
import { type IncomingHttpHeaders, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { bearerOf, configOf, namespaceOf } from '#cli/cluster.ts';
import { exitCodes } from '#cli/command.ts';
import { runBullion } from '#test/support/bullion.ts';
import { temporaryDirectory } from '#test/support/directory.ts';

const kubeconfig = join(temporaryDirectory(), 'config');
const cluster = (name: string) => ({
  name,
  cluster: { server: `https://${name}.example`, 'certificate-authority-data': 'Y2E=' },
});
const user = (name: string) => ({ name, user: { token: name } });
const credential = {
  apiVersion: 'client.authentication.k8s.io/v1',
  kind: 'ExecCredential',
  status: { token: 'from-plugin' },
};
const plugin = {
  name: 'plugin',
  user: {
    exec: {
      apiVersion: credential.apiVersion,
      command: 'echo',
      args: [JSON.stringify(credential)],
      interactiveMode: 'Never',
    },
  },
};
beforeAll(async () => {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [cluster('near'), cluster('far'), cluster('bullion')],
    users: [user('me'), user('robot'), plugin],
    contexts: [
      { name: 'home', context: { cluster: 'near', user: 'me', namespace: 'vms' } },
      { name: 'away', context: { cluster: 'far', user: 'robot' } },
    ],
    'current-context': 'home',
  };
  await writeFile(kubeconfig, JSON.stringify(config));
});

describe('which cluster is meant, and as whom', () => {
  it.each<[values: Record<string, string>, chosen: readonly [string, string, string]]>([
    [{}, ['near', 'me', 'vms']],
    [{ context: 'away' }, ['far', 'robot', 'default']],
    [{ cluster: 'far' }, ['far', 'me', 'vms']],
    [{ user: 'robot' }, ['near', 'robot', 'vms']],
    [{ context: 'away', user: 'me', namespace: 'mine' }, ['far', 'me', 'mine']],
  ])('%j', (values, [server, name, namespace]) => {
    const config = configOf({ kubeconfig, ...values });
    expect(config.getCurrentCluster()?.server).toBe(`https://${server}.example`);
    expect(config.getCurrentUser()?.name).toBe(name);
    expect(namespaceOf(values, config)).toBe(namespace);
  });

  it('shows the token of its user, and none where that has none', async () => {
    expect(await bearerOf(configOf({ kubeconfig, user: 'robot' }))).toBe('robot');
    const config = configOf({ kubeconfig });
    config.loadFromClusterAndUser(
      { name: 'near', server: 'https://near.example', skipTLSVerify: false },
      { name: 'known-by-certificate' },
    );
    expect(await bearerOf(config)).toBeUndefined();
  });

  it('takes what kubectl takes in place of what the kubeconfig says', () => {
    const config = configOf({ kubeconfig, server: 'https://other.example', token: 't', as: 'jane' });
    expect(config.getCurrentCluster()).toMatchObject({ server: 'https://other.example', skipTLSVerify: false });
    expect(config.getCurrentUser()).toMatchObject({ token: 't', impersonateUser: 'jane' });
    expect(namespaceOf({}, config)).toBe('vms');
  });

  it.each<[values: Record<string, string | boolean>, trust: object]>([
    [{}, { caData: 'Y2E=', skipTLSVerify: false }],
    [{ 'certificate-authority': '/ca' }, { caFile: '/ca', caData: undefined, skipTLSVerify: false }],
    [{ 'insecure-skip-tls-verify': true }, { caData: undefined, skipTLSVerify: true }],
    [{ 'tls-server-name': 'api' }, { caData: 'Y2E=', tlsServerName: 'api' }],
  ])('trusts, with %j, %j', (values, trust) => {
    const { caData, caFile, skipTLSVerify, tlsServerName } = configOf({ kubeconfig, ...values }).getCurrentCluster()!;
    expect({ caData, caFile, skipTLSVerify, tlsServerName }).toMatchObject(trust);
  });

  it('runs the program that a kubeconfig names for a token', async () => {
    const config = configOf({ kubeconfig, user: 'plugin' });
    const asked: { headers?: Record<string, string> } = {};
    await config.applyToHTTPSOptions(asked as never);
    expect(asked.headers?.['Authorization']).toBe('Bearer from-plugin');
  });

  it('acts as others with every request', async () => {
    const heard = Promise.withResolvers<IncomingHttpHeaders>();
    const server = createServer((request, response) => {
      heard.resolve(request.headers);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":[]}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const args = ['--as', 'jane', '--as-group', 'a', '--as-group', 'b', '-s', `http://127.0.0.1:${port}`, 'images'];
    await runBullion(['--kubeconfig', kubeconfig, ...args]);
    expect(await heard.promise).toMatchObject({ 'impersonate-user': 'jane', 'impersonate-group': 'a, b' });
    server.close();
  });

  it.each<[values: Record<string, string>, words: RegExp]>([
    [{ server: 'other.example' }, /--server is http\(s\):/],
    [{ 'client-key': '/k' }, /--client-certificate and --client-key must be given together/],
    [{ 'as-group': 'a' }, /--as-group requires --as/],
    [{ server: 'http://127.0.0.1:1' }, /ECONNREFUSED[\s\S]*is the cluster running/],
    [{ context: 'x' }, /has no context x: it has home, away/],
    [{ cluster: 'x' }, /has no cluster x: it has near, far, bullion/],
    [{ user: 'x' }, /has no user x: it has me, robot, plugin/],
    [{ kubeconfig: '/nowhere' }, /kubeconfig \/nowhere cannot be read: ENOENT/],
  ])('%j is refused with words and an exit code', async (values, words) => {
    const args = Object.entries({ kubeconfig, ...values }).flatMap(([name, value]) => [`--${name}`, value]);
    const { code, err } = await runBullion(['images', ...args]);
    expect(err).toMatch(words);
    expect(code).toBe(err.includes('ECONNREFUSED') ? exitCodes.failed : exitCodes.usage);
  });
});
