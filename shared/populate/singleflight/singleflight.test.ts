// The reason for fetching again is reported however often its status is lost in between.
import { describe, expect, it } from 'vitest';
import { type Lease, leases } from '#shared/api/foreign/kubernetes.ts';
import { annotations } from '#shared/api/names.ts';
import { decideSingleflight } from '#shared/populate/singleflight/singleflight.ts';
import { anImage } from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { execute } from '#test/support/reconcile.ts';

const { ref } = anImage();
const former = {
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name: 'disk', namespace: 'default', uid: 'd' },
  status: { phase: 'Succeeded' },
};
const held: Lease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'content-1', namespace: 'default', annotations: { [annotations.awaited]: 'true' } },
  spec: { holderIdentity: 'd' },
};

describe('who takes over the lease of bytes that were had before', () => {
  it('says why it fetches them again, and still knows where nothing but the lease was written', async () => {
    const kube = createMemoryKube();
    const lease = kube.seed(leases, held);
    const first = decideSingleflight(ref, { name: 'content-1', lease, fetcher: former, kept: [] }, () => undefined);
    expect(first).toMatchObject({ is: 'leading', because: expect.stringContaining('DataVolume disk') as string });
    await execute(kube, first.is === 'leading' ? first.actions : []);
    const [taken] = kube.all<Lease>(leases);
    const again = decideSingleflight(ref, { name: 'content-1', lease: taken, kept: [] }, () => undefined);
    expect(again).toEqual({ is: 'under way', because: first.is === 'leading' ? first.because : '' });
    expect(taken!.metadata.annotations?.[annotations.awaited]).toBeUndefined();
  });

  it('keeps no reason of its holder before', async () => {
    const kube = createMemoryKube();
    const lease = kube.seed(leases, {
      ...held,
      metadata: { ...held.metadata, annotations: { [annotations.fetchReason]: 'of the holder before' } },
    });
    const gone = decideSingleflight(ref, { name: 'content-1', lease, kept: [] }, () => undefined);
    expect(gone).toMatchObject({ is: 'leading', because: undefined });
    await execute(kube, gone.is === 'leading' ? gone.actions : []);
    expect(kube.all<Lease>(leases)[0]!.metadata.annotations?.[annotations.fetchReason]).toBeUndefined();
  });
});
