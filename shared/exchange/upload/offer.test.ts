// An upload into a failed volume restarts it, and waits until that has happened.
import { describe, expect, it } from 'vitest';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { annotations } from '#shared/api/names.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { findTarget } from '#shared/exchange/target.ts';
import { offer } from '#shared/exchange/upload/offer.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const { type } = dataVolumeKind;
const key = { namespace: 'vms', name: 'disk' };
const name = { plural: 'datavolumes', ...key } as const;
const failed: DataVolume = {
  apiVersion: apiVersionOf(type),
  kind: type.kind,
  metadata: key,
  spec: { source: { upload: {} } },
  status: { phase: 'Failed', detail: { phase: 'Failed', reason: 'UploadExpired' } } as NonNullable<
    DataVolume['status']
  >,
};

describe('an upload into a failed DataVolume', () => {
  it('restarts it by its retry annotation, and continues once it waits for a file', async () => {
    const kube = createMemoryKube();
    kube.seed(type, failed);
    const target = await findTarget(kube, name);
    expect(target.stage).toBe('failed');
    const offered = offer({ kube, now: () => 7 }, target, {
      inspection: { format: 'raw', compression: 'none' },
      virtualSize: undefined,
    });
    // As its reconciler does, once it has seen the annotation.
    await expect
      .poll(async () => (await kube.get(type, key))?.metadata.annotations)
      .toMatchObject({
        [annotations.retry]: 'upload-7',
      });
    const status = { phase: 'UploadReady', detail: { phase: 'Pending', reason: 'Starting' } };
    await kube.mergePatch(type, key, { status }, { subresource: 'status' });
    expect(await offered).toMatchObject({ stage: 'open', name });
  });
});
