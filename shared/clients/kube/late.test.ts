import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { namespaces } from '#shared/api/foreign/core.ts';
import { createLateKubeClient } from '#shared/clients/kube/late.ts';
import { kubeconfigFor } from '#test/support/kubeconfig.ts';
import { startOrigin } from '#test/support/origin.ts';

it('reads its configuration at the first request, again after a failure, and does not confuse a collection with an object', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'bullion-late-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const path = join(dir, 'kubeconfig');
  const kube = createLateKubeClient(path);
  await expect(kube.get(namespaces, { name: 'a' })).rejects.toMatchObject({
    code: 'Unavailable',
    message: expect.stringContaining('configuration for the Kubernetes API cannot be used') as unknown,
  });
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a' } };
  const origin = await startOrigin(() => ({ body: Buffer.from(JSON.stringify(namespace)) }));
  onTestFinished(() => origin.close());
  writeFileSync(path, kubeconfigFor(origin.url, { 'insecure-skip-tls-verify': true }));
  expect(await kube.get(namespaces, { name: 'a' })).toEqual(namespace);
  expect(await kube.get(namespaces, { name: '' })).toBeUndefined();
  await expect(kube.delete(namespaces, { name: '' })).rejects.toMatchObject({ code: 'InvalidInput' });
  expect(origin.requests).toHaveLength(1);
  expect(origin.requests[0]?.headers.authorization).toBe('Bearer t');
});
