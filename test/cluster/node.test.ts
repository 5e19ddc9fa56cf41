// The node itself: what flows of the product rely on.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { namespaces, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { AnyObject } from '#local-cluster/csi-driver/programs.ts';
import { applyObjects } from '#local-cluster/install.ts';
import { untilGone, until } from '#test/support/until.ts';
import { aClaim, createNamespace, kube, outputOf, probePod, untilBound } from '#test/cluster/support.ts';

const namespace = 'node';
const at = (name: string) => ({ namespace, name });
beforeAll(() => createNamespace(namespace));
afterAll(async () => {
  await kube.delete(namespaces, { name: namespace });
  await untilGone(kube, namespaces, { name: namespace });
});

it('a pod reaches a Service by its name', async () => {
  const spec = { selector: { probe: 'server' }, ports: [{ port: 80, targetPort: 8080 }] };
  const service: AnyObject = { apiVersion: 'v1', kind: 'Service', metadata: at('server'), spec };
  await applyObjects(kube, [service]);
  await kube.create(pods, probePod({ key: at('server'), args: ['serve'] }));
  const client = probePod({ key: at('client'), args: ['get', `http://server.${namespace}.svc.cluster.local`] });
  // It may begin before the server.
  expect(await outputOf(client)).toMatch(/served\n$/);
});

describe.each([
  { volumeMode: 'Block', path: '/dev/volume', storageClassName: 'local' },
  { volumeMode: 'Filesystem', path: '/volume/file', storageClassName: 'local' },
  { volumeMode: 'Block', path: '/dev/volume', storageClassName: 'local-wffc' },
  { volumeMode: 'Filesystem', path: '/volume/file', storageClassName: 'local-wffc' },
] as const)('a $volumeMode volume of $storageClassName', ({ volumeMode, path, storageClassName }) => {
  const isBlock = volumeMode === 'Block';
  const name = (what: string): string => `${what}-${storageClassName}-${volumeMode.toLowerCase()}`;
  const common = { volumeMode, storageClassName };
  const podOn = (claim: string, what: string, args: readonly string[]) =>
    probePod({ key: at(name(what)), args, claim, isBlock });

  it('keeps what a pod writes, grows, and is copied by snapshots and clones', async () => {
    const origin = at(name('origin'));
    await kube.create(persistentVolumeClaims, aClaim(origin, { size: '64Mi', ...common }));
    await outputOf(podOn(origin.name, 'writer', ['write', path, 'first']));

    const snapshot = at(name('snapshot'));
    await kube.create(volumeSnapshots, {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: snapshot,
      spec: { source: { persistentVolumeClaimName: origin.name } },
    });
    await until(kube, volumeSnapshots, snapshot, (now) => now?.status?.readyToUse === true, 60);
    await outputOf(podOn(origin.name, 'again', ['write', path, 'second']));
    const sources = {
      restored: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: snapshot.name },
      cloned: { kind: 'PersistentVolumeClaim', name: origin.name },
    };
    const found: Record<string, string> = {};
    for (const [what, dataSource] of Object.entries(sources)) {
      const claim = at(name(what));
      await kube.create(persistentVolumeClaims, aClaim(claim, { size: '96Mi', dataSource, ...common }));
      found[what] = await outputOf(podOn(claim.name, `reader-${what}`, ['read', path]));
    }
    expect(found).toEqual({ restored: 'first\n', cloned: 'second\n' });

    await kube.mergePatch(persistentVolumeClaims, origin, { spec: { resources: { requests: { storage: '128Mi' } } } });
    expect(await outputOf(podOn(origin.name, 'last', ['read', path]))).toBe('second\n');
    await until(kube, persistentVolumeClaims, origin, (now) => now?.status?.capacity?.['storage'] === '128Mi', 120);
    await untilBound(origin);
  });
});
