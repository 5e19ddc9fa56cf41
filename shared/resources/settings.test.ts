// What the reconciling functions are created with: the CDIConfig of the cluster applies to polls and to signatures, not only to Jobs.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { cdiConfigName, cdiConfigs } from '#shared/api/cdi/cdi-config.ts';
import { configMaps } from '#shared/api/foreign/core.ts';
import { parseReference } from '#shared/clients/registry/reference.ts';
import { createReconcileDeps, reconcileSettings } from '#shared/resources/settings.ts';
import { parseConfig } from '#shared/runtime/config.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { ecKey, payloadOf, pemOf, pushSignatures, signBytes } from '#test/support/cosign.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { pushDisk } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';

const namespace = 'golden';
const keys = ecKey();

describe.skipIf(!hasRegistry())('a registry without TLS', () => {
  let registry: TestRegistry;
  let digest: string;
  beforeAll(async () => {
    registry = await startRegistry();
    const target = { host: registry.host, repository: 'disks/fedora' };
    ({ digest } = await pushDisk(target, Buffer.alloc(512, 1), '40'));
    const payload = payloadOf(digest);
    await pushSignatures(target, digest, [{ payload, signature: signBytes(keys, payload) }]);
  });
  afterAll(() => registry.close());

  /** What a poll and a look at the signature result in. */
  const results = async (insecureRegistries: readonly string[] | undefined, environment: object = {}) => {
    const kube = createMemoryKube();
    const metadata = { name: cdiConfigName };
    const base = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'CDIConfig', metadata };
    kube.seed(cdiConfigs, {
      ...base,
      spec: insecureRegistries === undefined ? {} : { insecureRegistries: [...insecureRegistries] },
    });
    const data = { 'cosign.pub': pemOf(keys) };
    kube.seed(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name: 'keys' }, data });
    const config = parseConfig(z.object(reconcileSettings), { ALLOWED_ADDRESSES: '127.0.0.0/8', ...environment });
    const { observe, verify } = createReconcileDeps(config, silentLogger, { connect: () => kube });
    const source = { type: 'registry', image: parseReference(`docker://${registry.host}/disks/fedora:40`) } as const;
    const rule = { cosign: { keys: { configMap: 'keys' } } };
    return [
      await observe!({ source, namespace, known: {} }),
      await verify!({ source, namespace, rule, digest }),
    ] as const;
  };
  const refused = [
    { is: 'failed', message: expect.stringMatching(/127\.0\.0\.1/) },
    { is: 'unreachable', message: expect.stringMatching(/127\.0\.0\.1/) },
  ];

  it('is asked because the CDIConfig names it, and not once it is taken out', async () => {
    expect(await results([registry.host])).toMatchObject([
      { is: 'found', digest },
      { is: 'verified', digest },
    ]);
    expect(await results([])).toMatchObject(refused);
    expect(await results(undefined)).toMatchObject(refused);
    expect(await results(['other.example:5000'])).toMatchObject(refused);
  });

  it('is asked because the settings name it, whatever the CDIConfig names', async () => {
    const environment = { PLAIN_REGISTRIES: registry.host };
    expect(await results(['other.example:5000'], environment)).toMatchObject([{ is: 'found' }, { is: 'verified' }]);
  });
});
