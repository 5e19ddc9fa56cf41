// How the sources of golden images are reached: a real disk by the short form, a private registry with a custom authority, and a proxy.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { diskOf } from '#infra/local/demo/import.ts';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { createAuthority, issueServer } from '#shared/certificate/issue.ts';
import { type CronSourceSpec, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { configMaps, namespaces, persistentVolumeClaims, secrets } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { type ForwardProxy, startForwardProxy } from '#test/support/forward-proxy.ts';
import { type GoldenFlow, conditionOf, createGoldenFlow, untilOffered, versionOf } from '#test/support/golden.ts';
import { pushDisk } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';

const run = promisify(execFile);
const namespace = 'golden-images';
const mib = 2 ** 20;
const password = 's3cret-pass';
const directory = temporaryDirectory();

const encoded = (data: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]));

describe.skipIf(!hasRegistry())('sources of golden images', { timeout: 600_000 }, () => {
  let open: TestRegistry;
  let closed: TestRegistry;
  let proxy: ForwardProxy;
  let cluster: TestCluster;
  let flow: GoldenFlow;
  /** As `localhost:port`, which its certificate names. */
  let closedHost: string;

  const aSecret = (name: string, type: string, data: Readonly<Record<string, string>>) =>
    cluster.kube.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace, name },
      type,
      data: encoded(data),
    } as never);

  beforeAll(async () => {
    const validity = { from: new Date(Date.now() - 60_000), to: new Date(Date.now() + 86_400_000) };
    const authority = createAuthority('registry', validity);
    [open, closed] = await Promise.all([
      startRegistry(),
      startRegistry({ withLogin: true, tls: issueServer(authority, ['localhost', 'registry.example'], validity) }),
    ]);
    const port = Number(closed.host.split(':')[1]);
    closedHost = `localhost:${port}`;
    proxy = await startForwardProxy({
      ports: { 'registry.example:443': port, 'plain.example:80': Number(open.host.split(':')[1]) },
    });
    cluster = await startTestCluster({
      functionEnvironment: {
        PLAIN_REGISTRIES: `${open.host},plain.example`,
        HTTP_PROXY: proxy.url,
        HTTPS_PROXY: proxy.url,
        NO_PROXY: 'direct.example',
      },
    });
    flow = createGoldenFlow(cluster.kube, namespace);
    await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    await cluster.kube.create(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace, name: 'registry-ca' },
      data: { 'ca.pem': authority.certificate },
    });
    await aSecret('login', 'kubernetes.io/basic-auth', { username: 'tester', password: `${password}\n` });
    await aSecret('cdi-login', 'Opaque', { accessKeyId: 'tester', secretKey: password });
    await aSecret('wrong', 'kubernetes.io/basic-auth', { username: 'tester', password: 'h1dden' });
    const auth = Buffer.from(`tester:${password}`).toString('base64');
    await aSecret('docker', 'kubernetes.io/dockerconfigjson', {
      '.dockerconfigjson': JSON.stringify({
        auths: { [closedHost]: { auth }, 'https://registry.example/v1/': { auth } },
      }),
    });
  }, 300_000);
  afterAll(async () => {
    await cluster?.close();
    await proxy?.close();
    await Promise.all([open?.close(), closed?.close()]);
  });

  const pushClosed = (tag: string) =>
    pushDisk(
      {
        host: closed.direct,
        repository: 'team/disk',
        authorization: `Basic ${Buffer.from(`tester:${password}`).toString('base64')}`,
      },
      noise(tag, 64 * 1024),
      tag,
    );
  const aShortCron = (name: string, registry: NonNullable<CronSourceSpec['registry']>) =>
    flow.aCron(name, { source: { registry }, garbageCollectOutdated: true });
  const bytesOf = async (claim: string): Promise<Buffer> => readFile(await diskOf(cluster, { namespace, name: claim }));

  it('have a short form of one line: tag, size and storage class of a real disk are determined', async () => {
    const raw = join(directory, 'disk.raw');
    const qcow2 = join(directory, 'disk.qcow2');
    await writeBootDisk(raw, { bytes: 64 * mib, dataBytes: 4 * mib });
    await run('qemu-img', ['convert', '-c', '-f', 'raw', '-O', 'qcow2', raw, qcow2]);
    const target = { host: open.host, repository: 'kubevirt/fedora' };
    await pushDisk(target, noise('old', 64 * 1024), '40');
    const { digest } = await pushDisk(target, await readFile(qcow2), '41');
    await aShortCron('fedora-short', { url: `docker://${open.host}/kubevirt/fedora` });
    const version = versionOf('fedora-short', digest);
    await untilOffered(flow, 'fedora-short', version);
    await run('qemu-img', [
      'compare',
      '-f',
      'raw',
      '-F',
      'raw',
      raw,
      await diskOf(cluster, { namespace, name: version }),
    ]);
    const claim = await flow.get(persistentVolumeClaims, version);
    expect(claim?.spec.storageClassName).toBe('local');
    const cron = await flow.until(
      dataImportCronKind.type,
      'fedora-short',
      (object) => object?.status?.lastPoll !== undefined,
    );
    expect(cron.status?.lastPoll?.message).toContain('fedora:41');
  });

  it.each([
    ['basic-auth', 'login'],
    ['accessKeyId', 'cdi-login'],
    ['dockerconfigjson', 'docker'],
  ])(
    'may require authentication, with a Secret of the form %s, over TLS with a custom authority',
    async (_shape, secretRef) => {
      const { digest } = await pushClosed(secretRef);
      await aShortCron(secretRef, {
        url: `docker://${closedHost}/team/disk:${secretRef}`,
        secretRef,
        certConfigMap: 'registry-ca',
      });
      const version = versionOf(secretRef, digest);
      await untilOffered(flow, secretRef, version);
      expect((await bytesOf(version)).subarray(0, 64 * 1024)).toEqual(noise(secretRef, 64 * 1024));
    },
  );

  it('report a wrong login, an unknown authority, or a missing Secret, and nothing of the Secret', async () => {
    const url = `docker://${closedHost}/team/disk:login`;
    const certConfigMap = 'registry-ca';
    await aShortCron('wrong-login', { url, secretRef: 'wrong', certConfigMap });
    await aShortCron('no-login', { url, certConfigMap });
    await aShortCron('no-authority', { url, secretRef: 'login' });
    await aShortCron('no-secret', { url, secretRef: 'nowhere', certConfigMap });
    const messageOf = async (name: string): Promise<string> => {
      const cron = await flow.until(
        dataImportCronKind.type,
        name,
        (object) => conditionOf(object, 'Degraded')?.reason === 'PollFailed',
      );
      return conditionOf(cron, 'Degraded')?.message ?? '';
    };
    expect(await messageOf('wrong-login')).toMatch(/401/);
    expect(await messageOf('no-login')).toContain('name a Secret with credentials in secretRef');
    expect(await messageOf('no-authority')).toContain(`the certificate of ${closedHost} is not trusted`);
    expect(await messageOf('no-secret')).toContain(`Secret ${namespace}/nowhere of secretRef does not exist`);
    for (const name of ['wrong-login', 'no-login', 'no-authority', 'no-secret'])
      expect(JSON.stringify(await flow.get(dataImportCronKind.type, name))).not.toContain('h1dden');
  });

  it('23: are polled and fetched through the configured proxy, with one setting for both', async () => {
    const { digest } = await pushClosed('proxied');
    await aShortCron('tunnelled', {
      url: 'docker://registry.example/team/disk:proxied',
      secretRef: 'docker',
      certConfigMap: 'registry-ca',
    });
    await untilOffered(flow, 'tunnelled', versionOf('tunnelled', digest));
    expect(proxy.requests).toContain('CONNECT registry.example:443');
    const plain = await pushDisk({ host: open.direct, repository: 'team/plain' }, noise('plain', 64 * 1024), '1');
    await aShortCron('forwarded', { url: 'docker://plain.example/team/plain:1' });
    await untilOffered(flow, 'forwarded', versionOf('forwarded', plain.digest));
    expect(proxy.requests).toContain('HEAD http://plain.example/v2/team/plain/manifests/1');
    expect(proxy.requests.some((line) => line.startsWith('GET http://plain.example/v2/team/plain/blobs/'))).toBe(true);
    // Hosts in NO_PROXY, and those on this machine, never used the proxy.
    await aShortCron('direct', { url: 'docker://direct.example/team/disk:1' });
    await flow.until(
      dataImportCronKind.type,
      'direct',
      (object) => conditionOf(object, 'Degraded')?.message?.includes('cannot connect to direct.example:') === true,
    );
    expect(proxy.requests.filter((line) => /direct\.example|localhost|127\.0\.0\.1/.test(line))).toEqual([]);
    expect(await flow.get(dataVolumes, versionOf('forwarded', plain.digest))).toBeDefined();
  });
});
