// The certificate of admission at a real API server: made by the account that keeps it, trusted by way of the Services that the configurations name, and
// believed all through a rotation of certificate and authority.
import { X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp as createValidate } from '#functions/validate/app.ts';
import { findAssets } from '#local-cluster/envtest/assets.ts';
import { createAccounts } from '#infra/local/accounts.ts';
import { freePorts } from '#local-cluster/free-ports.ts';
import { applyObjects, installCrds } from '#local-cluster/install.ts';
import { readAccess, readCrds, readWebhookConfigurations } from '#infra/local/manifests.ts';
import { type RealApiServer, startRealApiServer } from '#local-cluster/real-api-server/server.ts';
import { secrets, storageClasses } from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { admissionCertificate, systemNamespace } from '#shared/api/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { createAuthority, issueServer } from '#shared/certificate/issue.ts';
import { renewCertificate } from '#shared/certificate/renew.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type RunningServer, startServer } from '#shared/runtime/serve.ts';
import { aHarvesterImage, aHyperCloudImage } from '#test/support/admission.ts';

const assetsDir = findAssets(process.env);
const day = 24 * 3600 * 1000;
/** Ages at which an authority of ten years and a certificate of ninety days are due, and one at which they are not yet. */
const ages = { authority: 2460 * day, certificate: 70 * day } as const;
const names = ['validate', 'mutate'] as const;

describe.skipIf(assetsDir === undefined)('the admission certificate on a real API server', { timeout: 240_000 }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'bullion-rotation-'));
  const tlsDir = join(dataDir, 'tls');
  let server: RealApiServer;
  let admin: KubeClient;
  /** cron-tick, which tends the certificate with no more than its own rights. */
  let keeper: KubeClient;
  let apps: Readonly<Record<(typeof names)[number], Parameters<typeof startServer>[0]['app']>>;
  let ports: readonly number[];
  let pods: readonly RunningServer[] = [];

  /** What the kubelet does with the Secret that the pods mount. */
  const mountSecret = async (): Promise<string> => {
    const secret = await admin.get(secrets, { namespace: systemNamespace, name: admissionCertificate.serverSecret });
    mkdirSync(tlsDir, { recursive: true });
    for (const file of ['tls.crt', 'tls.key'])
      writeFileSync(join(tlsDir, file), Buffer.from(secret?.data?.[file] ?? '', 'base64'));
    return Buffer.from(secret?.data?.['tls.crt'] ?? '', 'base64').toString();
  };
  const startPods = async (): Promise<void> => {
    const tls = { certFile: join(tlsDir, 'tls.crt'), keyFile: join(tlsDir, 'tls.key'), checkMs: 50 };
    const start = (name: (typeof names)[number], index: number) =>
      startServer({ app: apps[name], log: silentLogger, port: ports[index] ?? 0, tls, drainMs: 1_000 });
    pods = await Promise.all(names.map(start));
  };
  const stopPods = async (): Promise<void> => {
    await Promise.all(pods.map((pod) => pod.close()));
  };
  /** Serial number of what is shown to a new connection. */
  const shownBy = (port: number): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
        const { serialNumber } = socket.getPeerCertificate();
        socket.destroy();
        resolve(serialNumber);
      });
      socket.once('error', reject);
    });

  const dryRun = { dryRun: true } as const;
  const write = (type: unknown, draft: object): Promise<KubeObject> =>
    admin.create(type as ResourceType, draft as KubeObject, dryRun);
  /** Both functions are asked: one refuses, the other fills in. */
  const ask = async (): Promise<void> => {
    const bad = write(hyperCloudImageKind.type, placed(aHyperCloudImage({ checksum: 'x' }, { name: 'bad' })));
    const refusal = await bad.then(
      () => 'accepted',
      (error: unknown) => (error instanceof InvalidInput ? error.faults.map(({ field }) => field) : String(error)),
    );
    expect(refusal).toContain('spec.checksum');
    const good = await write(harvesterImageKind.type, placed(aHarvesterImage({}, { name: 'good' })));
    expect(good).toMatchObject({ spec: { targetStorageClassName: 'standard' } });
  };
  const placed = ({ metadata, ...draft }: ReturnType<typeof aHyperCloudImage>) => {
    const { uid: _uid, ...named } = metadata;
    return { ...draft, metadata: { ...named, namespace: 'default' } };
  };

  beforeAll(async () => {
    server = await startRealApiServer({ assetsDir: assetsDir!, dataDir, durable: false });
    admin = createKubeClient(loadKubeConfig(server.kubeconfigPath));
    await installCrds(admin, await readCrds());
    await applyObjects(admin, await readAccess());
    const { kubeconfigPath } = server;
    const options = { kubeconfigPath, namespace: systemNamespace, dir: join(dataDir, 'accounts') };
    const accounts = await createAccounts(admin, ['admission', 'cron-tick'], options);
    keeper = createKubeClient(loadKubeConfig(accounts['cron-tick']));
    const deps = { kube: createKubeClient(loadKubeConfig(accounts.admission)), log: silentLogger };
    apps = { validate: createValidate(deps), mutate: createMutate(deps) };
    ports = await freePorts(2);
    await admin.create(storageClasses, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'standard', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'example.dev/none',
    });
    // By name, as in a cluster: the API server asks for https://validate.bullion-system.svc, and what answers has to prove that it is it.
    await applyObjects(admin, [...names.map(serviceTo), ...(await readWebhookConfigurations()).map(onPort)]);
  }, 180_000);
  afterAll(async () => {
    await stopPods();
    await server?.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const serviceTo = (name: string): KubeObject =>
    ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: systemNamespace },
      spec: { type: 'ExternalName', externalName: 'localhost' },
    }) as KubeObject;
  interface Configuration extends KubeObject {
    readonly webhooks: readonly { readonly clientConfig: { readonly service: { readonly name: string } } }[];
  }
  const onPort = (configuration: KubeObject): KubeObject => {
    const { webhooks, ...rest } = configuration as Configuration;
    const moved = webhooks.map(({ clientConfig: { service }, ...webhook }) => ({
      ...webhook,
      clientConfig: { service: { ...service, port: ports[names.indexOf(service.name as 'validate')] } },
    }));
    return { ...rest, webhooks: moved } as KubeObject;
  };

  it('is created by cron-tick and trusted by the API server', async () => {
    // An authority that is due today, and below it a certificate of ten weeks ago.
    await renewCertificate(keeper, Date.now() - ages.authority);
    await renewCertificate(keeper, Date.now() - ages.certificate);
    await mountSecret();
    await startPods();
    await vi.waitFor(ask, { timeout: 100_000, interval: 100 });
    await expect(ask()).resolves.toBeUndefined();
  });

  it('is replaced together with its authority, and no request is rejected meanwhile', async () => {
    const before = await mountSecret();
    let isOver = false;
    const asking = (async () => {
      while (!isOver) await ask();
    })();
    await renewCertificate(keeper, Date.now());
    // The pods still show the old one, and the API server trusts both.
    await ask();
    const after = await mountSecret();
    const [old, fresh] = [before, after].map((pem) => new X509Certificate(pem)) as [X509Certificate, X509Certificate];
    expect(fresh.serialNumber).not.toBe(old.serialNumber);
    expect(fresh.verify(old.publicKey)).toBe(false);
    for (const port of ports)
      await vi.waitFor(async () => expect(await shownBy(port)).toBe(fresh.serialNumber), { timeout: 100_000 });
    await ask();
    isOver = true;
    await asking;
    // And those that start anew, which the API server has to connect to again.
    await stopPods();
    await startPods();
    await vi.waitFor(ask, { timeout: 100_000, interval: 100 });
  });

  it('is not trusted when another authority signed it', async () => {
    await stopPods();
    const validity = { from: new Date(Date.now() - day), to: new Date(Date.now() + day) };
    const stranger = issueServer(createAuthority('stranger', validity), admissionCertificate.hosts, validity);
    writeFileSync(join(tlsDir, 'tls.crt'), stranger.certificate);
    writeFileSync(join(tlsDir, 'tls.key'), stranger.key);
    await startPods();
    const written = write(hyperCloudImageKind.type, placed(aHyperCloudImage({}, { name: 'any' })));
    await expect(written).rejects.toThrow(/certificate/);
  });
});
