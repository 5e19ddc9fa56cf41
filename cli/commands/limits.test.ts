// What `bullion limits` prints of the limits of a namespace.
import { expect, it } from 'vitest';
import { limitsCommand } from '#cli/commands/limits.ts';
import { configMaps, namespaces } from '#shared/api/foreign/core.ts';
import { tenantLimits } from '#shared/api/names.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { runCommand } from '#test/support/command.ts';

const namespace = 'team-a';
const used = {
  images: 1,
  volumes: 0,
  storage: '2Gi',
  storageClasses: [{ name: 'fast', images: 1, volumes: 0, storage: '1Gi' }],
};
const limit = {
  name: 'teams',
  quota: { images: 3, storage: '10Gi', storageClasses: [{ name: 'fast', storage: '1Gi' }] },
  storageClasses: { allow: ['fast', 'slow'] },
  sources: {
    allow: [{ registry: 'quay.io/containerdisks' }, { bucket: 'images', store: 's3.example' }],
    deny: [{ addresses: '10.0.0.0/8', message: 'use the mirror' }],
    signed: [{ signature: { gpg: { keys: { configMap: 'keys' } } } }],
    uploads: 'Deny',
  },
  message: 'ask #platform',
  used,
};

const printed = async (limits: string | undefined, values = {}, asked = namespace) => {
  const kube = createMemoryKube({ now: () => 0 });
  kube.seed(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  if (limits !== undefined)
    kube.seed(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace, name: tenantLimits },
      data: { limits },
    });
  return (await runCommand(limitsCommand, { kube, namespace: asked, values })).text;
};

it('has a row for each amount, and a sentence for each rule', async () => {
  expect((await printed(JSON.stringify([limit]))).replaceAll(/ +/g, ' ').replaceAll(' \n', '\n'))
    .toBe(`LIMIT WHAT CLASS USED OF
teams images - 1 3
teams storage - 2Gi 10Gi
teams storage fast 1Gi 1Gi
teams allows storage classes fast, slow
teams allows sources quay.io/containerdisks, bucket images of s3.example
teams denies 10.0.0.0/8: use the mirror
teams asks for a signature on every source
teams denies uploads
teams: ask #platform
`);
});

it('has the namespace of each, with every namespace, and each rule once', async () => {
  const all = await printed(JSON.stringify([limit]), { 'all-namespaces': true }, 'default');
  expect(all.replaceAll(/ +/g, ' ').split('\n').slice(0, 2)).toEqual([
    'NAMESPACE LIMIT WHAT CLASS USED OF',
    'team-a teams images - 1 3',
  ]);
  expect(await printed(undefined, { 'all-namespaces': true }, 'team-x')).toMatch(/^No limits apply to any namespace/);
});

it('is JSON for scripts', async () => {
  expect(JSON.parse(await printed(JSON.stringify([limit]), { output: 'json' }))).toEqual([limit]);
});

it.each([undefined, '[]', 'something else'])('says that there are none: %s', async (text) => {
  expect(await printed(text)).toMatch(/^No limits apply to namespace team-a/);
});

it('does not say so of a namespace that is not there', async () => {
  await expect(printed(undefined, {}, 'team-x')).rejects.toThrow('there is no namespace team-x');
});
